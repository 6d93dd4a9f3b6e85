//! What the client says, as the one line that the user reads.

use crate::exit::{Failure, OURS};
use cofferdam_client::ClientError;
use std::error::Error;

/// A refusal says what to do in its own words; of what never became an answer, the cause is what helps.
pub(in crate::commands) fn failure(error: ClientError) -> Failure {
    let message = match &error {
        ClientError::Unreachable { url, source } => {
            let mut cause: &dyn Error = source;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            format!(
                "no answer from {url}: {cause}; is the service running, and is COFFERDAM_URL its address?"
            )
        }
        other => other.to_string(),
    };
    Failure { code: OURS, message }
}
