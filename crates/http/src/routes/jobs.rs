//! `/v1/jobs`.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::query::Query;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cofferdam_api::{JobList, JobRequest};
use cofferdam_control::{Control, Followed, Follower, hash, job_view};
use cofferdam_core::{InvalidValue, JobState};
use cofferdam_policy::{Action, Permit};
use cofferdam_store::{JobFilter, JobRecord, OutputEvent, OutputKind, Page};
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;

pub(crate) fn routes() -> Router<Control> {
    Router::new()
        .route("/jobs", get(list).post(create))
        .route("/jobs/{id}", get(show).delete(remove))
        .route("/jobs/{id}/cancel", post(cancel))
        .route("/jobs/{id}/output", get(follow))
}

/// The longest that a request waits for a job's end.
const MAX_WAIT_MS: u64 = 60_000;

const PAGE: u64 = 50;
const MAX_PAGE: u64 = 500;

/// More than any job's output has events.
const ALL_EVENTS: i64 = 100_000;

async fn create(
    State(control): State<Control>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
    body: Body<JobRequest>,
) -> Answer {
    query.only(&["wait_ms"])?;
    let wait_ms = query.number("wait_ms", MAX_WAIT_MS)?;
    let name = idempotency_key(&headers)?.map(|name| (name, hash(&body.bytes)));
    let agent = body.value.agent.clone();
    let permit = control.permit(&caller.0, Action::JobCreate, &caller.0.tenant, agent.as_deref()).await?;
    let submitted = control.create_job(&permit, body.value, name).await?;
    let job = control.wait_job(&permit, &submitted.id, Duration::from_millis(wait_ms.unwrap_or(0))).await?;
    let status = if wait_ms.is_some() && job.state.is_final() { 200 } else { 202 };
    answer(&control, status, job).await
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, InvalidValue> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let is_plain = !text.is_empty() && text.len() <= 255 && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain {
        return Ok(Some(text.to_owned()));
    }
    Err(InvalidValue::new("Idempotency-Key", text, "it must be 1 to 255 visible ASCII characters"))
}

/// A job with its result, which lies in pieces while it is kept.
async fn answer(control: &Control, status: u16, job: JobRecord) -> Answer {
    let output = match job.state.is_final() {
        true => control
            .store()
            .output(&job.id, 0, ALL_EVENTS)
            .await
            .map_err(cofferdam_control::ControlError::from)?,
        false => Vec::new(),
    };
    Ok(json(status, &job_view(job, Some(&output))))
}

async fn show(State(control): State<Control>, caller: Caller, Path(id): Path<String>) -> Answer {
    let permit = caller.permit(&control, Action::JobGet).await?;
    let job = control.get_job(&permit, &id).await?;
    answer(&control, 200, job).await
}

async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["state", "task_id", "limit", "cursor"])?;
    let permit = caller.permit(&control, Action::JobList).await?;
    let state = query.get("state").map(|text| {
        let fix = || format!("it must be one of {}", JobState::ALL.map(JobState::as_str).join(", "));
        JobState::from_name(text).ok_or_else(|| InvalidValue::new("state", text, fix()))
    });
    let limit = query.number("limit", MAX_PAGE)?.unwrap_or(PAGE).max(1) as i64;
    let filter = JobFilter {
        state: state.transpose()?,
        task_id: query.get("task_id").map(str::to_owned),
        limit: limit + 1,
        before: query.get("cursor").map(read_cursor).transpose()?,
    };
    let mut jobs = control.list_jobs(&permit, &filter).await?;
    let has_more = jobs.len() as i64 > limit;
    jobs.truncate(limit as usize);
    let next_cursor = jobs.last().filter(|_| has_more).map(cursor);
    let without_result = |job| job_view(JobRecord { result: None, ..job }, None);
    Ok(json(200, &JobList { jobs: jobs.into_iter().map(without_result).collect(), next_cursor }))
}

fn cursor(job: &JobRecord) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {}", job.created_at_ms, job.id))
}

fn read_cursor(text: &str) -> Result<Page, InvalidValue> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    let inner = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let page = inner.and_then(|inner| {
        let (created, id) = inner.split_once(' ')?;
        Some(Page { created_at_ms: created.parse().ok()?, id: id.to_owned() })
    });
    page.ok_or_else(|| InvalidValue::new("cursor", text, "use the next_cursor of the page before"))
}

async fn cancel(State(control): State<Control>, caller: Caller, Path(id): Path<String>) -> Answer {
    let permit = caller.permit(&control, Action::JobCancel).await?;
    control.cancel_job(&permit, &id).await?;
    let job = control.get_job(&permit, &id).await?;
    Ok(json(202, &job_view(job, None)))
}

async fn remove(State(control): State<Control>, caller: Caller, Path(id): Path<String>) -> Answer {
    let permit = caller.permit(&control, Action::JobDelete).await?;
    control.delete_job(&permit, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn follow(
    State(control): State<Control>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let permit = caller.permit(&control, Action::JobGet).await?;
    let after = match headers.get("last-event-id").map(|value| value.to_str().unwrap_or_default()) {
        None => -1,
        Some(text) => text.parse::<i64>().map_err(|_| {
            InvalidValue::new("Last-Event-ID", text, "it must be the id of an event of this job")
        })?,
    };
    let follower = control.follow_job(&permit, &id, after.max(0)).await?;
    Ok(stream(control, permit, id, after, follower))
}

/// Where a follower stands.
enum Place {
    Start,
    Output,
    End,
}

fn stream(control: Control, permit: Permit, id: String, after: i64, follower: Follower) -> Response {
    let place = if after < 0 { Place::Start } else { Place::Output };
    let state = (control, permit, id, follower, place);
    let events =
        futures_util::stream::unfold(state, |(control, permit, id, mut follower, place)| async move {
            let (events, place) = match place {
                Place::End => return None,
                Place::Start => (vec![event("init", 0, &json!({"id": id}))], Place::Output),
                Place::Output => match follower.next().await {
                    Ok(Followed::Output(output)) => {
                        (output.iter().map(output_event).collect(), Place::Output)
                    }
                    Ok(Followed::Ended(job)) => (ending(&control, *job).await, Place::End),
                    Err(error) => {
                        (vec![event("error", 0, &json!({"message": error.to_string()}))], Place::End)
                    }
                },
            };
            let events: Vec<Result<Event, Infallible>> = events.into_iter().map(Ok).collect();
            Some((futures_util::stream::iter(events), (control, permit, id, follower, place)))
        });
    let events = futures_util::StreamExt::flatten(events);
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

fn event(name: &str, seq: i64, data: &serde_json::Value) -> Event {
    Event::default().event(name).id(seq.to_string()).data(data.to_string())
}

fn output_event(output: &OutputEvent) -> Event {
    let data = match output.kind {
        OutputKind::Init => {
            let attempt: i64 = std::str::from_utf8(&output.bytes).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            json!({"seq": output.seq, "attempt": attempt})
        }
        OutputKind::Truncated => json!({"seq": output.seq, "stream": String::from_utf8_lossy(&output.bytes)}),
        OutputKind::Stdout | OutputKind::Stderr => match std::str::from_utf8(&output.bytes) {
            Ok(text) => json!({"seq": output.seq, "text": text}),
            Err(_) => json!({
                "seq": output.seq,
                "text": String::from_utf8_lossy(&output.bytes),
                "base64": STANDARD.encode(&output.bytes),
            }),
        },
    };
    event(output.kind.as_str(), output.seq, &data)
}

/// The last two events of a job: what came of it, and that nothing more will come.
async fn ending(control: &Control, job: JobRecord) -> Vec<Event> {
    let output = control.store().output(&job.id, 0, ALL_EVENTS).await.unwrap_or_default();
    let seq = output.last().map_or(0, |event| event.seq);
    let view = serde_json::to_value(job_view(job, Some(&output))).unwrap_or_default();
    vec![event("result", seq + 1, &view), event("complete", seq + 2, &json!({}))]
}
