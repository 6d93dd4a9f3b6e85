//! `file.read`, of those that are looked for.

use super::files::{parse, refused};
use crate::session_worker::{FileSearch, SessionFailure};
use crate::{Control, Result};
use cofferdam_api::FileMatches;
use cofferdam_core::InvalidValue;
use cofferdam_policy::Permit;
use serde_json::json;

impl Control {
    pub async fn search_files(
        &self,
        permit: &Permit,
        session: &str,
        path: &str,
        search: FileSearch,
    ) -> Result<FileMatches> {
        let path = parse("path", path)?;
        let details = json!({"path": path.as_str(), "verb": "search"});
        let at = self.reach_file(permit, session, "file.read", details).await?;
        let patterns = [("name", search.name.clone()), ("content", search.content.clone())];
        let found = at.sessions()?.search_files(&at.placed, &path, search).await;
        found.map_err(|failure| match failure {
            // The message begins with the field that is wrong.
            SessionFailure { code, message } if code == "invalid_pattern" => {
                let (field, why) = message.split_once(": ").unwrap_or(("name", &message));
                let known = patterns.into_iter().find(|(name, _)| *name == field);
                let (field, value) = known.map_or(("name", None), |(name, value)| (name, value));
                InvalidValue::new(field, value.unwrap_or_default(), why).into()
            }
            other => refused(other),
        })
    }
}
