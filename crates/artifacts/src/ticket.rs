//! Signed tickets: words that allow one connection to one thing of a session (a process, the changes of a folder) for a
//! short while, to whoever has them. They are for a browser, which cannot send a key with a WebSocket, and should not
//! have one.
//!
//! The signature is HMAC-SHA-256 over every field, each with its length. There is one way to write a ticket, and
//! anything else is refused before the signature is looked at.

use crate::keys::{MasterKey, decode_hex};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use thiserror::Error;
use zeroize::Zeroizing;

/// What a ticket allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// In seconds since 1970.
    pub expires_at: u64,
    /// What of the session it is for.
    pub subject: String,
    /// Whether it also allows to write, and not only to look.
    pub can_write: bool,
    /// Tells it from every other.
    pub nonce: String,
    pub session: String,
    pub tenant: String,
    /// Who made it: a ticket is worth no more than its maker's key.
    pub by: String,
    pub agent: String,
    /// The pages that may use it; empty for those of the server itself.
    pub origin: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TicketRefused {
    #[error("the ticket was not made here, or not for this connection")]
    Wrong,
    #[error("the time of the ticket is over")]
    Expired,
}

/// Longer than any ticket that is made here.
const MAX_BYTES: usize = 4096;

#[derive(Clone)]
pub struct TicketSigner {
    key: Zeroizing<[u8; 32]>,
}

impl fmt::Debug for TicketSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketSigner")
    }
}

impl TicketSigner {
    pub fn new(master: &MasterKey) -> Self {
        Self { key: Zeroizing::new(*master.signing()) }
    }

    pub fn sign(&self, ticket: &Ticket) -> String {
        let fields = fields(ticket);
        let signature = hex(&self.mac(&fields).finalize().into_bytes());
        format!("{}.{signature}", fields.join("."))
    }

    /// Reads a ticket that came with a request for one thing of one session.
    pub fn verify(
        &self,
        session: &str,
        subject: &str,
        text: &str,
        now: u64,
    ) -> Result<Ticket, TicketRefused> {
        let (ticket, signature) = parse(text).ok_or(TicketRefused::Wrong)?;
        // In constant time; only then is anything else of it believed.
        self.mac(&fields(&ticket)).verify_slice(&signature).map_err(|_| TicketRefused::Wrong)?;
        if ticket.session != session || ticket.subject != subject {
            return Err(TicketRefused::Wrong);
        }
        if now < ticket.expires_at { Ok(ticket) } else { Err(TicketRefused::Expired) }
    }

    fn mac(&self, fields: &[String; 9]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.key).expect("any length will do");
        // What is signed as a link is no ticket: the first word differs.
        for part in std::iter::once("ticket 2").chain(fields.iter().map(String::as_str)) {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// In letters that need no escape in an address.
fn fields(ticket: &Ticket) -> [String; 9] {
    let Ticket { expires_at, subject, can_write, nonce, session, tenant, by, agent, origin } = ticket;
    let word = |text: &String| hex(text.as_bytes());
    [
        expires_at.to_string(),
        word(subject),
        u8::from(*can_write).to_string(),
        word(nonce),
        word(session),
        word(tenant),
        word(by),
        word(agent),
        word(origin),
    ]
}

fn parse(text: &str) -> Option<(Ticket, Vec<u8>)> {
    let text = Some(text).filter(|text| text.len() <= MAX_BYTES)?;
    let (said, signature) = text.rsplit_once('.')?;
    let parts: Vec<&str> = said.split('.').collect();
    let [expires_at, subject, can_write, nonce, session, tenant, by, agent, origin] = parts[..] else {
        return None;
    };
    let word = |text: &str| String::from_utf8(decode_hex(text)?).ok();
    let ticket = Ticket {
        expires_at: expires_at.parse().ok()?,
        subject: word(subject)?,
        can_write: can_write == "1",
        nonce: word(nonce)?,
        session: word(session)?,
        tenant: word(tenant)?,
        by: word(by)?,
        agent: word(agent)?,
        origin: word(origin)?,
    };
    let signature = decode_hex(signature).filter(|bytes| bytes.len() == 32)?;
    let is_one = format!("{said}.{}", hex(&signature)) == text && fields(&ticket).join(".") == said;
    is_one.then_some((ticket, signature))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Link, LinkSigner};
    use proptest::prelude::*;

    fn signer() -> TicketSigner {
        TicketSigner::new(&MasterKey::from_bytes(&[7; 32]))
    }

    fn ticket() -> Ticket {
        Ticket {
            expires_at: 1000,
            subject: "process 3".to_owned(),
            can_write: true,
            nonce: "n".to_owned(),
            session: "ses-aaaaaaaaaaaaaaaa".to_owned(),
            tenant: "ten".to_owned(),
            by: "key-a b/ü".to_owned(),
            agent: String::new(),
            origin: "https://app.example".to_owned(),
        }
    }

    #[test]
    fn a_ticket_is_good_for_its_subject_until_its_time() {
        let (signer, ticket) = (signer(), ticket());
        let text = signer.sign(&ticket);
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.'), "{text}");
        assert_eq!(signer.verify(&ticket.session, "process 3", &text, 999), Ok(ticket.clone()));
        assert_eq!(signer.verify(&ticket.session, "process 3", &text, 1000), Err(TicketRefused::Expired));
        assert_eq!(signer.verify(&ticket.session, "process 4", &text, 999), Err(TicketRefused::Wrong));
        assert_eq!(signer.verify("ses-baaaaaaaaaaaaaaa", "process 3", &text, 999), Err(TicketRefused::Wrong));
        let other = TicketSigner::new(&MasterKey::from_bytes(&[8; 32]));
        assert_eq!(other.verify(&ticket.session, "process 3", &text, 999), Err(TicketRefused::Wrong));
    }

    #[test]
    fn a_signed_link_is_no_ticket() {
        let link = Link {
            method: "GET".to_owned(),
            artifact: "ses-aaaaaaaaaaaaaaaa".to_owned(),
            expires_at: 1000,
            size: 3,
            by: "key-a".to_owned(),
        };
        let text = LinkSigner::new(&MasterKey::from_bytes(&[7; 32])).sign(&link);
        assert_eq!(signer().verify("ses-aaaaaaaaaaaaaaaa", "process 3", &text, 1), Err(TicketRefused::Wrong));
    }

    proptest! {
        /// Also where the change would mean the same: there is one way to write a ticket.
        #[test]
        fn no_changed_ticket_is_taken(at in 0usize..400, byte in 0x20u8..0x7f) {
            let (signer, ticket) = (signer(), ticket());
            let mut text = signer.sign(&ticket).into_bytes();
            let at = at % text.len();
            prop_assume!(text[at] != byte);
            text[at] = byte;
            let text = String::from_utf8(text).unwrap();
            prop_assert_eq!(signer.verify(&ticket.session, "process 3", &text, 1), Err(TicketRefused::Wrong));
        }

        #[test]
        fn anything_else_is_refused(text in ".{0,200}") {
            prop_assert_eq!(signer().verify("ses-a", "process 1", &text, 0), Err(TicketRefused::Wrong));
        }
    }
}
