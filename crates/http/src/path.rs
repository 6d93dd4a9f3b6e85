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

fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= MAX_BYTES && text.bytes().all(plain)
}

fn nobodys() -> Problem {
    let fix = "check the id, and whose it is";
    Problem::new(ErrorCode::NotFound, "there is nothing with such an id", fix)
}

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) if is_id(&id) => Ok(Self(id)),
            _ => Err(nobodys()),
        }
    }
}

/// A name that somebody gave to a thing. Whether it could be one is said by whoever has such things.
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) if name.len() <= MAX_BYTES => Ok(Self(name)),
            _ => Err(nobodys()),
        }
    }
}

/// The ids of a thing, and of something that belongs to it.
pub(crate) struct TwoIds(pub(crate) String, pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for TwoIds {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<(String, String)>::from_request_parts(parts, state).await {
            Ok(Path((id, of))) if is_id(&id) && is_id(&of) => Ok(Self(id, of)),
            _ => Err(nobodys()),
        }
    }
}

/// The id of a thing, and a name that somebody gave to a part of it.
pub(crate) struct IdAndName(pub(crate) String, pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for IdAndName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<(String, String)>::from_request_parts(parts, state).await {
            Ok(Path((id, name))) if is_id(&id) => Ok(Self(id, name)),
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
        if !is_id(&id) {
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
