//! Runs one case so that a hang is a failure with the case's name, whatever it is that hangs.

use crate::Backend;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{panic, thread};

/// The longest case takes seconds on a quiet machine; the suite also runs in parallel in an emulated one.
const CASE_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs a case on a runtime and a thread of its own: a backend that blocks its caller is caught, too.
pub fn run_case<Make, Case>(name: &'static str, make_backend: Make, case: Case)
where
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
    match is_done.recv_timeout(CASE_TIMEOUT) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name}: not done after {CASE_TIMEOUT:?}"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
            if let Err(panic) = thread.join() {
                panic::resume_unwind(panic);
            }
        }
    }
}
