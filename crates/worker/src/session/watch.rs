//! Watches of a session: what changed in a folder, numbered, with the last of it kept for who was cut off. A watch whose
//! folder is gone stays for a while, for those who followed it: its end has a number of its own, and is the last that
//! each of them is told.

use super::{SessionError, Sessions};
use cofferdam_backend::{BackendError, Change, EntryKind, Watched, Watcher};
use cofferdam_core::{GuestPath, InvalidValue, SessionId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// So many folders of a session are watched at once; as many that are over are kept for who has not heard of it.
const MAX_WATCHES: usize = 8;

/// So many changes are kept of each.
const MAX_KEPT: usize = 4096;

/// For so long a watch goes on without anybody who follows it, and is kept when it is over.
const UNFOLLOWED_MAX: Duration = Duration::from_secs(60);

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub seq: u64,
    /// Below the folder that is watched; bytes that are not UTF-8 are replaced.
    pub path: String,
    pub kind: EntryKind,
    pub change: Change,
}

/// What changed after a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchNews {
    pub changes: Vec<FileChange>,
    /// Something before these, or among them, was dropped.
    pub has_gap: bool,
    /// Up to where this goes.
    pub last_seq: u64,
    /// The folder is gone, and nothing more comes.
    pub is_over: bool,
}

#[derive(Debug)]
struct Kept {
    changes: VecDeque<FileChange>,
    /// Where it began. Whoever has seen less did not follow this one.
    first_seq: u64,
    /// Whoever has seen less than this has missed something.
    complete_after: u64,
    last_seq: u64,
    is_over: bool,
    /// The session let go of it, and whoever asks again is told why.
    is_let_go: bool,
    followed: Instant,
}

impl Kept {
    /// Whether nobody has followed it for too long.
    fn is_left(&self) -> bool {
        self.followed + UNFOLLOWED_MAX <= Instant::now()
    }

    /// Whether somebody who has seen this much goes on with it, and does not begin anew.
    fn is_for(&self, after: Option<u64>) -> bool {
        !self.is_over || after.is_some_and(|after| (self.first_seq..self.last_seq).contains(&after))
    }

    /// What came after a number; nothing where there is nothing to tell yet.
    fn news(&self, after: u64) -> Option<WatchNews> {
        let has_gap = after < self.complete_after;
        let changes: Vec<_> = self.changes.iter().filter(|change| change.seq > after).cloned().collect();
        let is_news = has_gap || !changes.is_empty() || self.is_over || self.is_let_go;
        let Self { last_seq, is_over, .. } = *self;
        is_news.then_some(WatchNews { changes, has_gap, last_seq, is_over })
    }
}

#[derive(Debug)]
struct Watch {
    kept: Mutex<Kept>,
    news: Notify,
}

impl Watch {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, news: Vec<Watched>) {
        let mut kept = self.kept();
        for one in news {
            kept.last_seq += 1;
            let seq = kept.last_seq;
            match one {
                // Whoever goes on from before this number has missed something.
                Watched::Missed => {
                    kept.complete_after = seq;
                    kept.changes.clear();
                }
                Watched::Changed { path, kind, change } => {
                    let path = String::from_utf8_lossy(&path).into_owned();
                    kept.changes.push_back(FileChange { seq, path, kind, change });
                }
            }
            if kept.changes.len() > MAX_KEPT
                && let Some(dropped) = kept.changes.pop_front()
            {
                kept.complete_after = dropped.seq;
            }
        }
        drop(kept);
        self.news.notify_waiters();
    }

    /// Nothing more comes. That is the last of what is told, and has a number as the rest has.
    fn end(&self) {
        let mut kept = self.kept();
        kept.last_seq += 1;
        kept.is_over = true;
        drop(kept);
        self.news.notify_waiters();
    }

    /// Wakes everybody who waits, with what there is.
    fn let_go(&self) {
        self.kept().is_let_go = true;
        self.news.notify_waiters();
    }

    /// What came after a number, or comes until a time.
    async fn follow(&self, after: Option<u64>, deadline: Instant) -> WatchNews {
        loop {
            let waiting = self.news.notified();
            tokio::pin!(waiting);
            waiting.as_mut().enable();
            {
                let mut kept = self.kept();
                kept.followed = Instant::now().max(deadline);
                let Kept { last_seq, is_over, .. } = *kept;
                let nothing = WatchNews { changes: Vec::new(), has_gap: false, last_seq, is_over };
                let Some(after) = after else { return nothing };
                if let Some(news) = kept.news(after) {
                    return news;
                }
                if Instant::now() >= deadline {
                    return nothing;
                }
            }
            let _ = tokio::time::timeout_at(deadline, waiting).await;
        }
    }
}

type ByFolder = HashMap<GuestPath, (Arc<Watch>, JoinHandle<()>)>;

/// The watches of one session, by folder.
#[derive(Debug, Default)]
pub(super) struct Watches(Mutex<ByFolder>);

impl Watches {
    fn all(&self) -> MutexGuard<'_, ByFolder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The watch of a folder for somebody who has seen this much; one that is over only for who followed it.
    fn find(&self, path: &GuestPath, after: Option<u64>) -> Option<Arc<Watch>> {
        let mut all = self.all();
        all.retain(|_, (watch, _)| {
            let kept = watch.kept();
            !(kept.is_over && kept.is_left())
        });
        let (watch, _) = all.get(path)?;
        let is_for = watch.kept().is_for(after);
        is_for.then(|| Arc::clone(watch))
    }

    /// Ends them all: they must not hold up what they watch.
    pub(super) fn end(&self) {
        for (_, (watch, task)) in self.all().drain() {
            task.abort();
            watch.let_go();
        }
    }

    fn add(&self, path: &GuestPath, watcher: Box<dyn Watcher>) -> Result<Arc<Watch>, SessionError> {
        let mut all = self.all();
        let mut before = 0;
        if let Some((watch, _)) = all.get(path) {
            let kept = watch.kept();
            if !kept.is_over {
                return Ok(Arc::clone(watch));
            }
            before = kept.last_seq;
        }
        if all.values().filter(|(watch, _)| !watch.kept().is_over).count() >= MAX_WATCHES {
            let fix = format!(
                "a session has at most {MAX_WATCHES} watches; let go of one, which ends it within a minute"
            );
            return Err(InvalidValue::new("path", path.as_str(), fix).into());
        }
        // Numbers go on from those of a watch of the same folder that has ended: time does, and is quicker.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let first = u64::try_from(now.as_micros()).unwrap_or(0).max(before);
        let kept = Kept {
            changes: VecDeque::new(),
            first_seq: first,
            complete_after: first,
            last_seq: first,
            is_over: false,
            is_let_go: false,
            followed: Instant::now(),
        };
        let watch = Arc::new(Watch { kept: Mutex::new(kept), news: Notify::new() });
        let task = tokio::spawn(keep(Arc::clone(&watch), watcher));
        all.insert(path.clone(), (Arc::clone(&watch), task));
        forget_some(&mut all);
        Ok(watch)
    }
}

/// Of those that are over, the ones that nobody asked for the longest go where there are too many.
fn forget_some(all: &mut ByFolder) {
    let over = all.iter().filter_map(|(path, (watch, _))| {
        let kept = watch.kept();
        kept.is_over.then(|| (kept.followed, path.clone()))
    });
    let mut over: Vec<_> = over.collect();
    over.sort_by_key(|(followed, _)| std::cmp::Reverse(*followed));
    for (_, path) in over.into_iter().skip(MAX_WATCHES) {
        all.remove(&path);
    }
}

/// Keeps what a watcher tells, until nobody wants to know or there is nothing to tell any more.
async fn keep(watch: Arc<Watch>, mut watcher: Box<dyn Watcher>) {
    loop {
        let until = watch.kept().followed + UNFOLLOWED_MAX;
        tokio::select! {
            news = watcher.next() => match news {
                Ok(news) => watch.take(news),
                Err(_) => return watch.end(),
            },
            () = tokio::time::sleep_until(until) => {
                if watch.kept().is_left() {
                    return watch.end();
                }
            }
        }
    }
}

impl Sessions {
    /// What changed in a folder after a number; where nothing did, what does within a time. Without a number it begins
    /// now, and the answer says where that is.
    pub async fn watch_files(
        &self,
        id: &SessionId,
        generation: i64,
        path: &GuestPath,
        after: Option<u64>,
        time: Duration,
    ) -> Result<WatchNews, SessionError> {
        let live = self.find(id, generation)?;
        let watch = match live.watches.find(path, after) {
            Some(watch) => watch,
            None => {
                let watcher = match live.sandbox.watch(path).await {
                    // It was listed a moment ago, and something else is there now.
                    Err(BackendError::Gone { .. }) => return Err(SessionError::Unknown),
                    watcher => watcher?,
                };
                live.watches.add(path, watcher)?
            }
        };
        drop(live);
        Ok(watch.follow(after, Instant::now() + time).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_backend::async_trait;
    use tokio::sync::mpsc;

    /// Tells what it is sent, and is gone when the other end is.
    struct Told(mpsc::UnboundedReceiver<Vec<Watched>>);

    #[async_trait]
    impl Watcher for Told {
        async fn next(&mut self) -> Result<Vec<Watched>, BackendError> {
            self.0.recv().await.ok_or(BackendError::Gone { cause: "the folder".to_owned() })
        }
    }

    fn folder(name: &str) -> GuestPath {
        GuestPath::parse("path", &format!("/workspace/{name}")).unwrap()
    }

    fn created(path: &str) -> Watched {
        Watched::Changed { path: path.into(), kind: EntryKind::File, change: Change::Created }
    }

    fn begin(watches: &Watches, name: &str) -> (mpsc::UnboundedSender<Vec<Watched>>, Arc<Watch>) {
        let (tell, told) = mpsc::unbounded_channel();
        (tell, watches.add(&folder(name), Box::new(Told(told))).unwrap())
    }

    async fn over(watch: &Watch) {
        while !watch.kept().is_over {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_is_told_to_who_asks_after_it() {
        let watches = Watches::default();
        let (tell, watch) = begin(&watches, "w");
        let first = watch.follow(None, Instant::now()).await.last_seq;
        tell.send(vec![created("a")]).unwrap();
        let news = watch.follow(Some(first), soon()).await;
        assert_eq!((news.changes.len(), news.last_seq, news.is_over), (1, first + 1, false));
        // Between two looks another change comes, and the folder goes.
        tell.send(vec![created("b")]).unwrap();
        drop(tell);
        over(&watch).await;
        let found = watches.find(&folder("w"), Some(first + 1)).expect("it is kept for who followed it");
        let news = found.follow(Some(first + 1), soon()).await;
        assert_eq!(news.changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["b"]);
        assert_eq!((news.is_over, news.has_gap, news.last_seq), (true, false, first + 3));
        // Who was cut off between the last change and the end hears of the end; who has heard of it begins anew.
        let news = watches.find(&folder("w"), Some(first + 2)).unwrap().follow(Some(first + 2), soon()).await;
        assert_eq!((news.changes.len(), news.is_over, news.last_seq), (0, true, first + 3));
        for stranger in [None, Some(1), Some(first + 3)] {
            assert!(watches.find(&folder("w"), stranger).is_none(), "{stranger:?}");
        }
        tokio::time::advance(Duration::from_secs(10) + UNFOLLOWED_MAX).await;
        assert!(watches.find(&folder("w"), Some(first)).is_none(), "nobody came for a minute");
        assert!(watches.all().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_over_takes_nobodys_place() {
        let watches = Watches::default();
        let mut last = 0;
        for round in 0..3 {
            let begun: Vec<_> = (0..MAX_WATCHES).map(|i| begin(&watches, &format!("{round}-{i}"))).collect();
            let (_tell, told) = mpsc::unbounded_channel();
            assert!(watches.add(&folder("more"), Box::new(Told(told))).is_err(), "round {round}");
            for (tell, watch) in begun {
                drop(tell);
                over(&watch).await;
                last = watch.kept().last_seq;
            }
        }
        let (_tell, again) = begin(&watches, &format!("2-{}", MAX_WATCHES - 1));
        assert!(again.kept().first_seq >= last, "numbers go on");
        assert!(watches.all().len() <= MAX_WATCHES + 1, "those that are over are counted, too");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_woken_when_the_session_goes() {
        let watches = Watches::default();
        let (_tell, watch) = begin(&watches, "w");
        let first = watch.kept().last_seq;
        let began = Instant::now();
        let (news, ()) = tokio::join!(watch.follow(Some(first), soon()), async {
            tokio::task::yield_now().await;
            watches.end();
        });
        assert_eq!((news.changes.len(), news.is_over), (0, false), "how it ended is said by the session");
        assert!(began.elapsed() < Duration::from_secs(1));
    }
}
