//! The client and the commands that use it, against a real server and over connections that break.

#[path = "remote/client.rs"]
mod client;
#[path = "remote/commands.rs"]
mod commands;
#[path = "remote/follow.rs"]
mod follow;
#[path = "remote/proxy.rs"]
mod proxy;
#[allow(dead_code)] // the tests of the service itself use more of it
#[path = "serve/server.rs"]
mod server;
#[path = "remote/sessions.rs"]
mod sessions;
