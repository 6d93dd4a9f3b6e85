//! A session that begins with another one's files without copying them, where its sandbox can.
//!
//! The disk of a sandbox cannot be exchanged while it is mounted in it. So the new session, in which nothing has run yet,
//! has another sandbox in the place of its first one.

use super::live::Live;
use super::saved::{MAX_DEPTH, MAX_ENTRIES, Saved};
use super::{Sessions, sandbox_spec};
use crate::pool::Taken;
use cofferdam_backend::SandboxSpec;
use std::sync::Arc;

impl Sessions {
    /// Has a session that nobody has used yet begin with the files of a frozen one. Nothing where that is not possible,
    /// or not the same as to copy them: then nothing was done.
    pub(super) async fn share(&self, from: &Live, to: &Arc<Live>) -> Option<Saved> {
        let files = from.sandbox.share_files().await.ok()?;
        if files.entries > MAX_ENTRIES || files.depth > MAX_DEPTH {
            return None;
        }
        let saved = Saved { entries: files.entries, bytes: files.bytes, skipped: 0 };
        // What a session is known by outside stays as it is.
        let id = to.sandbox_id().clone();
        let spec = SandboxSpec { files: Some(Arc::new(files)), ..sandbox_spec(id.clone(), to.spec()) };
        let made = self.pool_of(to.spec()).0.make_alone(spec).await;
        let (sandbox, kernel) = (made.ok()?, to.compiled());
        let taken = Taken { id, sandbox, interpreter: None, kernel };
        let live = Arc::new(Live::new(to.spec().clone(), taken));
        if !self.exchange(to, &live) {
            // It has ended meanwhile, which whoever copies is told.
            let _ = live.sandbox.destroy().await;
            return None;
        }
        live.watch_over();
        // A session stands still for this: nobody waits for the end of a sandbox that was empty.
        let before = Arc::clone(to);
        tokio::spawn(async move { before.end().await });
        Some(saved)
    }

    fn exchange(&self, before: &Arc<Live>, after: &Arc<Live>) -> bool {
        let mut live = self.live();
        match live.values_mut().find(|found| Arc::ptr_eq(found, before)) {
            Some(found) => {
                *found = Arc::clone(after);
                true
            }
            None => false,
        }
    }
}
