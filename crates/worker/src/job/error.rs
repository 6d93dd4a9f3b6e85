//! Why a job has no result. Whatever its own code did is a result, and not here.

use cofferdam_backend::BackendError;
use cofferdam_core::InvalidValue;
use std::io;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum JobError {
    /// The request is wrong; nothing was made.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),

    #[error("no random bytes for an id")]
    Id(#[source] io::Error),

    /// The sandbox could not be made.
    #[error("the sandbox could not be made")]
    Create(#[source] BackendError),

    #[error("{path} could not be put into the sandbox")]
    FileIn { path: String, source: BackendError },

    #[error("the project cannot be used: {why}")]
    Project { why: String },

    /// The program could not be started. `NotFound` and `NotPermitted` are about the program itself.
    #[error("the program could not be started")]
    Start(#[source] BackendError),

    #[error("the working directory cannot be used")]
    Workdir(#[source] BackendError),

    #[error("the image has no {program}, which {language} needs; {}", list(present))]
    MissingRuntime { language: &'static str, program: &'static str, present: Vec<&'static str> },
}

fn list(present: &[&str]) -> String {
    match present {
        [] => "it has none of the known languages".to_owned(),
        present => format!("it has {}", present.join(", ")),
    }
}
