//! Envelopes as DSSE has them: content, its type, and signatures over both.
//!
//! What is signed is the type and the bytes with their lengths, so that neither can be taken for a part of the
//! other, and a document of one kind cannot be shown as one of another.

use crate::key::{KeyId, SigningKey};
use crate::verdict::malformed;
use crate::{KeyList, Proof, ProofError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// No document is larger; the largest part is a list of files.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 20;

/// We sign with one key. Others may add theirs.
const MAX_SIGNATURES: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    #[serde(rename = "payloadType")]
    payload_type: String,
    payload: String,
    signatures: Vec<Signature>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signature {
    keyid: KeyId,
    sig: String,
}

/// The bytes that are signed: DSSE's pre-authentication encoding.
pub fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

impl Envelope {
    pub fn seal(key: &SigningKey, payload_type: &str, payload: &[u8]) -> Self {
        let sig = key.sign(&pre_authentication(payload_type, payload));
        Self {
            payload_type: payload_type.to_owned(),
            payload: STANDARD.encode(payload),
            signatures: vec![Signature { keyid: key.id(), sig }],
        }
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, ProofError> {
        if bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(malformed(format!("{} bytes are too many", bytes.len())));
        }
        let envelope: Self = serde_json::from_slice(bytes).map_err(malformed)?;
        match envelope.signatures.len() {
            1..=MAX_SIGNATURES => Ok(envelope),
            0 => Err(malformed("it has no signature")),
            many => Err(malformed(format!("{many} signatures are too many"))),
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn payload_type(&self) -> &str {
        &self.payload_type
    }

    /// The content of an envelope of that type, and whose it is. Where keys are given, one of them must have signed
    /// it under its own name; what that key may still speak for is the caller's to ask, who knows the time.
    pub(crate) fn open(
        &self,
        expected: &'static str,
        keys: Option<&KeyList>,
    ) -> Result<(Vec<u8>, Proof), ProofError> {
        if self.payload_type != expected {
            let found: String = self.payload_type.chars().take(100).collect();
            return Err(ProofError::WrongType { found, expected });
        }
        let payload = STANDARD.decode(&self.payload).map_err(|_| malformed("the payload is not base64"))?;
        let Some(keys) = keys else { return Ok((payload, Proof::Unchecked)) };
        let message = pre_authentication(&self.payload_type, &payload);
        let mut forged = None;
        for Signature { keyid, sig } in &self.signatures {
            // Only the key of that name is tried: a good signature under another's name is not one.
            let Some((_, key)) = keys.find(keyid) else { continue };
            if key.has_signed(&message, sig) {
                return Ok((payload, Proof::Signed { keyid: keyid.clone() }));
            }
            forged = Some(keyid.clone());
        }
        Err(match forged {
            Some(keyid) => ProofError::Forged { keyid },
            None => {
                let names = self.signatures.iter().map(|signature| signature.keyid.to_string());
                let keyids = names.collect::<Vec<_>>().join(", ").chars().take(200).collect();
                ProofError::UnknownKey { keyids }
            }
        })
    }
}
