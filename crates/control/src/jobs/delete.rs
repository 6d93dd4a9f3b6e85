//! `job.delete`: a finished job and its bytes.

use crate::{Control, Result};
use cofferdam_policy::Permit;
use serde_json::json;

impl Control {
    pub async fn delete_job(&self, permit: &Permit, id: &str) -> Result<()> {
        let event = self.event(permit, "job.deleted", id, json!({}));
        Ok(self.parts.store.delete_job(permit.tenant().to_owned(), id.to_owned(), event).await?)
    }
}
