//! From nothing to a first result, and from there to the next.

use serde_json::json;

use super::SESSIONS;
use super::api::Api;
use crate::contestant::{Contestant, Sample};
use crate::failure::Result;

/// Longer than a sample, and than a run.
const TTL_SECONDS: u64 = 3600;

/// A session is made, and its first step run. Its end is not timed.
pub(super) struct First<'a>(pub(super) &'a Api);

impl Contestant for First<'_> {
    fn name(&self) -> &str {
        SESSIONS
    }

    fn sample(&self) -> Result<Sample> {
        let made = self.0.create(TTL_SECONDS, json!({}))?;
        let step = self.0.python(&made.id, "print(1)", "1\n");
        self.0.delete(&made.id)?;
        Ok((made.took + step?).into())
    }
}

/// A session that has run steps before.
pub(super) struct Next<'a> {
    api: &'a Api,
    id: String,
}

impl<'a> Next<'a> {
    pub(super) fn new(api: &'a Api) -> Result<Self> {
        let id = api.create(TTL_SECONDS, json!({}))?.id;
        api.python(&id, "x = 41\nx", "41")?;
        Ok(Self { api, id })
    }

    pub(super) fn end(self) -> Result<()> {
        self.api.delete(&self.id)
    }
}

impl Contestant for Next<'_> {
    fn name(&self) -> &str {
        SESSIONS
    }

    fn sample(&self) -> Result<Sample> {
        self.api.python(&self.id, "x + 1", "42").map(Sample::from)
    }
}
