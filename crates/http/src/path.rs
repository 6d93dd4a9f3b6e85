//! The id in a path.

use crate::answer::Problem;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use cofferdam_api::ErrorCode;
use cofferdam_core::InvalidValue;

/// An id that something could have. Anything else is nobody's, and never gets as far as the store.
pub(crate) struct Id(pub(crate) String);

/// Longer than any id.
const MAX_BYTES: usize = 64;

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) if is_plain(&id) => Ok(Self(id)),
            _ => Err(nobodys()),
        }
    }
}

/// An id, and the number of something that is the thing's own.
pub(crate) struct NumberedId(pub(crate) String, pub(crate) u64);

impl<S: Send + Sync> FromRequestParts<S> for NumberedId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Ok(Path((id, number))) = Path::<(String, String)>::from_request_parts(parts, state).await else {
            return Err(nobodys());
        };
        if !is_plain(&id) {
            return Err(nobodys());
        }
        match number.parse() {
            Ok(number) => Ok(Self(id, number)),
            Err(_) => {
                let number: String = number.chars().take(MAX_BYTES).collect();
                Err(InvalidValue::new("number", number, "it must be a whole number").into())
            }
        }
    }
}

fn is_plain(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    id.len() <= MAX_BYTES && id.bytes().all(plain)
}

fn nobodys() -> Problem {
    let fix = "check the id, and whose it is";
    Problem::new(ErrorCode::NotFound, "there is nothing with such an id", fix)
}
