//! The output of a step, as it comes.

use crate::answer::{Answer, Problem};
use crate::auth::Caller;
use crate::document::refusals::{Always, OfOne};
use crate::last_event::last_event_id;
use crate::path::TwoIds;
use crate::query::Query;
use crate::stream::{event, output_event};
use crate::while_valid::while_valid;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use cofferdam_api::{CompleteData, ErrorData, InitData, StreamEvent};
use cofferdam_control::{Control, FollowedStep, StepFollower, step_view};
use cofferdam_policy::Action;
use cofferdam_store::StepRecord;
use futures_util::stream::Stream;
use std::convert::Infallible;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(follow))
}

/// More than any step's output has events.
const ALL_EVENTS: i64 = 100_000;

/// Follow a step's output
///
/// Server-sent events, as of a job: `init`, `stdout`, `stderr`, `display` (DisplayData), `truncated`, `result` (Step),
/// `error` and `complete`. Whoever is cut off sends the last id and goes on from there, without a gap or a repetition.
#[utoipa::path(
    get, path = "/sessions/{id}/steps/{step_id}/output", operation_id = "step_output", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("step_id" = String, Path, description = "The step's id", example = "stp-aaaaaaaaaaaaaaaa"),
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,18}$",
         description = "The id of the last event that was seen"),
        ("follow" = Option<bool>, Query,
         description = "With `false`, the stream ends after what there is now; `true` unless given"),
    ),
    responses(
        (status = 200, description = "The events, until the step's end", content_type = "text/event-stream",
         body = StreamEvent),
        Always, OfOne,
    )
)]
async fn follow(
    State(control): State<Control>,
    caller: Caller,
    ids: TwoIds,
    query: Query,
    headers: HeaderMap,
) -> Answer {
    query.only(&["follow"])?;
    let waits = query.flag("follow")?.unwrap_or(true);
    let permit = caller.permit(&control, Action::StepGet).await?;
    let after = last_event_id(&headers)?.unwrap_or(-1);
    let follower = control.follow_step(&permit, &ids.0, &ids.1, after.max(0), waits).await?;
    let events = while_valid(control.clone(), &headers, stream(ids.1, after, follower));
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

/// Where a follower stands.
enum Place {
    Start,
    Output,
    End,
}

fn stream(
    id: String,
    after: i64,
    follower: StepFollower,
) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
    let place = if after < 0 { Place::Start } else { Place::Output };
    let state = (id, follower, place);
    let events = futures_util::stream::unfold(state, move |(id, mut follower, place)| async move {
        let (events, place) = match place {
            Place::End => return None,
            Place::Start => {
                let begin = InitData { seq: 0, id: id.clone(), attempt: None };
                (vec![event("init", Some(0), &begin)], Place::Output)
            }
            Place::Output => match follower.next().await {
                Ok(FollowedStep::Output(output)) => {
                    (output.iter().map(|output| output_event(&id, output)).collect(), Place::Output)
                }
                Ok(FollowedStep::Now) => return None,
                Ok(FollowedStep::Ended(step)) => (ending(&follower, *step, after).await, Place::End),
                // Without an id: whoever resumes asks for what comes after the last real one.
                Err(error) => {
                    let Problem { code, message, .. } = Problem::from(error);
                    (vec![event("error", None, &ErrorData { code, message })], Place::End)
                }
            },
        };
        let events: Vec<Result<Event, Infallible>> = events.into_iter().map(Ok).collect();
        Some((futures_util::stream::iter(events), (id, follower, place)))
    });
    futures_util::StreamExt::flatten(events)
}

/// The last two events, less what was seen: what came of the step, and that nothing more will come.
async fn ending(follower: &StepFollower, step: StepRecord, after: i64) -> Vec<Event> {
    let output = follower.all(ALL_EVENTS).await.unwrap_or_default();
    let seq = output.last().map_or(0, |event| event.seq);
    let mut events = Vec::new();
    if after <= seq {
        events.push(event("result", Some(seq + 1), &step_view(step, Some(&output))));
    }
    events.push(event("complete", Some(seq + 2), &CompleteData { seq: seq + 2 }));
    events
}
