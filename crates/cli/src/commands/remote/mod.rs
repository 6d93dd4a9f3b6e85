//! The commands that speak with a service: what they share, which is the way to it and how answers are shown.

pub(super) mod failure;
pub(super) mod image;
pub(super) mod job;
pub(super) mod key;
mod progress;
pub(super) mod secret;
pub(super) mod session;
pub(super) mod snapshot;
pub(super) mod table;
pub(super) mod tenant;

use crate::args::RemoteArgs;
use crate::exit::Failure;
use cofferdam_api::SecretUse;
use cofferdam_client::Client;
use serde::Serialize;
use std::future::Future;
use std::io::Write;

const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// The service that was named, by an option or by the environment.
pub(super) fn connect(args: &RemoteArgs) -> Result<Client, Failure> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let url = args.url.clone().or_else(|| set("COFFERDAM_URL")).unwrap_or_else(|| DEFAULT_URL.to_owned());
    let key = match &args.key_file {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| Failure::new(format!("--key-file {}: {error}", path.display())))?,
        None => set("COFFERDAM_API_KEY").ok_or_else(|| {
            Failure::new("there is no key: set COFFERDAM_API_KEY, or give --key-file, such as DATA/admin.key")
        })?,
    };
    Ok(Client::new(&url, &key)?)
}

/// Secrets as they are named on the line: `NAME`, or `NAME:PATH`. A name has no colon in it.
pub(super) fn secret_uses(given: &[String]) -> Option<Vec<SecretUse>> {
    let one = |text: &String| match text.split_once(':') {
        Some((name, path)) => SecretUse { name: name.to_owned(), path: Some(path.to_owned()) },
        None => SecretUse { name: text.clone(), path: None },
    };
    (!given.is_empty()).then(|| given.iter().map(one).collect())
}

/// Runs what asks the service, on a runtime of its own.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// One line of JSON on stdout.
pub(super) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&(serde_json::to_string(value)? + "\n"))
}

pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
