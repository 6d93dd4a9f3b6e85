//! What changes among the files of a session, as it happens: as server-sent events, and over a WebSocket.

use super::process_socket::MAX_SEQ;
use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::document::refusals::{Always, OfBody, OfOne, OfState, OfUpgrade};
use crate::last_event::last_event_id;
use crate::listen::Place;
use crate::path::Id;
use crate::query::{NoQuery, Query};
use crate::sockets::{Watching, upgrade, who};
use crate::stream::event;
use crate::watching::Follower;
use crate::while_valid::while_valid;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use cofferdam_api::{ErrorData, StreamEvent, TicketView, WatchEvent, WatchTicketRequest};
use cofferdam_control::{Control, TicketFor};
use cofferdam_core::GuestPath;
use cofferdam_policy::Action;
use futures_util::stream::{Stream, StreamExt, iter, unfold};
use std::convert::Infallible;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(watch)).routes(routes!(attach)).routes(routes!(ticket))
}

/// What is watched where no folder is named.
const FOLDER: &str = "/workspace";

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
    let path = query.get("path").unwrap_or(FOLDER);
    let follower = Follower::begin(control.clone(), permit, id, path, after, waits).await?;
    let events = while_valid(control, &headers, stream(follower));
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

fn stream(follower: Follower) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
    let events = unfold(follower, |mut follower| async move {
        let events: Vec<_> = follower.next().await?.iter().map(|event| Ok(sent(event))).collect();
        Some((iter(events), follower))
    });
    events.flatten()
}

/// As a server-sent event.
fn sent(told: &WatchEvent) -> Event {
    match told {
        WatchEvent::Ready(data) => event("ready", Some(data.seq), data),
        WatchEvent::Created(data)
        | WatchEvent::Modified(data)
        | WatchEvent::Removed(data)
        | WatchEvent::Moved(data) => event(data.change.as_str(), Some(data.seq), data),
        WatchEvent::Truncated(data) => event("truncated", Some(data.seq), data),
        WatchEvent::Gone(data) => event("gone", Some(data.seq), data),
        WatchEvent::Error { code, message, is_last: _ } => {
            event("error", None, &ErrorData { code: *code, message: message.clone() })
        }
    }
}

/// Make a ticket for a watch
///
/// A browser cannot send a key with a WebSocket, and should not have one. A ticket is good for half a minute, for one
/// connection to the changes of this folder, and for pages of one origin.
#[utoipa::path(
    post, path = "/sessions/{id}/files/watch/tickets", operation_id = "file_watch_ticket", tag = "sessions",
    params(("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa")),
    request_body(content = WatchTicketRequest, content_type = "application/json"),
    responses((status = 201, description = "It can be used", body = TicketView), Always, OfBody, OfOne, OfState)
)]
async fn ticket(
    State(control): State<Control>,
    caller: Caller,
    Id(id): Id,
    _: NoQuery,
    body: Body<WatchTicketRequest>,
) -> Answer {
    let permit = caller.permit(&control, Action::FileRead).await?;
    Ok(json(201, &control.create_watch_ticket(&permit, &id, &body.value).await?))
}

/// Connect to a watch
///
/// A WebSocket. Its text frames have what the server-sent events of a watch have, with the event's name as `type`, as
/// docs/sessions.md says. It ends with `gone`, or with an `error` that says why; who was cut off comes back with
/// `from_seq`.
#[utoipa::path(
    get, path = "/sessions/{id}/files/watch/ws", operation_id = "file_watch_attach", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("path" = Option<String>, Query, description = "The folder; /workspace unless given", example = "/workspace"),
        ("from_seq" = Option<u64>, Query, minimum = 0, maximum = 9_223_372_036_854_775_807u64,
         description = "The first number to send; what happens from now on, unless given"),
        ("ticket" = Option<String>, Query, description = "In the place of a key"),
    ),
    responses(
        (status = 101, description = "From here on it is a WebSocket"),
        Always, OfOne, OfState, OfUpgrade,
    )
)]
async fn attach(State(control): State<Control>, Id(id): Id, request: Request) -> Answer {
    let (mut parts, _) = request.into_parts();
    let query = Query::from_request_parts(&mut parts, &control).await?;
    query.only(&["path", "from_seq", "ticket"])?;
    let path = query.get("path").unwrap_or(FOLDER);
    let wanted = || Ok(TicketFor::Watch(GuestPath::parse_in_workspace("path", path)?));
    let (principal, credential) = who(&mut parts, &control, &id, query.get("ticket"), wanted).await?;
    let permit = control.permit(&principal, Action::FileRead, &principal.tenant, None).await?;
    let after = query.number("from_seq", MAX_SEQ)?.map(|seq| seq.saturating_sub(1));
    // What is not there is an answer of its own, and no connection; what is none begins no watch.
    control.get_session(&permit, &id).await?;
    let place = parts.extensions.get::<Place>().cloned();
    let upgrade = upgrade(&mut parts, &control).await?;
    let follower = Follower::begin(control.clone(), permit, id, path, after, true).await?;
    let watching = Watching { control, credential, follower, place };
    Ok(upgrade.on_upgrade(move |socket| watching.converse(socket)))
}
