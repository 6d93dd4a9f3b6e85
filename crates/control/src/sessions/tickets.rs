//! Tickets: how a page in a browser gets to a process, or to the changes of a folder, without a key. One is signed, good
//! for one connection to one of them, for a short while, and for pages of one origin.

use super::file_link::encoded;
use super::files::parse;
use super::processes::known_process;
use crate::{Control, ControlError, Result, ids, now_ms, timestamp};
use cofferdam_api::{TicketRequest, TicketView, WatchTicketRequest};
use cofferdam_artifacts::Ticket;
use cofferdam_core::{GuestPath, InvalidValue};
use cofferdam_policy::{Denial, Permit, Principal};
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Long enough to open a page with it.
const LIFE_SECONDS: i64 = 30;

/// Used tickets that are remembered; they are forgotten with their time. More than ten thousand a second are refused.
const MAX_USED: usize = 300_000;

const MAX_ORIGIN_BYTES: usize = 300;

/// Keys are noted so as actors; whatever else one may be has nothing that could be taken back here.
const KEY: &str = "key-";

/// Those that were used here, until when each would have been good.
#[derive(Debug, Default)]
pub(crate) struct UsedTickets(Mutex<HashMap<String, u64>>);

impl UsedTickets {
    /// Whether this is the first use.
    fn take(&self, ticket: &Ticket, now: u64) -> bool {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= MAX_USED {
            used.retain(|_, until| *until > now);
        }
        used.len() < MAX_USED && used.insert(ticket.nonce.clone(), ticket.expires_at).is_none()
    }
}

/// What a connection is made to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TicketFor {
    Process(u64),
    /// What changes in a folder.
    Watch(GuestPath),
}

impl TicketFor {
    /// In the words that are signed. A path can be longer than a ticket.
    fn subject(&self) -> String {
        match self {
            Self::Process(number) => format!("process {number}"),
            Self::Watch(path) => format!("watch {}", crate::hash(path.as_str().as_bytes())),
        }
    }
}

impl Control {
    /// Makes a ticket for a process. Whoever may make one could do what it allows.
    pub async fn create_ticket(
        &self,
        permit: &Permit,
        session: &str,
        number: u64,
        request: &TicketRequest,
    ) -> Result<TicketView> {
        let origin = request.origin.as_deref().map(check_origin).transpose()?.unwrap_or_default();
        let (worker, at) = self.placed(permit, session).await?;
        known_process(&*worker, &at, number).await?;
        let ticket = new_ticket(permit, session, &TicketFor::Process(number), !request.read_only, origin)?;
        let details = json!({"process": number, "read_only": request.read_only, "origin": ticket.origin});
        self.use_session(permit, session, "process.ticket_made", details).await?;
        self.ticket_view(&ticket, &format!("processes/{number}/ws?"))
    }

    /// Makes a ticket for what changes in a folder.
    pub async fn create_watch_ticket(
        &self,
        permit: &Permit,
        session: &str,
        request: &WatchTicketRequest,
    ) -> Result<TicketView> {
        let origin = request.origin.as_deref().map(check_origin).transpose()?.unwrap_or_default();
        let path = parse("path", request.path.as_deref().unwrap_or("/workspace"))?;
        let subject = TicketFor::Watch(path.clone());
        let ticket = new_ticket(permit, session, &subject, false, origin)?;
        let details = json!({"path": path.as_str(), "origin": ticket.origin});
        self.use_session(permit, session, "file.ticket_made", details).await?;
        self.ticket_view(&ticket, &format!("files/watch/ws?path={}&", encoded(path.as_str())))
    }

    fn ticket_view(&self, ticket: &Ticket, place: &str) -> Result<TicketView> {
        let text = self.artifacts()?.tickets.sign(ticket);
        let url = format!("/v1/sessions/{}/{place}ticket={text}", ticket.session);
        let expires_at = timestamp(i64::try_from(ticket.expires_at).unwrap_or(0) * 1000);
        Ok(TicketView { ticket: text, url, expires_at })
    }

    /// Who comes with a ticket: its maker, with no right but the one that it is for. It is used up by this.
    pub async fn take_ticket(
        &self,
        session: &str,
        wanted: &TicketFor,
        text: &str,
    ) -> Result<(Principal, Ticket)> {
        let now = (now_ms() / 1000).max(0) as u64;
        let ticket = self.artifacts()?.tickets.verify(session, &wanted.subject(), text, now);
        let ticket = ticket.map_err(|error| refused(&error.to_string()))?;
        if !self.parts.used_tickets.take(&ticket, now) {
            return Err(refused("the ticket was used before"));
        }
        if !self.is_ticket_valid(&ticket).await? {
            return Err(refused("the key that made the ticket was taken back"));
        }
        let mut scopes = vec!["sessions:read".to_owned()];
        if ticket.can_write {
            scopes.push("sessions:write".to_owned());
        }
        let agent = Some(ticket.agent.clone()).filter(|agent| !agent.is_empty());
        let actor = format!("{} by ticket", ticket.by);
        Ok((Principal { tenant: ticket.tenant.clone(), actor, agent, scopes }, ticket))
    }

    /// Whether the key that made it is still valid.
    pub async fn is_ticket_valid(&self, ticket: &Ticket) -> Result<bool> {
        match ticket.by.starts_with(KEY) {
            true => Ok(self.parts.store.is_key_valid(&ticket.tenant, &ticket.by, now_ms()).await?),
            false => Ok(true),
        }
    }
}

fn new_ticket(
    permit: &Permit,
    session: &str,
    subject: &TicketFor,
    can_write: bool,
    origin: String,
) -> Result<Ticket> {
    let nonce: [u8; 16] = ids::random()?;
    let expires_at = now_ms() / 1000 + LIFE_SECONDS;
    Ok(Ticket {
        expires_at: expires_at.max(0) as u64,
        subject: subject.subject(),
        can_write,
        nonce: nonce.iter().map(|byte| format!("{byte:02x}")).collect(),
        session: session.to_owned(),
        tenant: permit.tenant().to_owned(),
        by: permit.actor().to_owned(),
        agent: permit.principal().agent.clone().unwrap_or_default(),
        origin,
    })
}

fn refused(why: &str) -> ControlError {
    let change = "ask for a new ticket, and use it once, at once, for what it was made for";
    ControlError::Denied(Denial { rule: "ticket".to_owned(), why: why.to_owned(), change: change.to_owned() })
}

/// Scheme, host and, where it is not the usual one, port: as a browser says it.
fn check_origin(text: &str) -> Result<String> {
    let wrong = || {
        let shown: String = text.chars().take(MAX_ORIGIN_BYTES).collect();
        InvalidValue::new(
            "origin",
            shown,
            "write it as a browser does: https://app.example or http://localhost:3000",
        )
    };
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let is_host = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._[]:".contains(&byte);
    let is_fine = ["http", "https"].contains(&scheme)
        && text.len() <= MAX_ORIGIN_BYTES
        && !host.is_empty()
        && host.bytes().all(is_host)
        && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|number| number.to_string() == port));
    if is_fine { Ok(text.to_owned()) } else { Err(wrong().into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_those_that_a_browser_says() {
        for good in ["https://app.example", "http://localhost:3000", "http://127.0.0.1:1", "http://[::1]:80"]
        {
            assert_eq!(check_origin(good).unwrap(), good);
        }
        let long = format!("https://{}", "a".repeat(300));
        for bad in [
            "",
            "*",
            "null",
            "app.example",
            "https://",
            "https://App.example",
            "https://a/",
            "https://a/b",
            "https://u@a",
            "ftp://a",
            "https://a:0x1",
            "https://a:",
            "https://a:99999",
            "https://a b",
            "file://",
            &long,
        ] {
            assert!(check_origin(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_ticket_is_used_once() {
        let ticket = |nonce: &str| Ticket {
            expires_at: 10,
            subject: "process 1".to_owned(),
            can_write: true,
            nonce: nonce.to_owned(),
            session: String::new(),
            tenant: String::new(),
            by: String::new(),
            agent: String::new(),
            origin: String::new(),
        };
        let used = UsedTickets::default();
        assert!(used.take(&ticket("a"), 1));
        assert!(!used.take(&ticket("a"), 1));
        assert!(used.take(&ticket("b"), 1));
    }
}
