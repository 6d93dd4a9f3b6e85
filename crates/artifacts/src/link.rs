//! Signed links: an address that allows one thing with one artifact until a time, to whoever has it.
//!
//! The signature is HMAC-SHA-256 over method, artifact, time, size and who made the link, each with its length. There
//! is one way to write a link, and anything else is refused before the signature is looked at.

use crate::keys::{MasterKey, decode_hex};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt::{self, Write};
use thiserror::Error;
use zeroize::Zeroizing;

/// What a link allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub method: String,
    pub artifact: String,
    /// In seconds since 1970.
    pub expires_at: u64,
    /// Of the artifact, in bytes.
    pub size: u64,
    /// Who made it: a link is worth no more than its maker's key.
    pub by: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LinkRefused {
    /// It was not made here, or not for this.
    #[error("the link was not made for this request")]
    Wrong,
    #[error("the time of the link is over")]
    Expired,
}

/// Longer than any link that is made here.
const MAX_QUERY: usize = 1024;

#[derive(Clone)]
pub struct LinkSigner {
    key: Zeroizing<[u8; 32]>,
}

impl fmt::Debug for LinkSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkSigner")
    }
}

impl LinkSigner {
    pub fn new(master: &MasterKey) -> Self {
        Self { key: Zeroizing::new(*master.signing()) }
    }

    /// What stands behind the question mark of the link.
    pub fn sign(&self, link: &Link) -> String {
        let signature = self.mac(link).finalize().into_bytes();
        let signature: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}&signature={signature}", fields(link))
    }

    /// Reads a link that came with a request for `method` on `artifact`.
    pub fn verify(&self, method: &str, artifact: &str, query: &str, now: u64) -> Result<Link, LinkRefused> {
        let (link, signature) = parse(method, artifact, query).ok_or(LinkRefused::Wrong)?;
        // In constant time; only then is anything else of it believed.
        self.mac(&link).verify_slice(&signature).map_err(|_| LinkRefused::Wrong)?;
        if now < link.expires_at { Ok(link) } else { Err(LinkRefused::Expired) }
    }

    fn mac(&self, link: &Link) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.key).expect("any length will do");
        let Link { method, artifact, expires_at, size, by } = link;
        for part in ["link 1", method, artifact, &expires_at.to_string(), &size.to_string(), by] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

fn fields(link: &Link) -> String {
    let mut by = String::with_capacity(link.by.len());
    for byte in link.by.bytes() {
        match byte {
            b'-' | b'_' | b'.' | b'~' => by.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => by.push(byte.into()),
            // Writing to a text does not fail.
            _ => drop(write!(by, "%{byte:02X}")),
        }
    }
    format!("expires={}&size={}&by={by}", link.expires_at, link.size)
}

fn parse(method: &str, artifact: &str, query: &str) -> Option<(Link, Vec<u8>)> {
    let query = Some(query).filter(|query| query.len() <= MAX_QUERY)?;
    let (said, signature) = query.split_once("&signature=")?;
    let rest = said.strip_prefix("expires=")?;
    let (expires_at, rest) = rest.split_once("&size=")?;
    let (size, by) = rest.split_once("&by=")?;
    let link = Link {
        method: method.to_owned(),
        artifact: artifact.to_owned(),
        expires_at: expires_at.parse().ok()?,
        size: size.parse().ok()?,
        by: decode_percent(by)?,
    };
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_one = fields(&link) == said && signature.len() == 64 && signature.bytes().all(is_hex);
    is_one.then(|| decode_hex(signature).map(|signature| (link, signature)))?
}

fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        bytes.extend(decode_hex(part.get(..2)?)?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signer() -> LinkSigner {
        LinkSigner::new(&MasterKey::from_bytes(&[7; 32]))
    }

    fn link() -> Link {
        let (method, artifact) = ("GET".to_owned(), "art-aaaaaaaaaaaaaaaa".to_owned());
        Link { method, artifact, expires_at: 1000, size: 42, by: "key-a b/ü".to_owned() }
    }

    #[test]
    fn a_link_is_good_for_what_it_was_made_until_its_time() {
        let (signer, link) = (signer(), link());
        let query = signer.sign(&link);
        assert_eq!(signer.verify("GET", &link.artifact, &query, 999), Ok(link.clone()));
        assert_eq!(signer.verify("GET", &link.artifact, &query, 1000), Err(LinkRefused::Expired));
        for method in ["HEAD", "PUT", "get"] {
            assert_eq!(signer.verify(method, &link.artifact, &query, 999), Err(LinkRefused::Wrong));
        }
        assert_eq!(signer.verify("GET", "art-baaaaaaaaaaaaaaa", &query, 999), Err(LinkRefused::Wrong));
        let other = LinkSigner::new(&MasterKey::from_bytes(&[8; 32]));
        assert_eq!(other.verify("GET", &link.artifact, &query, 999), Err(LinkRefused::Wrong));
    }

    /// Also where the change would mean the same: there is one way to write a link.
    #[test]
    fn a_field_that_is_changed_moved_or_doubled_is_refused() {
        let (signer, link) = (signer(), link());
        let query = signer.sign(&link);
        let (said, signature) = query.split_once("&signature=").unwrap();
        for changed in [
            query.replace("expires=1000", "expires=9999"),
            query.replace("expires=1000", "expires=01000"),
            query.replace("expires=1000", "expires=%31000"),
            query.replace("expires=1000", "expires=+1000"),
            query.replace("size=42", "size=43"),
            query.replace("key-a", "key-b"),
            query.replace("%20", "+"),
            query.replace("%C3", "%c3"),
            query.replace("&size", "&&size"),
            query.replace("expires=", "Expires="),
            format!("{query}&size=43"),
            format!("size=43&{query}"),
            format!("{query}&signature={signature}"),
            format!("{said}&size=42&signature={signature}"),
            format!("signature={signature}&{said}"),
            format!("size=42&expires=1000&by=key-a&signature={signature}"),
            format!("{said}&signature={}", signature.to_uppercase()),
            format!("{said}&signature={}", &signature[..62]),
            format!("{said}&signature={signature}00"),
            format!("{said}&signature={}", "0".repeat(64)),
            said.to_owned(),
            String::new(),
        ] {
            assert_ne!(changed, query);
            assert_eq!(
                signer.verify("GET", &link.artifact, &changed, 1),
                Err(LinkRefused::Wrong),
                "{changed}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_link_comes_back(expires_at in 1u64.., size: u64, by in ".{0,60}") {
            let link = Link { expires_at, size, by, ..link() };
            let query = signer().sign(&link);
            prop_assert_eq!(signer().verify("GET", &link.artifact, &query, 0), Ok(link));
        }

        #[test]
        fn no_other_text_is_a_link(at: prop::sample::Index, byte in 33u8..127) {
            let query = signer().sign(&link());
            let mut changed = query.clone().into_bytes();
            let at = at.index(changed.len());
            changed[at] = byte;
            let changed = String::from_utf8(changed).unwrap();
            prop_assume!(changed != query);
            prop_assert!(signer().verify("GET", &link().artifact, &changed, 0).is_err());
        }
    }
}
