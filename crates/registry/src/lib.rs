//! Images from registries: the distribution API, as far as it takes to get an image. And single files whose digest is
//! known, by the same rules.
//!
//! A registry is as little trusted as an image: every digest is checked, every size is bounded, and what was got is
//! taken in by the store as any other archive is. What was cut goes on where it ended, in the same pull or in a later
//! one.
//!
//! It reads no environment and touches no terminal; who logs in as whom is its caller's to say.

mod auth;
mod client;
mod error;
mod fetch;
mod pull;
mod reference;

pub use auth::Credentials;
pub use error::{PullError, Result};
pub use fetch::fetch;
pub use pull::{Progress, Pull, pull};
pub use reference::Reference;
