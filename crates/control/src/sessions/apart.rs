//! Sessions on workers elsewhere, as the control planes see to them together: what a worker has that is not its own, what
//! it loses when it is gone, what it is to keep before it stops, and what a control plane left unfinished.

use super::pause::Pausing;
use crate::worker::Capacity;
use crate::{Control, Result, now_ms};
use cofferdam_api::WorkerSession;
use cofferdam_core::EndCause;
use cofferdam_store::{Begun, BegunSession, EndedSession, PauseBegun, SessionEnd, SessionPlace};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A session that a worker was just asked for may not be in the store yet.
const YOUNG: Duration = Duration::from_secs(60);

/// So many that may not be its own are looked at with one word of a worker; the rest comes with the next.
const AT_ONCE: usize = 1_000;

/// What the two sides' clocks and calls may differ by before a control plane is taken for gone.
const MARGIN_MS: i64 = 1_000;

/// Workers that have sessions and were not heard of, each with since when this process has seen that.
#[derive(Debug, Default)]
pub(crate) struct Absent(Mutex<HashMap<String, Instant>>);

impl Absent {
    fn since(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes who is absent now, and returns those who were for as long as this.
    fn note(&self, absent: &HashSet<String>, time: Duration) -> Vec<String> {
        let mut since = self.since();
        since.retain(|worker, _| absent.contains(worker));
        for worker in absent {
            since.entry(worker.clone()).or_insert_with(Instant::now);
        }
        since.iter().filter(|(_, began)| began.elapsed() >= time).map(|(worker, _)| worker.clone()).collect()
    }

    /// Nobody could look: what was seen before says nothing of now.
    pub(crate) fn forget(&self) {
        self.since().clear();
    }
}

/// Workers of other processes have plain names; that of a server itself is its node and its start.
fn is_elsewhere(worker: &str) -> bool {
    !worker.contains(':')
}

impl Control {
    /// Of the sessions that a worker says it has, those that are not its own: they have ended, or are somewhere else by
    /// now, or are kept without a sandbox, or nobody has ever heard of them.
    pub(crate) async fn not_yours(
        &self,
        worker: &str,
        sessions: Vec<WorkerSession>,
    ) -> Result<Vec<WorkerSession>> {
        let own: HashMap<_, _> = match sessions.is_empty() {
            true => HashMap::new(),
            false => self.parts.store.sessions_of(worker).await?.into_iter().collect(),
        };
        let mut not_yours = Vec::new();
        let is_known = |session: &WorkerSession| own.get(&session.id) == Some(&session.generation);
        for session in sessions.into_iter().filter(|session| !is_known(session)).take(AT_ONCE) {
            let is_its_own = match self.parts.store.session_place(&session.id).await? {
                Some(place) => {
                    place.has_sandbox && place.worker == worker && place.generation == session.generation
                }
                None => session.age_ms < YOUNG.as_millis() as u64,
            };
            if !is_its_own {
                not_yours.push(session);
            }
        }
        Ok(not_yours)
    }

    /// Ends sessions that a worker says have lost their sandboxes, as far as they are its own. Those that are left over are
    /// listed again with its next word.
    pub(crate) async fn end_lost_of(&self, worker: &str, sessions: &[WorkerSession]) -> Result<()> {
        let lost = sessions.iter().filter_map(|session| Some((session, session.lost.as_deref()?)));
        let mut ended = Vec::new();
        for (WorkerSession { id, generation, .. }, cause) in lost.take(AT_ONCE) {
            let place = self.parts.store.session_place(id).await?;
            let is_there = |place: &SessionPlace| {
                place.has_sandbox && place.worker == worker && place.generation == *generation
            };
            if let Some(place) = place.filter(is_there) {
                ended.extend(self.end_gone(place.tenant, id, cause).await?);
            }
        }
        self.let_go_soon(ended);
        Ok(())
    }

    /// Has the sessions of a worker archived that are to be kept when it stops, without waiting for it.
    pub(crate) fn archive_soon(&self, worker: &str) {
        let (control, worker) = (self.clone(), worker.to_owned());
        tokio::spawn(async move { control.archive_of(&worker).await });
    }

    /// Lets go of sessions without waiting for workers that may not answer.
    fn let_go_soon(&self, ended: Vec<EndedSession>) {
        let control = self.clone();
        tokio::spawn(async move { control.let_go(ended).await });
    }

    /// Says that this process is there, where others could take it for gone.
    pub(crate) async fn say_that_it_is_there(&self) -> Result<()> {
        if self.parts.settings.node.is_alone {
            return Ok(());
        }
        let for_ms = 2 * self.lease_ms() + MARGIN_MS;
        Ok(self.parts.store.plane_is_there(self.parts.instance.clone(), for_ms).await?)
    }

    /// Looks after sessions on workers elsewhere.
    pub(crate) async fn attend_sessions(&self) -> Result<()> {
        let looked = self.try_attend_sessions().await;
        if looked.is_err() {
            self.parts.absent.forget();
        }
        looked
    }

    async fn try_attend_sessions(&self) -> Result<()> {
        let parts = &self.parts;
        for (id, by) in parts.store.interrupted_of(&parts.instance).await? {
            if let Some(handle) = parts.running.get(&id) {
                handle.cancel.send_if_modified(|known| {
                    let is_news = known.is_none();
                    known.get_or_insert(by);
                    is_news
                });
            }
        }
        // Before the look at the store: whoever has room here was kept there before.
        let rooms = parts.rooms.places();
        let live = parts.store.live_sessions().await?;
        let places: HashMap<_, _> = live.iter().map(|session| (&*session.id, &*session.worker)).collect();
        for (id, worker) in &rooms {
            if places.get(id.as_str()) != Some(&worker.as_str()) {
                // Somebody else has ended or moved it.
                parts.rooms.free_of(id, worker);
            }
        }
        let own: HashSet<_> = rooms.iter().map(|(id, _)| id.as_str()).collect();
        let mut others: HashMap<String, Capacity> = HashMap::new();
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
        for session in live.iter().filter(|session| !own.contains(session.id.as_str())) {
            let nothing = Capacity { slots: 0, cpus_millis: 0, memory_bytes: 0 };
            let taken = others.entry(session.worker.clone()).or_insert(nothing);
            taken.slots += 1;
            taken.cpus_millis += unsigned(session.cpus_millis);
            taken.memory_bytes += unsigned(session.memory_bytes);
        }
        parts.fleet.note_others(&others);
        let workers = live.iter().map(|session| session.worker.clone()).filter(|worker| is_elsewhere(worker));
        let absent: HashSet<_> = workers.filter(|worker| !parts.fleet.is_there(worker)).collect();
        for worker in parts.absent.note(&absent, parts.settings.lease * 2) {
            let lost = parts.store.lose_sessions(worker, String::new(), now_ms()).await?;
            self.let_go_soon(lost);
        }
        if !parts.settings.node.is_alone && !self.is_draining() {
            for gone in parts.store.gone_planes().await? {
                if gone != parts.instance {
                    self.take_up(&gone, "").await?;
                    parts.store.forget_plane(gone).await?;
                }
            }
        }
        Ok(())
    }

    /// Brings what processes whose name begins so, but for one, had begun and not finished to some end: they are gone.
    pub(crate) async fn take_up(&self, begins: &str, but: &str) -> Result<()> {
        let store = &self.parts.store;
        store.lose_steps(begins.to_owned(), but.to_owned(), now_ms()).await?;
        for session in store.begun_sessions(begins, but).await? {
            match session.begun {
                Begun::Create => {
                    let end = SessionEnd {
                        tenant: session.tenant,
                        id: session.id,
                        cause: EndCause::Lost,
                        message: Some("the control plane that made it went away".to_owned()),
                        actor: "system".to_owned(),
                        at_ms: now_ms(),
                    };
                    // One that has ended meanwhile is as it should be.
                    if let Ok(ended) = store.end_session(end).await {
                        self.let_go_soon(vec![ended]);
                    }
                }
                Begun::Resume => {
                    let BegunSession { id, tenant, worker, generation, .. } = session;
                    store.undo_resume(tenant.clone(), id.clone(), generation).await?;
                    // Of the sandbox: the session itself is archived as before.
                    let (cause, steps, has_archive) = (EndCause::Lost, Vec::new(), false);
                    let ended = EndedSession { id, tenant, cause, worker, generation, steps, has_archive };
                    self.let_go_soon(vec![ended]);
                }
                Begun::Archive => self.go_on_archiving(session).await?,
            }
        }
        self.sweep_archives_soon();
        Ok(())
    }

    /// What was written so far is nobody's; it is written again, and a session that cannot be kept ends.
    async fn go_on_archiving(&self, session: BegunSession) -> Result<()> {
        if !self.parts.store.adopt_archiving(&session, self.parts.instance.clone()).await? {
            return Ok(());
        }
        let BegunSession { id, tenant, worker, generation, .. } = session;
        let begun = PauseBegun { worker, generation, was_frozen: false, steps: Vec::new() };
        let pausing = Pausing { tenant, id, actor: "system".to_owned(), begun };
        let control = self.clone();
        tokio::spawn(async move { control.archive_or_end(pausing, EndCause::Lost).await });
        Ok(())
    }
}
