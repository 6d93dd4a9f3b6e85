//! Who comes to a connection, and its handshake.

use super::{Credential, MAX_MESSAGE_BYTES, MAX_UNSENT_BYTES};
use crate::answer::{Answer, Problem};
use crate::auth::{Caller, given_secret};
use crate::origin::check_origin;
use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::request::Parts;
use cofferdam_api::ErrorCode;
use cofferdam_control::{Control, TicketFor};
use cofferdam_core::InvalidValue;
use cofferdam_policy::Principal;

/// Who comes: by a ticket for what is wanted, or as to any other request. A page has to be one that may.
pub(crate) async fn who(
    parts: &mut Parts,
    control: &Control,
    session: &str,
    ticket: Option<&str>,
    wanted: impl FnOnce() -> Answer<TicketFor>,
) -> Answer<(Principal, Credential)> {
    let Some(ticket) = ticket else {
        let Caller(principal) = Caller::from_request_parts(parts, control).await?;
        check_origin(&parts.headers, None)?;
        return Ok((principal, Credential::Secret(given_secret(&parts.headers))));
    };
    if given_secret(&parts.headers).is_some() {
        return Err(InvalidValue::new("ticket", "…", "give a key or a ticket").into());
    }
    let (principal, ticket) = control.take_ticket(session, &wanted()?, ticket).await?;
    check_origin(&parts.headers, Some(ticket.origin.as_str()).filter(|origin| !origin.is_empty()))?;
    control.count_request(&principal)?;
    Ok((principal, Credential::Ticket(Box::new(ticket))))
}

/// The handshake, with the limits of every connection.
pub(crate) async fn upgrade(parts: &mut Parts, control: &Control) -> Answer<WebSocketUpgrade> {
    let upgrade = WebSocketUpgrade::from_request_parts(parts, control).await.map_err(|error| {
        let why = format!("this is no WebSocket handshake: {}", error.body_text());
        let fix = "open it as a WebSocket: GET with Upgrade: websocket, over HTTP/1.1";
        Problem::new(ErrorCode::Malformed, why, fix)
    })?;
    let upgrade = upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES);
    Ok(upgrade.write_buffer_size(0).max_write_buffer_size(MAX_UNSENT_BYTES))
}
