//! Runs one case so that a hang is a failure with the case's name, whatever it is that hangs.

use crate::Backend;
use std::io::Write;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{panic, thread};

/// The longest case takes seconds on a quiet machine; the suite also runs in parallel in an emulated one.
const CASE_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs a case on a runtime and a thread of its own: a backend that blocks its caller is caught, too.
///
/// One that is listed in `differs` has to fail, and says why it does.
pub fn run_case<Make, Case>(
    name: &'static str,
    differs: &[(&'static str, &'static str)],
    make_backend: Make,
    case: Case,
) where
    Make: AsyncFnOnce() -> Arc<dyn Backend> + Send + 'static,
    Case: AsyncFnOnce(&dyn Backend) + Send + 'static,
{
    let (done, is_done) = mpsc::channel::<()>();
    let run = move || {
        let _done = done;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        runtime.block_on(async {
            let backend = make_backend().await;
            case(&*backend).await;
        });
        // Waiting for blocking calls that never return is not this thread's business.
        runtime.shutdown_background();
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run).expect("a thread");
    let ended = match is_done.recv_timeout(CASE_TIMEOUT) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name}: not done after {CASE_TIMEOUT:?}"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => thread.join(),
    };
    let reason = differs.iter().find(|(case, _)| *case == name).map(|(_, reason)| *reason);
    match (ended, reason) {
        (Ok(()), None) => note(name, "passed", ""),
        (Ok(()), Some(reason)) => panic!("{name} holds, and is listed as differing: {reason}"),
        (Err(_), Some(reason)) => note(name, "differs", reason),
        (Err(panic), None) => panic::resume_unwind(panic),
    }
}

/// Says how a case ended, on stdout and in the file that COFFERDAM_CONFORMANCE names.
fn note(name: &str, how: &str, reason: &str) {
    println!("{how} {name} {reason}");
    let Some(path) = std::env::var_os("COFFERDAM_CONFORMANCE") else { return };
    let tests = std::env::current_exe().ok();
    let tests = tests.as_deref().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy();
    let who = tests.rsplit_once('-').map_or(&*tests, |(name, _)| name);
    let line = format!("{who}\t{name}\t{how}\t{reason}\n");
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.expect("the file that COFFERDAM_CONFORMANCE names");
}
