//! What changes among the files of a session, as it happens.

use crate::answer::{Answer, Problem};
use crate::auth::Caller;
use crate::document::refusals::{Always, OfOne, OfState};
use crate::last_event::last_event_id;
use crate::path::Id;
use crate::query::Query;
use crate::stream::event;
use crate::while_valid::while_valid;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use cofferdam_api::{ErrorData, StreamEvent, TruncatedData, WatchReadyData};
use cofferdam_control::{Control, WatchTold};
use cofferdam_core::GuestPath;
use cofferdam_policy::{Action, Permit};
use std::convert::Infallible;
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(watch))
}

/// How long one look waits for news.
const LOOK: Duration = Duration::from_secs(10);

/// Watch a folder
///
/// Server-sent events: `ready` (WatchReadyData) when the watch stands, then `created`, `modified`, `removed` and `moved`
/// (FileChangeData), in the order in which they happened, for the folder and those below it; `truncated` where
/// something is missing, and `gone` when the folder is. The last 4096 changes are kept for a minute: whoever was cut
/// off sends the last id and goes on from there.
#[utoipa::path(
    get, path = "/sessions/{id}/files/watch", operation_id = "file_watch", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("path" = Option<String>, Query, description = "The folder; /workspace unless given", example = "/workspace"),
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,18}$",
         description = "The id of the last event that was seen"),
        ("follow" = Option<bool>, Query,
         description = "With `false`, the stream ends after what there is now; `true` unless given"),
    ),
    responses(
        (status = 200, description = "The events, until the folder or the session is gone",
         content_type = "text/event-stream", body = StreamEvent),
        Always, OfOne, OfState,
    )
)]
async fn watch(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    query: Query,
    headers: HeaderMap,
) -> Answer {
    query.only(&["path", "follow"])?;
    let waits = query.flag("follow")?.unwrap_or(true);
    let permit = caller.permit(&control, Action::FileRead).await?;
    let after = last_event_id(&headers)?.map(i64::unsigned_abs);
    let (path, told) =
        control.watch_files(&permit, &id, query.get("path").unwrap_or("/workspace"), after).await?;
    let asked = control.clone();
    let begins = after.is_none();
    let after = after.unwrap_or(told.last_seq);
    let first = Some((begins, told));
    let follower = Follower { control, permit, session: id, path, after, waits, first, is_over: false };
    let events = while_valid(asked, &headers, follower.stream());
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

struct Follower {
    control: Control,
    permit: Permit,
    session: String,
    path: GuestPath,
    after: u64,
    waits: bool,
    /// What there was at the beginning, and whether the watch began with it.
    first: Option<(bool, WatchTold)>,
    is_over: bool,
}

fn seq(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

impl Follower {
    fn stream(self) -> impl futures_util::stream::Stream<Item = Result<Event, Infallible>> + Send + 'static {
        let events = futures_util::stream::unfold(self, |mut follower| async move {
            let events: Vec<Result<Event, Infallible>> = follower.next().await?.into_iter().map(Ok).collect();
            Some((futures_util::stream::iter(events), follower))
        });
        futures_util::StreamExt::flatten(events)
    }

    async fn next(&mut self) -> Option<Vec<Event>> {
        if self.is_over {
            return None;
        }
        let mut events = Vec::new();
        let told = match self.first.take() {
            Some((begins, told)) => {
                if begins {
                    let (seq, path) = (seq(told.last_seq), self.path.to_string());
                    events.push(event("ready", Some(seq), &WatchReadyData { seq, path }));
                }
                Ok(told)
            }
            None => {
                let time = if self.waits { LOOK } else { Duration::ZERO };
                let Self { control, permit, session, path, after, .. } = &*self;
                control.watch_files_on(permit, session, path, *after, time).await
            }
        };
        let told = match told {
            Ok(told) => told,
            Err(error) => {
                self.is_over = true;
                let Problem { code, message, .. } = Problem::from(error);
                events.push(event("error", None, &ErrorData { code, message }));
                return Some(events);
            }
        };
        if told.has_gap {
            let at = told.changes.first().map_or(told.last_seq, |change| change.seq.unsigned_abs() - 1);
            let lost =
                TruncatedData { seq: seq(at), stream: "all".to_owned(), reason: Some("dropped".to_owned()) };
            events.push(event("truncated", Some(seq(at)), &lost));
        }
        for change in &told.changes {
            events.push(event(change.change.as_str(), Some(change.seq), change));
        }
        self.after = self.after.max(told.last_seq);
        if told.is_over {
            self.is_over = true;
            let (seq, path) = (seq(told.last_seq), self.path.to_string());
            events.push(event("gone", Some(seq), &WatchReadyData { seq, path }));
        } else if !self.waits && told.changes.is_empty() {
            self.is_over = true;
        }
        Some(events)
    }
}
