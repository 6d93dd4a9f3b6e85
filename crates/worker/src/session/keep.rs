//! A session stands still, and its files are written away or put back.

use super::live::Live;
use super::saved::{self, Saved};
use super::{SessionError, Sessions};
use cofferdam_backend::{Backend, BackendError, Reader};
use cofferdam_core::{GuestPath, SessionId};
use tokio::io::AsyncWrite;

impl Sessions {
    /// Stops everything in a session until it is thawed as often as it was frozen.
    pub async fn freeze(&self, id: &SessionId, generation: i64) -> Result<(), SessionError> {
        self.find(id, generation)?.freeze().await
    }

    pub async fn thaw(&self, id: &SessionId, generation: i64) -> Result<(), SessionError> {
        self.find(id, generation)?.thaw().await
    }

    /// Writes a session's files away, at most so many bytes of them. It should be frozen.
    pub async fn save(
        &self,
        id: &SessionId,
        generation: i64,
        to: impl AsyncWrite + Send + Unpin,
        most: u64,
    ) -> Result<Saved, SessionError> {
        let live = self.find(id, generation)?;
        saved::save(&*live.sandbox, to, most).await
    }

    /// Puts files into the workspace of a session that nobody has used yet.
    pub async fn restore(&self, id: &SessionId, generation: i64, from: Reader) -> Result<(), SessionError> {
        let live = self.find(id, generation)?;
        saved::restore(&*live.sandbox, from).await
    }

    /// Brings the files of a frozen session into another that nobody has used yet: shared, where that is the same, else
    /// copied. `unsupported`, before
    /// anything was done, where sandboxes do not hand files over: then they go by `save` and `restore`.
    pub async fn copy(&self, from: (&SessionId, i64), to: (&SessionId, i64)) -> Result<Saved, SessionError> {
        let (from, to) = (self.find(from.0, from.1)?, self.find(to.0, to.1)?);
        match self.share(&from, &to).await {
            Some(saved) => Ok(saved),
            None => saved::copy(&from.sandbox, &to.sandbox, &self.copying).await,
        }
    }

    /// Puts a secret where only the session's own processes can read it.
    pub async fn give_secret(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
        content: Reader,
    ) -> Result<(), SessionError> {
        let live = self.find(id, generation)?;
        live.check_secrets()?;
        live.sandbox.write_file(path, SECRET_MODE, content).await?;
        Ok(())
    }
}

/// The mode of a secret's file: for its owner alone.
pub const SECRET_MODE: u32 = 0o400;

impl Live {
    async fn freeze(&self) -> Result<(), SessionError> {
        let mut times = self.frozen.lock().await;
        if *times == 0
            && let Err(error) = self.sandbox.pause().await
        {
            // Some of it may stand still already.
            let _ = self.sandbox.resume().await;
            return Err(error.into());
        }
        *times += 1;
        Ok(())
    }

    async fn thaw(&self) -> Result<(), SessionError> {
        let mut times = self.frozen.lock().await;
        if *times == 1 {
            self.sandbox.resume().await?;
        }
        *times = times.saturating_sub(1);
        Ok(())
    }
}

/// Refuses secrets for a backend that has no place for them, or no way there of its own.
pub fn check_secrets(backend: &dyn Backend) -> Result<(), BackendError> {
    match backend.capabilities().secrets {
        true => Ok(()),
        false => {
            let what = "take secrets: its daemon is on another machine, and is reached in the clear";
            Err(BackendError::Unsupported { backend: backend.name(), what })
        }
    }
}
