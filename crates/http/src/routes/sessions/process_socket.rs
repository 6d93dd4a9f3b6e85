//! A process over a WebSocket, and the tickets by which a page in a browser opens one.

use super::processes::number;
use crate::answer::{Answer, json};
use crate::auth::Caller;
use crate::body::Body;
use crate::document::refusals::{Always, OfBody, OfOne, OfState, OfUpgrade};
use crate::listen::Place;
use crate::path::IdAndName;
use crate::query::{NoQuery, Query};
use crate::sockets::{Attachment, Credential, upgrade, who};
use axum::extract::{FromRequestParts, Request, State};
use cofferdam_api::{TicketRequest, TicketView};
use cofferdam_control::{Control, TicketFor};
use cofferdam_core::InvalidValue;
use cofferdam_policy::Action;
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(attach)).routes(routes!(ticket))
}

/// Larger than any number of a piece or of a change.
pub(super) const MAX_SEQ: u64 = i64::MAX as u64;

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
    let wanted = || Ok(TicketFor::Process(number(&text)?));
    let (principal, credential) = who(&mut parts, &control, &id, query.get("ticket"), wanted).await?;
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
    let upgrade = upgrade(&mut parts, &control).await?;
    control.attach_process(&permit, &id, number, matches!(credential, Credential::Ticket(_))).await?;
    let attachment = Attachment { control, principal, permit, credential, session: id, number, after, place };
    Ok(upgrade.on_upgrade(move |socket| attachment.converse(socket)))
}
