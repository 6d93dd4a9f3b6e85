//! Who a token says that its bearer is. A token is believed when a key that the operator named has signed it, by the
//! algorithm of that key, for this service, by the one issuer, and now.
//!
//! Nothing in a token chooses how it is checked: its `kid` picks among keys that are here already, its `alg` has to
//! be the key's, and keys or addresses inside it are refused. Whatever cannot be decided is a refusal.

mod claims;
mod error;
mod keys;
mod provider;
mod settings;
mod source;
mod strict;
mod verify;

pub use claims::Bearer;
pub use error::TokenError;
pub use settings::{ClaimNames, Jwks, JwtSettings};
pub use verify::Verifier;

/// Whether a text could be a token: three parts, divided by dots.
pub fn looks_like_token(text: &str) -> bool {
    text.bytes().filter(|byte| *byte == b'.').count() == 2
}
