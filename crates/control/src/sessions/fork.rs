//! `session.fork`: children of a session, each with its files. It goes on while their sandboxes are made, stands still
//! while they are copied, and goes on.

use super::archive::{Source, unkept};
use super::context_restart::UNREACHABLE;
use super::together::{Gathering, gather};
use crate::once::{Done, Named};
use crate::{Control, ControlError, Result};
use cofferdam_api::SessionRequest;
use cofferdam_core::InvalidValue;
use cofferdam_policy::Permit;
use cofferdam_store::SessionRecord;
use serde_json::json;
use tokio::task::{JoinError, JoinSet};

/// More is a reason to make a snapshot.
const MAX_COUNT: u64 = 16;

/// Among the ids that are kept for a name: the children have no secrets. No id looks like it.
const WITHOUT_SECRETS: &str = "-secrets";

/// What became of a session.
#[derive(Debug)]
pub struct Forked {
    pub children: Vec<SessionRecord>,
    /// The session has secrets, and whoever asked is not who gave them to it.
    pub is_without_secrets: bool,
}

impl Control {
    pub async fn fork_session(&self, permit: &Permit, id: &str, count: u64, named: Named) -> Result<Forked> {
        let route = "POST /v1/sessions/{id}/fork";
        let (control, by, wanted) = (self.clone(), permit.clone(), id.to_owned());
        let fork = async move { control.fork_now(&by, &wanted, count).await };
        let word = |forked: &Forked| {
            let ids = forked.children.iter().map(|child| child.id.as_str());
            let marks = if forked.is_without_secrets { [WITHOUT_SECRETS].as_slice() } else { &[] };
            ids.chain(marks.iter().copied()).collect::<Vec<_>>().join(" ")
        };
        match self.once(permit, route, id, named, fork, word).await? {
            Done::Now(forked) => Ok(forked),
            Done::Before(words) => {
                let (mut children, mut is_without_secrets) = (Vec::new(), false);
                for word in words.split(' ') {
                    match word == WITHOUT_SECRETS {
                        true => is_without_secrets = true,
                        false => children.push(self.get_session(permit, word).await?),
                    }
                }
                Ok(Forked { children, is_without_secrets })
            }
        }
    }

    async fn fork_now(&self, permit: &Permit, id: &str, count: u64) -> Result<Forked> {
        if !(1..=MAX_COUNT).contains(&count) {
            let fix = format!("it must be from 1 to {MAX_COUNT}");
            return Err(InvalidValue::new("count", count.to_string(), fix).into());
        }
        let parent = self.get_session(permit, id).await?;
        let mut request: SessionRequest = serde_json::from_str(&parent.spec)
            .map_err(|error| ControlError::Unavailable(format!("the session cannot be read: {error}")))?;
        // Whose they are is whose request this is, and what they serve is their own.
        request.agent = permit.principal().agent.clone().or(request.agent);
        request.snapshot = None;
        let has_secrets = request.secrets.as_ref().is_some_and(|secrets| !secrets.is_empty());
        let is_without_secrets = has_secrets && parent.created_by.as_deref() != Some(permit.actor());
        if is_without_secrets {
            request.secrets = None;
        }
        let source = self.source_of(&parent).await?;
        let (control, permit, id) = (self.clone(), permit.clone(), id.to_owned());
        // Whoever asked may go away meanwhile: then it is done all the same.
        let done =
            tokio::spawn(async move { control.make_children(&permit, &id, request, source, count).await });
        let children = done.await.map_err(|error| ControlError::Unavailable(error.to_string()))??;
        Ok(Forked { children, is_without_secrets })
    }

    /// All of them, or none.
    async fn make_children(
        &self,
        permit: &Permit,
        id: &str,
        request: SessionRequest,
        source: Source,
        count: u64,
    ) -> Result<Vec<SessionRecord>> {
        let (together, mut gathering) = gather(count as usize);
        let source = match source {
            Source::Live { worker, placed, .. } => Source::Live { worker, placed, together: Some(together) },
            kept => kept,
        };
        let mut making = JoinSet::new();
        for _ in 0..count {
            let (control, permit) = (self.clone(), permit.clone());
            let (request, source) = (request.clone(), Some(source.clone()));
            making.spawn(async move { control.create_from(&permit, request, None, source).await });
        }
        let mut children = Vec::new();
        let mut failed = stand_still(source, &mut gathering, &mut making, &mut children).await.err();
        // Whoever waits for one that does not come is told so by this.
        drop(gathering);
        while let Some(made) = making.join_next().await {
            match joined(made) {
                Ok(child) => children.push(child),
                // The first is why; those after it say that there was one.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            for child in children {
                // One that cannot be ended now ends at its deadline.
                let _ = self.delete_session(permit, &child.id).await;
            }
            return Err(error);
        }
        let ids: Vec<_> = children.iter().map(|child| child.id.clone()).collect();
        let event = self.event(permit, "session.forked", id, json!({"children": ids}));
        self.parts.store.note(permit.tenant().to_owned(), event).await?;
        Ok(children)
    }
}

type Made = Result<SessionRecord>;

fn joined(made: std::result::Result<Made, JoinError>) -> Made {
    made.map_err(|error| ControlError::Unavailable(error.to_string()))?
}

/// Waits until all children have their sandboxes, and has the session stand still for them. What ends before that is
/// taken: a child that failed is why none of them is made.
async fn stand_still(
    source: Source,
    gathering: &mut Gathering,
    making: &mut JoinSet<Made>,
    children: &mut Vec<SessionRecord>,
) -> Result<()> {
    let Source::Live { worker, placed, together } = source else { return Ok(()) };
    drop(together);
    loop {
        tokio::select! {
            Some(()) = gathering.all() => break,
            Some(made) = making.join_next() => children.push(joined(made)?),
            else => return Ok(()),
        }
    }
    let sessions = worker.sessions().ok_or(UNREACHABLE)?;
    gathering.go(sessions.hold(&placed).await.map_err(unkept)?);
    Ok(())
}
