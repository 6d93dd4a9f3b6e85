//! What happened, and whether the server is there.

use crate::{Client, Result};
use cofferdam_api::{AuditList, Health};
use reqwest::Method;

impl Client {
    pub async fn audit_list(&self, after_seq: i64, limit: u32) -> Result<AuditList> {
        let call = self.call(Method::GET, &["v1", "audit"]);
        call.query("after_seq", &after_seq.to_string()).query("limit", &limit.to_string()).json().await
    }

    /// Whether the server can take work.
    pub async fn ready(&self) -> Result<Health> {
        self.call(Method::GET, &["readyz"]).json().await
    }
}
