//! Verbs on keys.

use crate::{Client, Result};
use cofferdam_api::{KeyList, KeyRequest, NewKey};
use reqwest::Method;

impl Client {
    /// Makes a key. If the answer is lost, a key may have been made that nobody has; it is not tried again.
    pub async fn key_create(&self, request: &KeyRequest) -> Result<NewKey> {
        self.call(Method::POST, &["v1", "keys"]).body(request)?.json().await
    }

    pub async fn key_list(&self) -> Result<KeyList> {
        self.call(Method::GET, &["v1", "keys"]).json().await
    }

    /// Takes a key back.
    pub async fn key_delete(&self, id: &str) -> Result<()> {
        self.call(Method::DELETE, &["v1", "keys", id]).gone().await
    }
}
