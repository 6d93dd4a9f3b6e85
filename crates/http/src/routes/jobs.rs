//! `/v1/jobs`.

use crate::answer::{Answer, Problem, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::cursor::{page, read_cursor};
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::idempotency::idempotency_key;
use crate::last_event::last_event_id;
use crate::path::Id;
use crate::query::{NoQuery, Query};
use crate::stream::{event, output_event};
use crate::while_valid::while_valid;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use cofferdam_api::{
    CompleteData, ErrorData, InitData, Job, JobList, JobRequest, StreamEvent, TruncatedData, WebhookMade,
};
use cofferdam_control::{Control, ControlError, Followed, Follower, hash, job_view};
use cofferdam_core::{InvalidValue, JobState};
use cofferdam_policy::{Action, Permit};
use cofferdam_store::{JobFilter, JobRecord, OutputEvent};
use futures_util::stream::Stream;
use std::convert::Infallible;
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, remove))
        .routes(routes!(cancel))
        .routes(routes!(follow))
}

/// The longest that a request waits for a job's end.
const MAX_WAIT_MS: u64 = 60_000;

const PAGE: u64 = 50;
const MAX_PAGE: u64 = 500;

/// More than any job's output has events.
const ALL_EVENTS: i64 = 100_000;

/// Run code or a command
///
/// The job is on the disk when this answers. With `wait_ms` it answers when the job has ended, or when the time is over,
/// whichever comes first; a client that goes away changes nothing.
#[utoipa::path(
    post, path = "/jobs", operation_id = "job_create", tag = "jobs",
    params(
        ("wait_ms" = Option<u64>, Query, maximum = 60000, example = 30000,
         description = "How long to wait for the job's end"),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The same key with the same body is one job, and a 404 once that is deleted; with another body it is a 409"),
    ),
    request_body(
        content = JobRequest, content_type = "application/json",
        examples(
            ("code" = (summary = "Code", value = json!({"language": "python", "code": "print(1)"}))),
            ("command" = (summary = "A program and its arguments",
                value = json!({"command": ["sort", "-n"], "stdin": "3\n1\n2\n", "timeout_ms": 10000}))),
            ("files" = (summary = "A line for a shell, with a file", value = json!({
                "command": "wc -l < data.csv", "files": [{"path": "data.csv", "content": "a,b\n1,2\n"}]}))),
        ),
    ),
    responses(
        (status = 200, description = "It was waited for, and has ended", body = Job, links(
            ("show" = (operation_id = "job_get", parameters(("id" = "$response.body#/id")))),
            ("output" = (operation_id = "job_output", parameters(("id" = "$response.body#/id")))),
            ("delete" = (operation_id = "job_delete", parameters(("id" = "$response.body#/id")))),
        )),
        (status = 202, description = "It is kept, and has not ended", body = Job, links(
            ("show" = (operation_id = "job_get", parameters(("id" = "$response.body#/id")))),
            ("cancel" = (operation_id = "job_cancel", parameters(("id" = "$response.body#/id")))),
            ("output" = (operation_id = "job_output", parameters(("id" = "$response.body#/id")))),
            ("delete" = (operation_id = "job_delete", parameters(("id" = "$response.body#/id")))),
        )),
        Always, OfBody, OfOne, OfState,
    )
)]
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
    if body.value.secrets.as_ref().is_some_and(|secrets| !secrets.is_empty()) {
        caller.permit(&control, Action::SecretUse).await?;
    }
    let submitted = control.create_job(&permit, body.value, name).await?;
    let job = control.wait_job(&permit, &submitted.id, Duration::from_millis(wait_ms.unwrap_or(0))).await?;
    let status = if wait_ms.is_some() && job.state.is_final() { 200 } else { 202 };
    answer(&control, status, job, submitted.webhook).await
}

/// A job with its result, which lies in pieces while it is kept.
async fn answer(control: &Control, status: u16, job: JobRecord, webhook: Option<WebhookMade>) -> Answer {
    let output = match job.state.is_final() && job.output_expired_at_ms.is_none() {
        true => control.store().output(&job.id, 0, ALL_EVENTS).await.map_err(ControlError::from)?,
        false => Vec::new(),
    };
    Ok(json(status, &Job { webhook, ..job_view(job, Some(&output)) }))
}

/// Show a job
///
/// With its result once it has ended.
#[utoipa::path(
    get, path = "/jobs/{id}", operation_id = "job_get", tag = "jobs",
    params(("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa")),
    responses((status = 200, description = "The job", body = Job), Always, OfOne)
)]
async fn show(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::JobGet).await?;
    let job = control.get_job(&permit, &id).await?;
    answer(&control, 200, job, None).await
}

/// List jobs
///
/// The newest first, without their results.
#[utoipa::path(
    get, path = "/jobs", operation_id = "job_list", tag = "jobs",
    params(
        ("state" = Option<JobState>, Query, description = "Only those in this state"),
        ("task_id" = Option<String>, Query, description = "Only those of this task", pattern = "^[^\\u0000]*$"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "How many; 50 unless given"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "A page of jobs", body = JobList), Always)
)]
async fn list(State(control): State<Control>, caller: Caller, query: Query) -> Answer {
    query.only(&["state", "task_id", "limit", "cursor"])?;
    let permit = caller.permit(&control, Action::JobList).await?;
    let state = query.get("state").map(|text| {
        let fix = || format!("it must be one of {}", JobState::ALL.map(JobState::as_str).join(", "));
        JobState::from_name(text).ok_or_else(|| InvalidValue::new("state", text, fix()))
    });
    let limit = query.count("limit", MAX_PAGE)?.unwrap_or(PAGE) as i64;
    let filter = JobFilter {
        state: state.transpose()?,
        task_id: query.get("task_id").map(str::to_owned),
        limit: limit + 1,
        before: query.get("cursor").map(read_cursor).transpose()?,
    };
    let jobs = control.list_jobs(&permit, &filter).await?;
    let (jobs, next_cursor) = page(jobs, limit as usize, |job| (job.created_at_ms, &job.id));
    let without_result = |job| job_view(JobRecord { result: None, ..job }, None);
    Ok(json(200, &JobList { jobs: jobs.into_iter().map(without_result).collect(), next_cursor }))
}

/// Cancel a job
///
/// Its processes are asked to end, and killed after its grace. One that has ended stays as it is.
#[utoipa::path(
    post, path = "/jobs/{id}/cancel", operation_id = "job_cancel", tag = "jobs",
    params(("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa")),
    responses((status = 202, description = "It was asked to end", body = Job), Always, OfOne)
)]
async fn cancel(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::JobCancel).await?;
    control.cancel_job(&permit, &id).await?;
    let job = control.get_job(&permit, &id).await?;
    Ok(json(202, &job_view(job, None)))
}

/// Delete a job that has ended
///
/// And its output.
#[utoipa::path(
    delete, path = "/jobs/{id}", operation_id = "job_delete", tag = "jobs",
    params(("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa")),
    responses((status = 204, description = "It is gone"), Always, OfOne, OfState)
)]
async fn remove(State(control): State<Control>, caller: Caller, Id(id): Id, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::JobDelete).await?;
    control.delete_job(&permit, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Follow a job's output
///
/// Server-sent events, while it runs and afterwards, each with an `id` (but for `error`): `init` (InitData), `stdout` and
/// `stderr` (OutputData), `truncated` (TruncatedData), `result` (Job), `error` (ErrorData) and `complete` (CompleteData).
/// Whoever is cut off sends the last id and goes on from there, without a gap or a repetition.
#[utoipa::path(
    get, path = "/jobs/{id}/output", operation_id = "job_output", tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id", example = "job-aaaaaaaaaaaaaaaa"),
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,18}$",
         description = "The id of the last event that was seen"),
        ("follow" = Option<bool>, Query,
         description = "With `false`, the stream ends after what there is now; `true` unless given"),
    ),
    responses(
        (status = 200, description = "The events, until the job's end", content_type = "text/event-stream",
         body = StreamEvent),
        Always, OfOne,
    )
)]
async fn follow(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    query: Query,
    headers: HeaderMap,
) -> Answer {
    query.only(&["follow"])?;
    let waits = query.flag("follow")?.unwrap_or(true);
    let permit = caller.permit(&control, Action::JobGet).await?;
    let after = last_event_id(&headers)?.unwrap_or(-1);
    let follower = control.follow_job(&permit, &id, after.max(0), waits).await?;
    let events = stream(control.clone(), permit, id, after, follower);
    let events = while_valid(control, &headers, events);
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

/// Where a follower stands.
enum Place {
    Start,
    Output,
    End,
}

fn stream(
    control: Control,
    permit: Permit,
    id: String,
    after: i64,
    follower: Follower,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let place = if after < 0 { Place::Start } else { Place::Output };
    let state = (control, permit, id, follower, place);
    let events =
        futures_util::stream::unfold(state, move |(control, permit, id, mut follower, place)| async move {
            let (events, place) = match place {
                Place::End => return None,
                Place::Start => (
                    vec![event("init", Some(0), &InitData { seq: 0, id: id.clone(), attempt: None })],
                    Place::Output,
                ),
                Place::Output => match next(&mut follower).await {
                    Ok(Followed::Output(output)) => {
                        (output.iter().map(|output| output_event(&id, output)).collect(), Place::Output)
                    }
                    Ok(Followed::Now | Followed::Stopped) => return None,
                    Ok(Followed::Ended(job)) if job.output_expired_at_ms.is_some() => {
                        (expired(*job, follower.last_seq()), Place::End)
                    }
                    Ok(Followed::Ended(job)) => (ending(&control, *job, after).await, Place::End),
                    // Without an id: whoever resumes asks for what comes after the last real one.
                    Err(error) => {
                        let Problem { code, message, .. } = Problem::from(error);
                        (vec![event("error", None, &ErrorData { code, message })], Place::End)
                    }
                },
            };
            let events: Vec<Result<Event, Infallible>> = events.into_iter().map(Ok).collect();
            Some((futures_util::stream::iter(events), (control, permit, id, follower, place)))
        });
    futures_util::StreamExt::flatten(events)
}

/// How often a follower asks a store that does not answer in time: a thousand that ask at once may be too many, and
/// whoever follows can wait.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(200);

/// What comes next; tried again where only the store has failed.
async fn next(follower: &mut Follower) -> Result<Followed, ControlError> {
    for attempt in 1..TRIES {
        match follower.next().await {
            Err(ControlError::Store(_)) => tokio::time::sleep(PAUSE * attempt).await,
            done => return done,
        }
    }
    follower.next().await
}

/// All that is kept of a job's output, in the same way.
async fn whole_output(control: &Control, id: &str) -> Result<Vec<OutputEvent>, ControlError> {
    for attempt in 1..TRIES {
        match control.store().output(id, 0, ALL_EVENTS).await {
            Ok(output) => return Ok(output),
            Err(_) => tokio::time::sleep(PAUSE * attempt).await,
        }
    }
    Ok(control.store().output(id, 0, ALL_EVENTS).await?)
}

/// The last two events of a job, less what was seen: what came of it, and that nothing more will come.
async fn ending(control: &Control, job: JobRecord, after: i64) -> Vec<Event> {
    let output = match whole_output(control, &job.id).await {
        Ok(output) => output,
        // Without an id, as above: a result without its output, or with a number that was another's, is none.
        Err(error) => {
            let Problem { code, message, .. } = error.into();
            return vec![event("error", None, &ErrorData { code, message })];
        }
    };
    let seq = output.last().map_or(0, |event| event.seq);
    let mut events = Vec::new();
    if after <= seq {
        events.push(event("result", Some(seq + 1), &job_view(job, Some(&output))));
    }
    events.push(event("complete", Some(seq + 2), &CompleteData { seq: seq + 2 }));
    events
}

/// The end of a job whose output is not kept any more: that it is gone, and the rest as ever. The numbers go on from
/// where the follower is.
fn expired(job: JobRecord, last_seq: i64) -> Vec<Event> {
    let [gone, result, end] = [1, 2, 3].map(|step| last_seq.saturating_add(step));
    let reason = Some("expired".to_owned());
    vec![
        event("truncated", Some(gone), &TruncatedData { seq: gone, stream: "all".to_owned(), reason }),
        event("result", Some(result), &job_view(job, None)),
        event("complete", Some(end), &CompleteData { seq: end }),
    ]
}
