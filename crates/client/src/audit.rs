//! What happened, and whether the server is there.

use crate::error::ClientError;
use crate::{Client, Result};
use cofferdam_api::{AuditList, Health, SignedDocument};
use reqwest::{Method, Response};

impl Client {
    pub async fn audit_list(&self, after_seq: i64, limit: u32) -> Result<AuditList> {
        let call = self.call(Method::GET, &["v1", "audit"]);
        call.query("after_seq", &after_seq.to_string()).query("limit", &limit.to_string()).json().await
    }

    /// The last entry of the tenant's chain, signed.
    pub async fn audit_head(&self) -> Result<SignedDocument> {
        self.call(Method::GET, &["v1", "audit", "head"]).json().await
    }

    /// The tenant's chain as a file, up to an entry or to the last.
    pub async fn audit_export(&self, up_to_seq: Option<i64>) -> Result<Export> {
        let mut call = self.call(Method::GET, &["v1", "audit", "export"]).stream();
        if let Some(seq) = up_to_seq {
            call = call.query("up_to_seq", &seq.to_string());
        }
        Ok(Export(call.open().await?))
    }

    /// Whether the server can take work.
    pub async fn ready(&self) -> Result<Health> {
        self.call(Method::GET, &["readyz"]).json().await
    }
}

/// A chain on its way here.
#[derive(Debug)]
pub struct Export(Response);

impl Export {
    /// The next bytes; none at the end. A chain that is cut off is an error, not an end.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let url = self.0.url().path().to_owned();
        let chunk = self.0.chunk().await;
        let chunk = chunk.map_err(|source| ClientError::Unreachable { url, source: source.without_url() })?;
        Ok(chunk.map(|chunk| chunk.to_vec()))
    }
}
