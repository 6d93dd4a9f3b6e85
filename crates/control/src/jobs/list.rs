//! `job.list`.

use crate::{Control, Result};
use cofferdam_policy::Permit;
use cofferdam_store::{JobFilter, JobRecord};

impl Control {
    pub async fn list_jobs(&self, permit: &Permit, filter: &JobFilter) -> Result<Vec<JobRecord>> {
        Ok(self.parts.store.jobs(permit.tenant(), filter).await?)
    }
}
