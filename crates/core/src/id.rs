//! Ids: a prefix and lower-case base32, fit for a host name.

use crate::InvalidValue;
use serde::Serialize;
use std::fmt;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Ten random bytes make sixteen letters: short enough to type, too many to guess.
pub fn encode_id(prefix: &str, random: [u8; 10]) -> String {
    let bits = random.iter().fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
    let letters = (0..16).rev().map(|i| ALPHABET[(bits >> (i * 5)) as usize & 31] as char);
    format!("{prefix}-{}", letters.collect::<String>())
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Makes an id of bytes that the caller drew at random; this crate draws none itself.
            pub fn from_random(random: [u8; 10]) -> Self {
                Self(encode_id($prefix, random))
            }

            /// Takes an id that somebody else has written.
            pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
                let letters = text.strip_prefix($prefix).and_then(|rest| rest.strip_prefix('-'));
                let is_id = letters
                    .is_some_and(|letters| letters.len() == 16 && letters.bytes().all(|b| ALPHABET.contains(&b)));
                if is_id {
                    return Ok(Self(text.to_owned()));
                }
                let fix = concat!("it must be ", $prefix, "- and 16 of the characters a to z and 2 to 7");
                Err(InvalidValue::new(field, text, fix))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id_type!(
    /// One-shot work.
    JobId,
    "job"
);
id_type!(
    /// A sandbox that stays.
    SessionId,
    "ses"
);
id_type!(
    /// One unit of work in a session.
    StepId,
    "stp"
);
id_type!(
    /// An enclosure on one worker.
    SandboxId,
    "sbx"
);

id_type!(
    /// An API key, by which it is named; the secret is another thing.
    KeyId,
    "key"
);
id_type!(
    /// Who owns.
    TenantId,
    "ten"
);

id_type!(
    /// Bytes that outlive a sandbox.
    ArtifactId,
    "art"
);

/// The caller's own id for what a job serves. It is shown in logs and environments, so it is plain text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct TaskId(String);

/// Longer than any id scheme in use, short enough for every log line and label.
const MAX_TASK_ID_BYTES: usize = 128;

impl TaskId {
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidValue> {
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || text.len() > MAX_TASK_ID_BYTES || !plain {
            let fix = "it must be 1 to 128 visible ASCII characters, without spaces";
            return Err(InvalidValue::new(field, text, fix));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A job that serves no task of the caller's is a task of its own.
impl From<&JobId> for TaskId {
    fn from(id: &JobId) -> Self {
        Self(id.0.clone())
    }
}

/// A session that serves no task of the caller's is a task of its own.
impl From<&SessionId> for TaskId {
    fn from(id: &SessionId) -> Self {
        Self(id.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_fit_for_a_host_name() {
        let id = JobId::from_random([0xff, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(id.as_str().len(), 4 + 16);
        assert!(id.as_str().starts_with("job-"));
        assert!(id.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
        assert_ne!(id, JobId::from_random([0; 10]));
    }

    #[test]
    fn ids_come_back_and_nothing_else_does() {
        let id = JobId::from_random([9; 10]);
        assert_eq!(JobId::parse("id", id.as_str()), Ok(id));
        for text in
            ["", "job", "job-", "job-aaaaaaaaaaaaaaa1", "sbx-aaaaaaaaaaaaaaaa", "job-aaaaaaaaaaaaaaaaa"]
        {
            assert!(JobId::parse("id", text).is_err(), "{text}");
        }
    }

    #[test]
    fn task_ids_are_plain_text() {
        assert_eq!(TaskId::parse("task-id", "TASK/7:a").unwrap().as_str(), "TASK/7:a");
        for text in ["", "a b", "a\nb", "é", &"x".repeat(129)] {
            assert!(TaskId::parse("task-id", text).is_err(), "{text:?}");
        }
    }
}
