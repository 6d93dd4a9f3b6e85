//! The host's side of a helper: a connection that carries requests and streams, and handles on top of it that
//! keep what the traits of a sandbox promise. Whoever makes the container hands over two streams of bytes.
//!
//! Nothing that comes from inside is trusted: sizes are bounded, unknown numbers are passed over, and bytes that
//! are no frame end the connection.

mod channel;
mod connection;
mod files;
mod port;
mod process;
mod sandbox;
mod watch;
mod words;

pub use connection::{Connection, Gone};
pub use sandbox::{Contained, Container};
