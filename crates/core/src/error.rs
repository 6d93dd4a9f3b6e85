//! One error for every value that a person or a client got wrong.

use thiserror::Error;

/// A value that cannot be accepted, with the field it was given for and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {value:?} is not valid: {fix}")]
pub struct InvalidValue {
    pub field: String,
    pub value: String,
    pub fix: String,
}

impl InvalidValue {
    pub fn new(field: &str, value: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { field: field.to_owned(), value: value.into(), fix: fix.into() }
    }
}
