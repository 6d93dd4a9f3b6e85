//! Signed documents and the keys that they are checked with, on the wire. What they mean, and how they are checked, is
//! in crates/proof; here is how they look.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A DSSE envelope: content, its type, and signatures over both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignedDocument {
    #[schema(example = "application/vnd.in-toto+json")]
    pub payload_type: String,
    /// JSON, in base64.
    #[schema(format = Byte)]
    pub payload: String,
    pub signatures: Vec<DocumentSignature>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentSignature {
    #[schema(example = "sgn-0123456789abcdef0123456789abcdef")]
    pub keyid: String,
    /// Ed25519, in base64.
    #[schema(format = Byte)]
    pub sig: String,
}

/// A public key, and for which time it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SigningKey {
    #[schema(example = "sgn-0123456789abcdef0123456789abcdef")]
    pub keyid: String,
    #[schema(example = "ed25519")]
    pub algorithm: String,
    /// 32 bytes, in base64.
    #[schema(format = Byte)]
    pub public_key: String,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// From here on it signs nothing new; what it has signed stands.
    #[schema(format = DateTime)]
    pub retired_at: Option<String>,
    /// Since it became known that others may have it, nothing that it has signed stands.
    #[schema(format = DateTime)]
    pub leaked_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SigningKeyList {
    pub keys: Vec<SigningKey>,
}
