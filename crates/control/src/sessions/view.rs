//! A session as it is shown.

use crate::timestamp;
use cofferdam_api::{PauseKind, PauseView, Session, SessionRequest, SessionStatus};
use cofferdam_core::NetworkPolicy;
use cofferdam_store::{Pause, SessionRecord};

/// A session that has just been resumed, with what came through.
pub fn resumed_view(session: SessionRecord, from: Pause) -> Session {
    Session { pause: Some(pause_view(from)), ..session_view(session) }
}

/// What a pause keeps, and what not.
fn pause_view(pause: Pause) -> PauseView {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match pause {
        Pause::Freeze => PauseView {
            mode: PauseKind::Freeze,
            kept: words(&["files", "processes", "interpreters"]),
            not_kept: Vec::new(),
        },
        Pause::Archive | Pause::Archiving | Pause::Resuming => {
            PauseView { mode: PauseKind::Archive, kept: words(&KEPT), not_kept: words(&NOT_KEPT) }
        }
    }
}

/// Of files that were written away, or copied.
pub const KEPT: [&str; 1] = ["files in /workspace"];
pub const NOT_KEPT: [&str; 3] = ["processes", "interpreters", "files elsewhere"];

pub fn session_view(session: SessionRecord) -> Session {
    let request: SessionRequest = serde_json::from_str(&session.spec).unwrap_or_default();
    let (network, warnings) = network(request.network_policy.as_deref());
    Session {
        id: session.id,
        task_id: session.task_id,
        agent: session.agent,
        status: SessionStatus {
            state: session.state,
            cause: session.cause,
            message: session.message,
            last_transition_at: timestamp(session.transition_at_ms),
        },
        created_at: timestamp(session.created_at_ms),
        expires_at: timestamp(session.expires_at_ms),
        last_used_at: timestamp(session.used_at_ms),
        idle_timeout_seconds: session.idle_ms.map(|ms| ms.unsigned_abs() / 1000),
        steps: session.last_step,
        metadata: request.metadata,
        network_policy_applied: network,
        sandbox_id: session.runtime,
        pause: session.pause.map(pause_view),
        warnings,
    }
}

/// What is not known is none, and says so.
fn network(asked: Option<&str>) -> (NetworkPolicy, Vec<String>) {
    match asked.map(|text| (text, NetworkPolicy::parse("network_policy", text))) {
        None => (NetworkPolicy::None, Vec::new()),
        Some((_, Ok(policy))) => (policy, Vec::new()),
        Some((text, Err(_))) => {
            let warning = format!("the network policy {text:?} is not known; none was applied");
            (NetworkPolicy::None, vec![warning])
        }
    }
}
