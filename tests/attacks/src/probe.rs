//! What comes out of a probe.

use crate::lab::Cell;
use cofferdam_backend::{ExitStatus, Process, Reader};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// The exit codes of the probe's contract.
const HELD: i32 = 0;
const BROKE: i32 = 10;

/// More than any probe says; floods are judged by drivers of their own.
const KEPT_BYTES: usize = 4 << 20;

/// Probes end by an alarm of their own before that.
const AT_MOST: Duration = Duration::from_secs(180);

/// So many attempts are named where several say the same.
const LINES_SHOWN: usize = 4;

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) text: Vec<u8>,
    pub(crate) oom_kills: u64,
}

impl Output {
    pub(crate) fn held(&self) -> bool {
        self.status == ExitStatus::Exited(HELD)
    }

    pub(crate) fn broke(&self) -> bool {
        self.status == ExitStatus::Exited(BROKE)
    }

    pub(crate) fn contains(&self, needle: &str) -> bool {
        self.text.windows(needle.len()).any(|window| window == needle.as_bytes())
    }

    /// How it ended, with the line that says most.
    pub(crate) fn summary(&self) -> String {
        let text = String::from_utf8_lossy(&self.text);
        let said = |word: &str| -> Option<String> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(word));
            let lines: Vec<&str> = lines.take(LINES_SHOWN).map(str::trim).collect();
            (!lines.is_empty()).then(|| lines.join("; "))
        };
        let line = said("broke:").or_else(|| said("cannot:")).or_else(|| said("held:")).unwrap_or_default();
        match self.status {
            ExitStatus::Exited(HELD | BROKE) if !line.is_empty() => line,
            status => format!("{status:?} {line}"),
        }
    }
}

/// Waits for the end of a process and of its output.
pub(crate) async fn finish(process: &dyn Process, cell: &Cell) -> Result<Output, String> {
    let (out, error) = (process.take_stdout(), process.take_stderr());
    let all = async { tokio::join!(read(out), read(error), process.wait()) };
    let (mut text, error, status) = timeout(AT_MOST, all).await.map_err(|_| "it never ended".to_owned())?;
    text.extend(error);
    let status = status.map_err(|e| format!("wait: {e}"))?;
    let stats = cell.sandbox.stats().await;
    Ok(Output { status, text, oom_kills: stats.ok().and_then(|stats| stats.oom_kills).unwrap_or(0) })
}

/// Everything up to a limit; the rest is read and dropped.
async fn read(reader: Option<Reader>) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut reader) = reader else { return kept };
    let mut buffer = vec![0; 64 << 10];
    while let Ok(n @ 1..) = reader.read(&mut buffer).await {
        let room = KEPT_BYTES.saturating_sub(kept.len()).min(n);
        kept.extend_from_slice(&buffer[..room]);
    }
    kept
}
