//! One interpreter, as the host holds it.

use crate::frame::Frames;
use crate::interrupt::Interrupter;
use crate::language::KernelLanguage;
use crate::output::Output;
use cofferdam_backend::{ExitStatus, Process, Sandbox, Stream, Writer};
use cofferdam_core::{InvalidValue, Outcome};
use std::future::Future;
use std::sync::Weak;
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::io::{ReadHalf, WriteHalf};

/// SIGKILL, on every Linux.
pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGINT: i32 = 2;

/// How long a killed process may take to be gone; the kernel is given up then, in any case.
const KILL_MAX: Duration = Duration::from_secs(5);

/// An interpreter that runs cells one after another and keeps its state. Dropping it kills it.
pub struct Kernel {
    pub(crate) language: KernelLanguage,
    pub(crate) version: String,
    pub(crate) process: Box<dyn Process>,
    pub(crate) answers: ReadHalf<Box<dyn Stream>>,
    pub(crate) requests: WriteHalf<Box<dyn Stream>>,
    pub(crate) frames: Frames,
    /// A shell reads a line from here for each cell.
    pub(crate) lines: Option<Writer>,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
    pub(crate) interrupter: Interrupter,
    pub(crate) grace: Duration,
    pub(crate) count: u64,
    /// Cleared while a cell runs, so that one that was abandoned is noticed.
    pub(crate) is_sound: bool,
    pub(crate) sandbox: Weak<dyn Sandbox>,
    /// The sandbox's kills for want of memory before this kernel was there.
    pub(crate) oom_kills: u64,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel")
            .field("language", &self.language)
            .field("process", &self.process)
            .field("count", &self.count)
            .field("is_sound", &self.is_sound)
            .finish_non_exhaustive()
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // Nobody waits here; a backend that needs to be waited for does it when the connection closes.
        let kill = self.process.signal(SIGKILL);
        let _ = std::pin::pin!(kill).poll(&mut Context::from_waker(Waker::noop()));
    }
}

impl Kernel {
    pub fn language(&self) -> KernelLanguage {
        self.language
    }

    /// The interpreter's version, by its own word.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Runs the cells that follow in another language of the same interpreter.
    pub fn switch(&mut self, language: KernelLanguage) -> Result<(), InvalidValue> {
        if !self.language.shares_kernel_with(language) {
            let fix = format!("this kernel runs {}; start one for it", self.language);
            return Err(InvalidValue::new("language", language.as_str(), fix));
        }
        self.language = language;
        Ok(())
    }

    /// Stops the running cell, while `run` is pending.
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    /// Whether it can run another cell. One whose process has ended in between is noticed by the next `run`.
    pub fn is_alive(&self) -> bool {
        self.is_sound
    }

    /// The process, for whoever looks at processes.
    pub fn process_id(&self) -> cofferdam_backend::ProcessId {
        self.process.id()
    }

    /// Ends it, and waits until it is gone.
    pub async fn stop(mut self) {
        self.kill().await;
    }

    /// Kills the process and its group; how it ended, where that is known in time.
    pub(crate) async fn kill(&mut self) -> ExitStatus {
        self.is_sound = false;
        let _ = self.process.signal(SIGKILL).await;
        let ended = tokio::time::timeout(KILL_MAX, self.process.wait()).await;
        ended.ok().and_then(Result::ok).unwrap_or(ExitStatus::Lost)
    }

    /// What a wait status means here.
    pub(crate) async fn cause(&self, status: ExitStatus) -> Outcome {
        match status {
            ExitStatus::Exited(code) => Outcome::Exited { code },
            ExitStatus::Signaled(SIGKILL) if self.ran_out_of_memory().await => Outcome::OomKilled,
            ExitStatus::Signaled(signal) => Outcome::Signaled { signal },
            ExitStatus::Lost => Outcome::Lost,
        }
    }

    async fn ran_out_of_memory(&self) -> bool {
        let Some(sandbox) = self.sandbox.upgrade() else { return false };
        let stats = sandbox.stats().await;
        stats.is_ok_and(|stats| stats.oom_kills.is_some_and(|kills| kills > self.oom_kills))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Cell, CellSink};

    /// Compiles only while cells can be run by tasks of any thread.
    #[allow(dead_code, reason = "it is there to be compiled")]
    fn a_running_cell_can_move_between_threads<'k>(
        kernel: &'k mut Kernel,
        sink: &'k mut dyn CellSink,
    ) -> impl Future<Output = impl Send> + Send + 'k {
        kernel.run(Cell::default(), sink)
    }
}
