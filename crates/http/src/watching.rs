//! Follows what changes in a folder of a session, for whichever form it is told in.

use crate::answer::Problem;
use cofferdam_api::{TruncatedData, WatchEvent, WatchReadyData};
use cofferdam_control::{Control, Result, WatchTold};
use cofferdam_core::GuestPath;
use cofferdam_policy::Permit;
use std::time::Duration;

/// How long one look waits for news.
const LOOK: Duration = Duration::from_secs(10);

pub(crate) struct Follower {
    control: Control,
    permit: Permit,
    session: String,
    path: GuestPath,
    after: u64,
    /// Whether it goes on after what there is now.
    waits: bool,
    /// What there was at the beginning, and whether the watch began with it.
    first: Option<(bool, WatchTold)>,
    is_over: bool,
}

fn seq(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

impl Follower {
    /// Begins to watch a folder, or goes on after a number.
    pub(crate) async fn begin(
        control: Control,
        permit: Permit,
        session: String,
        path: &str,
        after: Option<u64>,
        waits: bool,
    ) -> Result<Self> {
        let (path, told) = control.watch_files(&permit, &session, path, after).await?;
        let begins = after.is_none();
        let after = after.unwrap_or(told.last_seq);
        let first = Some((begins, told));
        Ok(Self { control, permit, session, path, after, waits, first, is_over: false })
    }

    /// What comes next; nothing after the last. Whoever stops waiting for it loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        if self.is_over {
            return None;
        }
        let mut events = Vec::new();
        let told = match self.first.take() {
            Some((begins, told)) => {
                if begins {
                    let (seq, path) = (seq(told.last_seq), self.path.to_string());
                    events.push(WatchEvent::Ready(WatchReadyData { seq, path }));
                }
                Ok(told)
            }
            None => {
                let time = if self.waits { LOOK } else { Duration::ZERO };
                let Self { control, permit, session, path, after, .. } = &*self;
                control.watch_files_on(permit, session, path, *after, time).await
            }
        };
        let told = match told {
            Ok(told) => told,
            Err(error) => {
                self.is_over = true;
                let Problem { code, message, .. } = Problem::from(error);
                events.push(WatchEvent::Error { code, message, is_last: true });
                return Some(events);
            }
        };
        let WatchTold { changes, has_gap, last_seq, is_over } = told;
        let is_quiet = changes.is_empty();
        if has_gap {
            let at = changes.first().map_or(last_seq, |change| change.seq.unsigned_abs() - 1);
            let (stream, reason) = ("all".to_owned(), Some("dropped".to_owned()));
            events.push(WatchEvent::Truncated(TruncatedData { seq: seq(at), stream, reason }));
        }
        events.extend(changes.into_iter().map(WatchEvent::from));
        self.after = self.after.max(last_seq);
        if is_over {
            let (seq, path) = (seq(last_seq), self.path.to_string());
            events.push(WatchEvent::Gone(WatchReadyData { seq, path }));
        }
        self.is_over = is_over || (!self.waits && is_quiet);
        Some(events)
    }
}
