//! `/v1/events`: what happens to a tenant's jobs.

use crate::answer::Answer;
use crate::auth::Caller;
use crate::document::refusals::Always;
use crate::last_event::last_event_id;
use crate::query::Query;
use crate::while_valid::while_valid;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use cofferdam_api::{ErrorCode, ErrorData, FeedData, FeedInitData, StreamEvent};
use cofferdam_control::{Control, EventFollower, timestamp};
use cofferdam_policy::Action;
use cofferdam_store::AuditEntry;
use futures_util::StreamExt;
use serde::Serialize;
use std::convert::Infallible;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(follow))
}

/// Follow what becomes of jobs
///
/// Server-sent events, without an end: `init` (FeedInitData), then `job.accepted`, `job.running`, `job.cancelled`,
/// `job.finished` and `job.deleted` (FeedData) of all jobs of the tenant, each with an `id`; and `error` (ErrorData),
/// without one. It begins with what comes after now. Whoever is cut off sends the last id and goes on from there. With
/// `follow=false` it ends after what there is now.
#[utoipa::path(
    get, path = "/events", operation_id = "event_list", tag = "jobs",
    params(
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,18}$",
         description = "The id of the last event that was seen; 0 for all that there are"),
        ("follow" = Option<bool>, Query,
         description = "With `false`, the stream ends after what there is now; `true` unless given"),
    ),
    responses(
        (status = 200, description = "The events", content_type = "text/event-stream", body = StreamEvent),
        Always,
    )
)]
async fn follow(State(control): State<Control>, caller: Caller, query: Query, headers: HeaderMap) -> Answer {
    query.only(&["follow"])?;
    let waits = query.flag("follow")?.unwrap_or(true);
    let permit = caller.permit(&control, Action::EventList).await?;
    let after = last_event_id(&headers)?;
    let follower = control.follow_events(&permit, after, waits).await?;
    let seq = follower.last_seq();
    // Also for whoever is cut off before anything has happened.
    let first = named("init", &FeedInitData { seq }).id(seq.to_string());
    let first = futures_util::stream::iter([Ok::<_, Infallible>(first)]);
    let rest = futures_util::stream::unfold(Some(follower), step).flat_map(futures_util::stream::iter);
    let events = while_valid(control, &headers, first.chain(rest));
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

type Step = (Vec<Result<Event, Infallible>>, Option<EventFollower>);

async fn step(follower: Option<EventFollower>) -> Option<Step> {
    let mut follower = follower?;
    match follower.next().await {
        Ok(None) => None,
        Ok(Some(entries)) => Some((entries.iter().map(|entry| Ok(event(entry))).collect(), Some(follower))),
        // What the store said is the operator's; whoever follows comes back with the last id.
        Err(_) => {
            let data =
                ErrorData { code: ErrorCode::Unavailable, message: "the store does not answer".to_owned() };
            Some((vec![Ok(named("error", &data))], None))
        }
    }
}

fn named(name: &str, data: &impl Serialize) -> Event {
    Event::default().event(name).data(serde_json::to_string(data).unwrap_or_default())
}

fn event(entry: &AuditEntry) -> Event {
    let details: serde_json::Value = serde_json::from_str(&entry.details).unwrap_or_default();
    let word = |name: &str| details[name].as_str().map(str::to_owned);
    let data = FeedData {
        seq: entry.seq,
        at: timestamp(entry.at_ms),
        kind: entry.kind.clone(),
        job_id: entry.resource.clone(),
        state: word("state"),
        reason: word("reason"),
    };
    named(&entry.kind, &data).id(entry.seq.to_string())
}
