//! The waiting sandboxes of one kind, and how many are wanted.

use super::IDLE_SANDBOX_BYTES;
use super::waiting::Waiting;
use crate::ids::draw_sandbox_id;
use crate::runtime::Runtime;
use cofferdam_backend::SandboxSpec;
use std::time::Duration;
use tokio::time::Instant;

/// What a request needs from its shelf.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    /// Its changeable limits and its id do not count.
    pub(super) spec: SandboxSpec,
    /// Whose interpreter has started in it, if any.
    pub(super) runtime: Option<&'static Runtime>,
}

impl Kind {
    fn is_same(&self, other: &Self) -> bool {
        self.runtime == other.runtime && same_kind(&self.spec, &other.spec)
    }

    /// What one of it takes while it waits.
    pub(super) fn bytes(&self) -> u64 {
        let interpreter = self.runtime.and_then(|runtime| runtime.ahead).map_or(0, |ahead| ahead.idle_bytes);
        IDLE_SANDBOX_BYTES + interpreter
    }
}

/// Sandboxes that any request of the same kind can have.
pub(super) struct Shelf {
    /// What they were made from.
    kind: Kind,
    waiting: Vec<Waiting>,
    wanted: usize,
    last_taken: Instant,
    not_before: Option<Instant>,
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

impl Shelf {
    /// The shelf for a kind, made if it is new.
    pub(super) fn of<'s>(shelves: &'s mut Vec<Self>, kind: &Kind) -> &'s mut Self {
        let found = shelves.iter().position(|shelf| shelf.kind.is_same(kind));
        let at = found.unwrap_or_else(|| {
            shelves.push(Self {
                kind: kind.clone(),
                waiting: Vec::new(),
                wanted: 0,
                last_taken: Instant::now(),
                not_before: None,
            });
            shelves.len() - 1
        });
        &mut shelves[at]
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.waiting.len() as u64 * self.kind.bytes()
    }

    pub(super) fn want_at_least(&mut self, count: usize) {
        self.wanted = self.wanted.max(count);
        self.last_taken = Instant::now();
    }

    pub(super) fn put(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// Takes one. A shelf that was found empty wants one more from now on.
    pub(super) fn take(&mut self, most: usize) -> Option<Waiting> {
        self.last_taken = Instant::now();
        let taken = self.waiting.pop();
        if taken.is_none() {
            self.wanted = (self.wanted + 1).min(most);
        }
        taken
    }

    /// What to make next, if there are fewer than are wanted.
    pub(super) fn wants_more(&self, now: Instant) -> Option<Kind> {
        let is_early = self.not_before.is_some_and(|time| now < time);
        if is_early || self.waiting.len() >= self.wanted {
            return None;
        }
        let id = draw_sandbox_id().ok()?;
        let spec = SandboxSpec { id, ..self.kind.spec.clone() };
        Some(Kind { spec, ..self.kind })
    }

    pub(super) fn back_off(&mut self, time: Duration) {
        self.not_before = Some(Instant::now() + time);
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
        self.wanted == 0 && self.waiting.is_empty()
    }

    pub(super) fn into_waiting(self) -> Vec<Waiting> {
        self.waiting
    }
}
