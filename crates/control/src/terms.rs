//! Under which terms a job was let in: what its receipt says of that moment and the request does not. Rules and
//! defaults change, so they are kept with the job.

use cofferdam_core::Limits;
use cofferdam_proof::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a job runs on that names no image: this machine's own /usr.
const HOST: &str = "host";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Terms {
    pub(crate) policy_sha256: Option<Digest>,
    /// As it was asked for, or as a profile was settled: with its digest after an `@`, where that was known.
    pub(crate) image: String,
    pub(crate) limits: Value,
    /// The artifacts that it was given, by their ids: they may be gone before the job is.
    pub(crate) inputs: BTreeMap<String, Input>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Input {
    pub(crate) sha256: Option<Digest>,
    pub(crate) size_bytes: u64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { policy_sha256: None, image: HOST.to_owned(), limits: Value::Null, inputs: BTreeMap::new() }
    }
}

impl Terms {
    pub(crate) fn new(policy_version: &str, limits: &Limits, inputs: BTreeMap<String, Input>) -> Self {
        Self {
            policy_sha256: Digest::parse(policy_version).ok(),
            image: HOST.to_owned(),
            limits: serde_json::to_value(limits).unwrap_or_default(),
            inputs,
        }
    }

    /// On another image than the machine's own programs.
    pub(crate) fn on(mut self, image: Option<&str>) -> Self {
        if let Some(image) = image {
            image.clone_into(&mut self.image);
        }
        self
    }

    /// The name of the image, and its digest, where it was pinned by one.
    pub(crate) fn image(&self) -> (&str, Option<Digest>) {
        match self.image.split_once("@sha256:") {
            Some((name, digest)) => (name, Digest::parse(digest).ok()),
            None => (&self.image, None),
        }
    }

    /// Those of something that runs where there is a sandbox already.
    pub(crate) fn of_rules(policy_version: &str) -> Self {
        Self { policy_sha256: Digest::parse(policy_version).ok(), ..Self::default() }
    }

    pub(crate) fn write(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// Those of a job that is older than terms are unknown, and say so.
    pub(crate) fn read(text: Option<&str>) -> Option<Self> {
        text.map_or_else(|| Some(Self::default()), |text| serde_json::from_str(text).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_come_back_and_missing_ones_are_unknown() {
        let input = Input { sha256: Some(cofferdam_proof::sha256(b"x")), size_bytes: 1 };
        let inputs = BTreeMap::from([("art-a".to_owned(), input)]);
        let terms = Terms::new(cofferdam_proof::sha256(b"rules").as_str(), &Limits::default(), inputs);
        assert_eq!(Terms::read(terms.write().as_deref()), Some(terms.clone()));
        assert_eq!(terms.limits["memory_bytes"], 2_u64 << 30);
        assert_eq!(Terms::read(None), Some(Terms::default()));
        assert_eq!(Terms::read(Some("[")), None);
        let digest = cofferdam_proof::sha256(b"image");
        let pinned = terms.clone().on(Some(&format!("app:1@sha256:{}", digest.as_str())));
        assert_eq!(pinned.image(), ("app:1", Some(digest)));
        assert_eq!(
            (terms.image(), terms.clone().on(Some("app:1")).image()),
            (("host", None), ("app:1", None))
        );
    }
}
