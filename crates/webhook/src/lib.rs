//! Signed messages to addresses that somebody else has named.
//!
//! Such an address is hostile until it was looked at: a name may lead into the operator's own network, or lead
//! somewhere else each time that it is asked for. So a name is resolved once, every address that it has is looked at,
//! and what was looked at is what is dialled. No redirect is followed, no proxy is used, no answer is read.

mod address;
mod send;
mod sign;
mod url;

pub use address::{Network, is_public};
pub use send::{Lookup, Message, SendError, Sender, SystemLookup};
pub use sign::sign;
pub use url::check_url;

/// The headers of a message.
pub const EVENT_ID_HEADER: &str = "x-cofferdam-event-id";
pub const TIMESTAMP_HEADER: &str = "x-cofferdam-timestamp";
pub const SIGNATURE_HEADER: &str = "x-cofferdam-signature";
