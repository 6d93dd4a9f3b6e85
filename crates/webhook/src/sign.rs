//! Who a message is from, and when it was sent.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The signature of a body sent at a time: HMAC-SHA256 over the seconds, a dot, and the bytes.
pub fn sign(secret: &[u8], timestamp_seconds: i64, body: &[u8]) -> String {
    // A key may have any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
    mac.update(timestamp_seconds.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v1={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `printf '1700000000.{}' | openssl dgst -sha256 -hmac secret`.
    #[test]
    fn the_signature_is_as_others_compute_it() {
        let known = "v1=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163";
        assert_eq!(sign(b"secret", 1_700_000_000, b"{}"), known);
        assert_ne!(sign(b"secret", 1_700_000_001, b"{}"), known);
        assert_ne!(sign(b"Secret", 1_700_000_000, b"{}"), known);
        assert_ne!(sign(b"secret", 1_700_000_000, b"{ }"), known);
    }
}
