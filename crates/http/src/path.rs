//! The id in a path.

use crate::answer::Problem;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use cofferdam_api::ErrorCode;

/// An id that something could have. Anything else is nobody's, and never gets as far as the store.
pub(crate) struct Id(pub(crate) String);

/// Longer than any id.
const MAX_BYTES: usize = 64;

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) if id.len() <= MAX_BYTES && id.bytes().all(plain) => Ok(Self(id)),
            _ => {
                let fix = "check the id, and whose it is";
                Err(Problem::new(ErrorCode::NotFound, "there is nothing with such an id", fix))
            }
        }
    }
}
