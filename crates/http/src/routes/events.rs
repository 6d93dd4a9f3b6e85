//! `/v1/events`: what happens to a tenant's jobs.

use crate::answer::Answer;
use crate::auth::Caller;
use crate::last_event::last_event_id;
use crate::query::Query;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::get;
use cofferdam_control::{Control, EventFollower, timestamp};
use cofferdam_policy::Action;
use cofferdam_store::AuditEntry;
use futures_util::StreamExt;
use serde_json::json;
use std::convert::Infallible;

pub(crate) fn routes() -> Router<Control> {
    Router::new().route("/events", get(follow))
}

async fn follow(State(control): State<Control>, caller: Caller, query: Query, headers: HeaderMap) -> Answer {
    query.only(&[])?;
    let permit = caller.permit(&control, Action::EventList).await?;
    let after = last_event_id(&headers)?;
    let follower = control.follow_events(&permit, after).await?;
    let seq = follower.last_seq();
    // Also for whoever is cut off before anything has happened.
    let first = Event::default().event("init").id(seq.to_string()).data(json!({"seq": seq}).to_string());
    let first = futures_util::stream::iter([Ok::<_, Infallible>(first)]);
    let rest = futures_util::stream::unfold(Some(follower), step).flat_map(futures_util::stream::iter);
    Ok(Sse::new(first.chain(rest)).keep_alive(KeepAlive::default()).into_response())
}

type Step = (Vec<Result<Event, Infallible>>, Option<EventFollower>);

async fn step(follower: Option<EventFollower>) -> Option<Step> {
    let mut follower = follower?;
    match follower.next().await {
        Ok(None) => None,
        Ok(Some(entries)) => Some((entries.iter().map(|entry| Ok(event(entry))).collect(), Some(follower))),
        // What the store said is the operator's; whoever follows comes back with the last id.
        Err(_) => {
            let event = Event::default().event("error").data(r#"{"message":"the store does not answer"}"#);
            Some((vec![Ok(event)], None))
        }
    }
}

fn event(entry: &AuditEntry) -> Event {
    let details: serde_json::Value = serde_json::from_str(&entry.details).unwrap_or_default();
    let data = json!({
        "seq": entry.seq, "at": timestamp(entry.at_ms), "kind": entry.kind, "job_id": entry.resource,
        "state": details["state"], "reason": details["reason"],
    });
    Event::default().event(&entry.kind).id(entry.seq.to_string()).data(data.to_string())
}
