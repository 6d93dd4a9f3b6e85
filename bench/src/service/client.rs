//! A job by way of the service, as a contestant.

use crate::contestant::{Contestant, Sample};
use crate::failure::{Failure, Result};
use crate::http::Http;

use super::SERVICE;

const PATH: &str = "/v1/jobs?wait_ms=30000";
const BODY: &str = r#"{"language":"python","code":"print(1)"}"#;

#[derive(Debug)]
pub(super) struct Client(Http);

impl Client {
    pub(super) fn new(address: &str, key: &str) -> Self {
        Self(Http::new(address, key))
    }

    /// Calls once, and is content only with what the program prints.
    pub(super) fn check(&self) -> Result<()> {
        self.sample().map(drop)
    }
}

impl Contestant for Client {
    fn name(&self) -> &str {
        SERVICE
    }

    fn sample(&self) -> Result<Sample> {
        let answer = self.0.call("POST", PATH, BODY)?;
        match answer.json(200)?["result"]["stdout"] == "1\n" {
            true => Ok(answer.took.into()),
            false => Err(Failure::new(String::from_utf8_lossy(&answer.body))),
        }
    }
}
