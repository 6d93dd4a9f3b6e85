//! Sessions that only pretend: they are there, and have nothing in them.

use async_trait::async_trait;
use cofferdam_api::{
    ArchiveWritten, FileInfo, FileList, FileMatches, ProcessRequest, ProcessView, TerminalSize,
};
use cofferdam_control::{
    ArchiveKind, FileReader, FileSearch, FileWriter, Hold, Placed, ProcessTold, SavedFiles, SecretFile,
    SessionFailure, SessionOrder, SessionStarted, SessionWorker, StepEnd, StepOrder, StepSink, WatchTold,
};
use cofferdam_core::{GuestPath, SessionId};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;

/// What becomes of a session's files is noted, in its order.
#[derive(Default)]
pub(crate) struct IdleSessions {
    journal: Arc<Mutex<Vec<&'static str>>>,
    /// What a copy ends with, where it fails.
    copy_fails: Mutex<Option<&'static str>>,
    /// How many more can be started, where that has an end.
    starts_left: Mutex<Option<usize>>,
}

impl IdleSessions {
    fn note(&self, word: &'static str) {
        self.journal.lock().unwrap().push(word);
    }

    /// What was noted since somebody last asked.
    pub(crate) fn noted(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.journal.lock().unwrap())
    }

    pub(crate) fn fail_starts_after(&self, count: Option<usize>) {
        *self.starts_left.lock().unwrap() = count;
    }

    pub(crate) fn fail_copies(&self, code: Option<&'static str>) {
        *self.copy_fails.lock().unwrap() = code;
    }
}

/// Notes its end.
struct Thaws(Arc<Mutex<Vec<&'static str>>>);

impl Drop for Thaws {
    fn drop(&mut self) {
        self.0.lock().unwrap().push("thaw");
    }
}

fn nothing() -> SessionFailure {
    SessionFailure::new("not_found", "there is nothing in it")
}

#[async_trait]
impl SessionWorker for IdleSessions {
    async fn start(&self, _: SessionOrder) -> Result<SessionStarted, SessionFailure> {
        self.note("start");
        if let Some(left) = &mut *self.starts_left.lock().unwrap() {
            *left = left.checked_sub(1).ok_or_else(|| SessionFailure::new("failed", "no more sandboxes"))?;
        }
        Ok(SessionStarted { sandbox_id: "sbx-aaaaaaaaaaaaaaaa".to_owned() })
    }

    async fn step(&self, _: StepOrder, _: &mut dyn StepSink, _: watch::Receiver<Option<String>>) -> StepEnd {
        StepEnd::Errored(SessionFailure::new("idle", "it runs nothing"))
    }

    async fn restart_context(&self, _: &SessionId, _: i64, _: &str, _: &str) -> Result<(), SessionFailure> {
        Err(nothing())
    }

    async fn stat_file(&self, _: &Placed, _: &GuestPath) -> Result<FileInfo, SessionFailure> {
        Err(nothing())
    }

    async fn read_file(&self, _: &Placed, _: &GuestPath) -> Result<(FileInfo, FileReader), SessionFailure> {
        Err(nothing())
    }

    async fn read_archive(
        &self,
        _: &Placed,
        _: &GuestPath,
        _: ArchiveKind,
    ) -> Result<FileReader, SessionFailure> {
        Err(nothing())
    }

    async fn write_archive(
        &self,
        _: &Placed,
        _: &GuestPath,
        _: ArchiveKind,
        _: FileReader,
    ) -> Result<ArchiveWritten, SessionFailure> {
        Err(nothing())
    }

    async fn search_files(
        &self,
        _: &Placed,
        _: &GuestPath,
        _: FileSearch,
    ) -> Result<FileMatches, SessionFailure> {
        Err(nothing())
    }

    async fn watch_files(
        &self,
        _: &Placed,
        _: &GuestPath,
        _: Option<u64>,
        _: Duration,
    ) -> Result<WatchTold, SessionFailure> {
        Err(nothing())
    }

    async fn write_file(
        &self,
        _: &Placed,
        _: &GuestPath,
        _: u32,
        _: FileReader,
    ) -> Result<u64, SessionFailure> {
        Err(nothing())
    }

    async fn list_files(
        &self,
        _: &Placed,
        _: &GuestPath,
        _: usize,
        _: usize,
    ) -> Result<FileList, SessionFailure> {
        Err(nothing())
    }

    async fn make_folder(&self, _: &Placed, _: &GuestPath) -> Result<(), SessionFailure> {
        Err(nothing())
    }

    async fn move_file(&self, _: &Placed, _: &GuestPath, _: &GuestPath) -> Result<(), SessionFailure> {
        Err(nothing())
    }

    async fn remove_file(&self, _: &Placed, _: &GuestPath, _: bool) -> Result<(), SessionFailure> {
        Err(nothing())
    }

    async fn start_process(&self, _: &Placed, _: ProcessRequest) -> Result<ProcessView, SessionFailure> {
        Err(nothing())
    }

    async fn list_processes(&self, _: &Placed) -> Result<Vec<ProcessView>, SessionFailure> {
        Ok(Vec::new())
    }

    async fn process_output(
        &self,
        _: &Placed,
        _: u64,
        _: u64,
        _: Duration,
    ) -> Result<ProcessTold, SessionFailure> {
        Err(nothing())
    }

    async fn write_process(&self, _: &Placed, _: u64, _: &[u8], _: bool) -> Result<(), SessionFailure> {
        Err(nothing())
    }

    async fn signal_process(&self, _: &Placed, _: u64, _: i32) -> Result<(), SessionFailure> {
        Err(nothing())
    }

    async fn resize_process(&self, _: &Placed, _: u64, _: TerminalSize) -> Result<(), SessionFailure> {
        Err(nothing())
    }

    async fn freeze(&self, _: &Placed) -> Result<(), SessionFailure> {
        Ok(())
    }

    async fn thaw(&self, _: &Placed) -> Result<(), SessionFailure> {
        Ok(())
    }

    async fn hold(&self, _: &Placed) -> Result<Hold, SessionFailure> {
        self.note("hold");
        Ok(Hold::of(Thaws(Arc::clone(&self.journal))))
    }

    async fn save(&self, _: &Placed, mut to: FileWriter, _: u64) -> Result<SavedFiles, SessionFailure> {
        self.note("save");
        to.write_all(b"nothing").await.map_err(|_| nothing())?;
        Ok(SavedFiles::default())
    }

    async fn restore(&self, _: &Placed, _: FileReader) -> Result<(), SessionFailure> {
        self.note("restore");
        Ok(())
    }

    async fn copy(&self, _: &Placed, _: &Placed) -> Result<(), SessionFailure> {
        self.note("copy");
        match *self.copy_fails.lock().unwrap() {
            Some(code) => Err(SessionFailure::new(code, "writing /workspace/a: No space left on device")),
            None => Ok(()),
        }
    }

    async fn give_secrets(&self, _: &Placed, _: Vec<SecretFile>) -> Result<(), SessionFailure> {
        Ok(())
    }

    async fn terminate(&self, _: &SessionId, _: i64) {
        self.note("terminate");
    }
}
