//! A process over a WebSocket, and the tickets by which a page in a browser opens one.

use super::processes::number;
use crate::answer::{Answer, Problem, json};
use crate::auth::{Caller, given_secret};
use crate::body::Body;
use crate::document::refusals::{Always, OfBody, OfOne, OfState, OfUpgrade};
use crate::listen::Place;
use crate::origin::check_origin;
use crate::path::IdAndName;
use crate::query::{NoQuery, Query};
use crate::sockets::{Attachment, Credential, MAX_MESSAGE_BYTES, MAX_UNSENT_BYTES};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use cofferdam_api::{ErrorCode, TicketRequest, TicketView};
use cofferdam_control::Control;
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Action, Principal};
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(attach)).routes(routes!(ticket))
}

/// Larger than any number of a piece.
const MAX_SEQ: u64 = i64::MAX as u64;

/// Make a ticket for a process
///
/// A browser cannot send a key with a WebSocket, and should not have one. A ticket is good for half a minute, for one
/// connection to this process, and for pages of one origin.
#[utoipa::path(
    post, path = "/sessions/{id}/processes/{number}/tickets", operation_id = "process_ticket", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("number" = String, Path, description = "The process's number", example = "1"),
    ),
    request_body(content = TicketRequest, content_type = "application/json"),
    responses((status = 201, description = "It can be used", body = TicketView), Always, OfBody, OfOne, OfState)
)]
async fn ticket(
    State(control): State<Control>,
    caller: Caller,
    IdAndName(id, text): IdAndName,
    _: NoQuery,
    body: Body<TicketRequest>,
) -> Answer {
    let number = number(&text)?;
    let mut permit = caller.permit(&control, Action::ProcessGet).await?;
    if !body.value.read_only {
        permit = caller.permit(&control, Action::ProcessWrite).await?;
    }
    Ok(json(201, &control.create_ticket(&permit, &id, number, &body.value).await?))
}

/// Connect to a process
///
/// A WebSocket. Binary frames are output (a byte for the stream, eight for the number, then the bytes), text frames
/// everything else, as docs/sessions.md says. It ends with `exit`, or with an `error` that says why; a client that goes
/// away changes nothing, and comes back with `from_seq`.
#[utoipa::path(
    get, path = "/sessions/{id}/processes/{number}/ws", operation_id = "process_attach", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session's id", example = "ses-aaaaaaaaaaaaaaaa"),
        ("number" = String, Path, description = "The process's number", example = "1"),
        ("from_seq" = Option<u64>, Query, minimum = 0, maximum = 9_223_372_036_854_775_807u64,
         description = "The first number of output to send; all that is kept, unless given"),
        ("ticket" = Option<String>, Query, description = "In the place of a key"),
    ),
    responses(
        (status = 101, description = "From here on it is a WebSocket"),
        Always, OfOne, OfState, OfUpgrade,
    )
)]
async fn attach(State(control): State<Control>, ids: IdAndName, request: Request) -> Answer {
    let (mut parts, _) = request.into_parts();
    let IdAndName(id, text) = ids;
    let query = Query::from_request_parts(&mut parts, &control).await?;
    query.only(&["from_seq", "ticket"])?;
    let (principal, credential) = who(&mut parts, &control, &id, &text, query.get("ticket")).await?;
    let number = number(&text)?;
    let permit = control.permit(&principal, Action::ProcessGet, &principal.tenant, None).await?;
    let after = query.number("from_seq", MAX_SEQ)?.map_or(0, |seq| seq.saturating_sub(1));
    // What is not there is an answer of its own, and no connection.
    let process = control.wait_process(&permit, &id, number, Duration::ZERO).await?;
    if after > process.last_seq {
        let fix = format!("the next number of this process is {}", process.last_seq + 1);
        return Err(InvalidValue::new("from_seq", (after + 1).to_string(), fix).into());
    }
    let place = parts.extensions.get::<Place>().cloned();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &control).await.map_err(|error| {
        let fix = "open it as a WebSocket: GET with Upgrade: websocket, over HTTP/1.1";
        Problem::new(
            ErrorCode::Malformed,
            format!("this is no WebSocket handshake: {}", error.body_text()),
            fix,
        )
    })?;
    control.attach_process(&permit, &id, number, matches!(credential, Credential::Ticket(_))).await?;
    let attachment = Attachment { control, principal, permit, credential, session: id, number, after, place };
    Ok(upgrade
        .max_message_size(MAX_MESSAGE_BYTES)
        .max_frame_size(MAX_MESSAGE_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_UNSENT_BYTES)
        .on_upgrade(move |socket| attachment.converse(socket)))
}

/// Who comes: by a ticket, or as to any other request. A page has to be one that may.
async fn who(
    parts: &mut Parts,
    control: &Control,
    id: &str,
    text: &str,
    ticket: Option<&str>,
) -> Answer<(Principal, Credential)> {
    let Some(ticket) = ticket else {
        let Caller(principal) = Caller::from_request_parts(parts, control).await?;
        check_origin(&parts.headers, None)?;
        return Ok((principal, Credential::Secret(given_secret(&parts.headers))));
    };
    if given_secret(&parts.headers).is_some() {
        return Err(InvalidValue::new("ticket", "…", "give a key or a ticket").into());
    }
    let (principal, ticket) = control.take_ticket(id, number(text)?, ticket).await?;
    check_origin(&parts.headers, Some(ticket.origin.as_str()).filter(|origin| !origin.is_empty()))?;
    control.count_request(&principal)?;
    Ok((principal, Credential::Ticket(Box::new(ticket))))
}
