//! The waiting sandboxes of one kind, and how many are wanted.

use super::waiting::{Told, Waiting};
use crate::ids::draw_sandbox_id;
use crate::runtime::Runtime;
use cofferdam_backend::SandboxSpec;
use cofferdam_core::Limits;
use std::any::Any;
use std::collections::VecDeque;
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A shelf that still has something is filled again only when the request that took from it is likely to be
/// over: making the next one would take the processor from it.
const HOLD: Duration = Duration::from_millis(10);

/// Whoever has just made a session is about to send its first step, which is what is waited for.
const HOLD_OF_SESSION: Duration = Duration::from_millis(60);

/// From a request's end to its answer there is still something to be written.
const AFTER: Duration = Duration::from_millis(2);

/// What must not go before a sandbox has, such as the layers of its image.
pub type Held = Option<Arc<dyn Any + Send + Sync>>;

/// What a request needs from its shelf.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    /// Its changeable limits and its id do not count.
    pub(super) spec: SandboxSpec,
    /// Whose interpreter has started in it, if any.
    pub(super) runtime: Option<&'static Runtime>,
    /// For as long as anything of the kind waits or is wanted. Of all requests of a kind it is the same.
    pub(super) _held: Held,
    /// Its code compiled, once one of the kind has told it. Does not count either.
    pub(super) told: Told,
    /// Whether the limits of one that waits can become the request's.
    pub(super) changes_limits: bool,
    /// What a sandbox takes by itself while it waits.
    pub(super) sandbox_bytes: u64,
}

impl Kind {
    fn is_same(&self, other: &Self) -> bool {
        let limits_fit = self.changes_limits || same_limits(&self.spec.limits, &other.spec.limits);
        self.runtime == other.runtime && limits_fit && same_kind(&self.spec, &other.spec)
    }

    /// What is mounted is one job's own, and so are files.
    pub(super) fn can_wait(&self) -> bool {
        self.spec.mounts.is_empty() && self.spec.files.is_none()
    }

    /// What one of it takes while it waits.
    pub(super) fn bytes(&self) -> u64 {
        let interpreter = self.runtime.and_then(|runtime| runtime.ahead).map_or(0, |ahead| ahead.idle_bytes);
        self.sandbox_bytes + interpreter
    }
}

/// What a shelf has for a request.
pub(super) enum Take {
    Now(Waiting),
    /// One that is in the making, and nobody else's yet.
    Soon(oneshot::Receiver<Waiting>),
    None,
}

/// What a shelf wants made.
#[derive(Debug)]
pub(super) enum Wish {
    Now(Box<Kind>),
    At(Instant),
    Nothing,
}

/// Sandboxes that any request of the same kind can have.
pub(super) struct Shelf {
    /// What they were made from.
    kind: Kind,
    waiting: Vec<Waiting>,
    /// Those in the making, and who waits for them. Never fewer of the first, but for one that fails.
    making: usize,
    joined: VecDeque<oneshot::Sender<Waiting>>,
    wanted: usize,
    last_taken: Instant,
    not_before: Option<Instant>,
    held_until: Option<Instant>,
}

/// Whether two requests can have each other's sandbox, once its limits are changed.
fn same_kind(a: &SandboxSpec, b: &SandboxSpec) -> bool {
    // Every field is named, so that a new one cannot be forgotten.
    let SandboxSpec {
        id: _,
        image,
        limits,
        network,
        isolation,
        oom_scope,
        writable_root,
        terminal,
        pausable,
        workspace_root,
        // A kind that has any does not wait.
        mounts: _,
        files: _,
    } = a;
    *image == b.image
        && limits.disk == b.limits.disk
        && *network == b.network
        && *isolation == b.isolation
        && *oom_scope == b.oom_scope
        && *writable_root == b.writable_root
        && *terminal == b.terminal
        && *pausable == b.pausable
        && *workspace_root == b.workspace_root
}

/// Whether two requests limit their sandboxes alike.
fn same_limits(a: &Limits, b: &Limits) -> bool {
    (a.memory_bytes, a.cpus, a.pids) == (b.memory_bytes, b.cpus, b.pids)
}

impl Shelf {
    /// The shelf for a kind, made if it is new.
    pub(super) fn of<'s>(shelves: &'s mut Vec<Self>, kind: &Kind) -> &'s mut Self {
        let found = shelves.iter().position(|shelf| shelf.kind.is_same(kind));
        let at = found.unwrap_or_else(|| {
            shelves.push(Self {
                kind: kind.clone(),
                waiting: Vec::new(),
                making: 0,
                joined: VecDeque::new(),
                wanted: 0,
                last_taken: Instant::now(),
                not_before: None,
                held_until: None,
            });
            shelves.len() - 1
        });
        &mut shelves[at]
    }

    /// The kernel of a kind's interpreters compiled, once one has told it.
    pub(super) fn kernel_of(shelves: &[Self], kind: &Kind) -> Option<Arc<[u8]>> {
        shelves.iter().find(|shelf| shelf.kind.is_same(kind))?.kind.told.kernel.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn making(&self) -> usize {
        self.making
    }

    /// Of those that wait, and of those that soon will.
    pub(super) fn bytes(&self) -> u64 {
        (self.waiting.len() + self.making) as u64 * self.kind.bytes()
    }

    pub(super) fn want_at_least(&mut self, count: usize) {
        self.wanted = self.wanted.max(count);
        self.last_taken = Instant::now();
    }

    /// One is made: for whoever has waited longest for it, or to wait itself.
    pub(super) fn put(&mut self, waiting: Waiting) {
        self.making = self.making.saturating_sub(1);
        let mut waiting = waiting;
        self.kind.told = take(&mut waiting.told).or(take(&mut self.kind.told));
        while let Some(joined) = self.joined.pop_front() {
            match joined.send(waiting) {
                Ok(()) => return,
                Err(unwanted) => waiting = unwanted,
            }
        }
        self.waiting.push(waiting);
    }

    /// Takes one. A shelf that was found empty wants one more from now on.
    pub(super) fn take(&mut self, most: usize) -> Take {
        self.last_taken = Instant::now();
        let taken = self.waiting.pop();
        if self.waiting.is_empty() {
            self.held_until = None;
        } else {
            self.held_until.get_or_insert(self.last_taken + HOLD);
        }
        if let Some(waiting) = taken {
            return Take::Now(waiting);
        }
        self.wanted = (self.wanted + 1).min(most);
        self.joined.retain(|joined| !joined.is_closed());
        if self.joined.len() >= self.making {
            return Take::None;
        }
        let (sender, coming) = oneshot::channel();
        self.joined.push_back(sender);
        Take::Soon(coming)
    }

    /// Whoever took one last is about to have its answer.
    pub(super) fn hurry(&mut self) {
        let soon = Instant::now() + AFTER;
        self.held_until = self.held_until.map(|time| time.min(soon));
    }

    /// What was taken is for a session.
    pub(super) fn hold_for_session(&mut self) {
        let later = self.last_taken + HOLD_OF_SESSION;
        self.held_until = self.held_until.map(|time| time.max(later));
    }

    /// What to make next, if there are fewer than are wanted and `left` bytes allow it; counted as in the making.
    pub(super) fn wants_more(&mut self, now: Instant, left: u64) -> Wish {
        if self.waiting.len() + self.making >= self.wanted || self.kind.bytes() > left {
            return Wish::Nothing;
        }
        if let Some(time) = self.not_before.max(self.held_until).filter(|time| now < *time) {
            return Wish::At(time);
        }
        self.held_until = None;
        let Ok(id) = draw_sandbox_id() else { return Wish::Nothing };
        self.making += 1;
        let spec = SandboxSpec { id, ..self.kind.spec.clone() };
        Wish::Now(Box::new(Kind { spec, ..self.kind.clone() }))
    }

    /// One could not be made: nobody waits for it, and the next is not tried at once.
    pub(super) fn back_off(&mut self, time: Duration) {
        self.give_up();
        self.not_before = Some(Instant::now() + time);
    }

    /// One will not be made.
    pub(super) fn give_up(&mut self) {
        self.making = self.making.saturating_sub(1);
        self.joined.truncate(self.making);
    }

    /// After a time without a request, one at a time becomes too many.
    pub(super) fn surplus(&mut self, idle: Duration) -> Option<Waiting> {
        if self.last_taken.elapsed() < idle || self.wanted == 0 {
            return None;
        }
        self.last_taken = Instant::now();
        self.wanted -= 1;
        if self.waiting.len() > self.wanted { self.waiting.pop() } else { None }
    }

    pub(super) fn is_forgotten(&self) -> bool {
        self.wanted == 0 && self.waiting.is_empty() && self.making == 0
    }

    /// Nothing more is wanted: what waits is given away to be destroyed.
    pub(super) fn clear(&mut self) -> Vec<Waiting> {
        self.wanted = 0;
        take(&mut self.waiting)
    }
}
