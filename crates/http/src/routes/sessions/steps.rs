//! The steps of a session.

use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::document::refusals::{Always, OfBody, OfOne, OfState};
use crate::idempotency::idempotency_key;
use crate::path::{Id, TwoIds};
use crate::query::{NoQuery, Query};
use axum::extract::State;
use axum::http::HeaderMap;
use cofferdam_api::{SignedDocument, Step, StepList, StepRequest};
use cofferdam_control::{Control, hash, step_view};
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Action, Permit};
use cofferdam_store::StepRecord;
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show))
        .routes(routes!(interrupt))
        .routes(routes!(receipt))
}

/// The longest that a request waits for a step's end.
const MAX_WAIT_MS: u64 = 60_000;

const PAGE: u64 = 50;
const MAX_PAGE: u64 = 500;

/// More than any step's output has events.
const ALL_EVENTS: i64 = 100_000;

/// Run a step
///
/// A command, or code in an interpreter that stays. The step is on the disk when this answers, and is run at most once.
/// With `wait_ms` it answers when the step has ended, or when the time is over, whichever comes first; a client that goes
/// away changes nothing.
#[utoipa::path(
    post, path = "/sessions/{id}/steps", operation_id = "step_create", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("wait_ms" = Option<u64>, Query, maximum = 60000, example = 30000,
         description = "How long to wait for the step's end"),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The same key with the same body is one step of the session; with another body it is a 409"),
    ),
    request_body(
        content = StepRequest, content_type = "application/json",
        examples(
            ("code" = (summary = "Code, whose variables stay", value = json!({"language": "python", "code": "x = 41"}))),
            ("command" = (summary = "A program and its arguments", value = json!({"command": ["ls", "-l"]}))),
            ("shell" = (summary = "A line for a shell", value = json!({"command": "sleep 60 & echo started"}))),
        ),
    ),
    responses(
        (status = 200, description = "It was waited for, and has ended", body = Step),
        (status = 202, description = "It is kept, and has not ended", body = Step),
        Always, OfBody, OfOne, OfState,
    )
)]
async fn create(
    State(control): State<Control>,
    caller: Caller,
    Id(session): Id,
    query: Query,
    headers: HeaderMap,
    body: Body<StepRequest>,
) -> Answer {
    query.only(&["wait_ms"])?;
    let wait_ms = query.number("wait_ms", MAX_WAIT_MS)?;
    let name = idempotency_key(&headers)?.map(|name| (name, hash(&body.bytes)));
    let permit = caller.permit(&control, Action::StepCreate).await?;
    let submitted = control.create_step(&permit, &session, body.value, name).await?;
    let time = Duration::from_millis(wait_ms.unwrap_or(0));
    let step = control.wait_step(&permit, &session, &submitted.id, time).await?;
    let status = if wait_ms.is_some() && step.state.is_final() { 200 } else { 202 };
    answer(&control, &permit, status, step).await
}

/// A step with its result, which lies in pieces while it is kept.
async fn answer(control: &Control, permit: &Permit, status: u16, step: StepRecord) -> Answer {
    let output = match step.state.is_final() {
        true => control.step_output(permit.tenant(), &step.session, &step.id, 0, ALL_EVENTS).await?,
        false => Vec::new(),
    };
    Ok(json(status, &step_view(step, Some(&output))))
}

/// Show a step
///
/// With its result once it has ended.
#[utoipa::path(
    get, path = "/sessions/{id}/steps/{step_id}", operation_id = "step_get", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("step_id" = String, Path, description = "The step's id", example = "stp-aaaaaaaaaaaaaaaa"),
    ),
    responses((status = 200, description = "The step", body = Step), Always, OfOne)
)]
async fn show(State(control): State<Control>, caller: Caller, ids: TwoIds, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::StepGet).await?;
    let step = control.get_step(&permit, &ids.0, &ids.1).await?;
    answer(&control, &permit, 200, step).await
}

/// List a session's steps
///
/// In their order, without their results.
#[utoipa::path(
    get, path = "/sessions/{id}/steps", operation_id = "step_list", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 500, description = "How many; 50 unless given"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before", pattern = "^[0-9]{1,18}$"),
    ),
    responses((status = 200, description = "A page of steps", body = StepList), Always, OfOne)
)]
async fn list(State(control): State<Control>, caller: Caller, Id(session): Id, query: Query) -> Answer {
    query.only(&["limit", "cursor"])?;
    let permit = caller.permit(&control, Action::StepList).await?;
    let limit = query.count("limit", MAX_PAGE)?.unwrap_or(PAGE) as usize;
    let after = query.get("cursor").map(read_number).transpose()?.unwrap_or(0);
    let mut steps = control.list_steps(&permit, &session, after, limit as i64 + 1).await?;
    let has_more = steps.len() > limit;
    steps.truncate(limit);
    let next_cursor = steps.last().filter(|_| has_more).map(|step| step.number.to_string());
    let steps = steps.into_iter().map(|step| step_view(step, None)).collect();
    Ok(json(200, &StepList { steps, next_cursor }))
}

/// The cursor of a list of steps is the number of the last one.
fn read_number(text: &str) -> Result<i64, InvalidValue> {
    let is_plain = text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    let wrong = || InvalidValue::new("cursor", text, "use the next_cursor of the page before");
    text.parse().ok().filter(|_| is_plain).ok_or_else(wrong)
}

/// A signed statement of what a step was and what came of it
///
/// As that of a job: a DSSE envelope around an in-toto statement, which `cofferdam receipt verify` checks without the
/// service. Once its session is deleted there is none.
#[utoipa::path(
    get, path = "/sessions/{id}/steps/{step_id}/receipt", operation_id = "step_receipt", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("step_id" = String, Path, description = "The step's id", example = "stp-aaaaaaaaaaaaaaaa"),
    ),
    responses((status = 200, description = "The receipt", body = SignedDocument), Always, OfOne, OfState)
)]
async fn receipt(State(control): State<Control>, caller: Caller, ids: TwoIds, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::StepGet).await?;
    Ok(json(200, &control.get_step_receipt(&permit, &ids.0, &ids.1).await?))
}

/// Interrupt a step
///
/// A step that waits does not begin. One that runs is interrupted: what its interpreter has set stays, where it can;
/// otherwise the interpreter is killed after the session's grace, and the result says so. One that has ended stays as it
/// is.
#[utoipa::path(
    post, path = "/sessions/{id}/steps/{step_id}/interrupt", operation_id = "step_interrupt", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("step_id" = String, Path, description = "The step's id", example = "stp-aaaaaaaaaaaaaaaa"),
    ),
    responses((status = 202, description = "It was asked to end", body = Step), Always, OfOne)
)]
async fn interrupt(State(control): State<Control>, caller: Caller, ids: TwoIds, _: NoQuery) -> Answer {
    let permit = caller.permit(&control, Action::StepInterrupt).await?;
    control.interrupt_step(&permit, &ids.0, &ids.1).await?;
    let step = control.get_step(&permit, &ids.0, &ids.1).await?;
    Ok(json(202, &step_view(step, None)))
}
