//! The receipt of a job, or of a step of a session: a statement, as in-toto has them, of what was run, under which terms, and what came of it.

use crate::verdict::malformed;
use crate::{Digest, Envelope, KeyList, Proof, ProofError, SigningKey};
use cofferdam_core::parse_timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const PAYLOAD: &str = "application/vnd.in-toto+json";
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
pub const PREDICATE_TYPE: &str = "urn:cofferdam:job-receipt:1";
pub const STEP_PREDICATE_TYPE: &str = "urn:cofferdam:step-receipt:1";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    #[serde(rename = "_type")]
    statement_type: String,
    /// What the statement can be found by: the work, and everything that it left.
    subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: Receipt,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    pub name: String,
    pub digest: DigestSet,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DigestSet {
    pub sha256: Digest,
}

/// What is said of a job. Of secrets there is nothing in it: of the environment only the names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// For a step, that of its session, which its program knows as that of its job.
    pub job_id: String,
    /// Only for a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepOf>,
    pub tenant: String,
    pub task_id: String,
    pub agent: Option<String>,
    pub work: Work,
    pub inputs: Inputs,
    pub image: Image,
    pub policy: PolicyUsed,
    pub network_policy: Option<Value>,
    /// As they were in force; null for a job of a server that did not keep them.
    pub limits: Value,
    pub outputs: Outputs,
    pub artifacts: Vec<ArtifactOut>,
    pub isolation: Value,
    pub state: String,
    pub outcome: Value,
    pub limits_hit: Value,
    pub resource_usage: Value,
    pub duration_ms: Option<u64>,
    pub worker: Option<String>,
    pub sandbox_id: Option<String>,
    pub created_at: String,
    /// Null for a job that never ran.
    pub started_at: Option<String>,
    pub finished_at: String,
}

/// Which step of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepOf {
    pub id: String,
    pub number: i64,
    /// The queue that it was in: a language, or `command`, and a name.
    pub context: String,
}

/// What was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    pub form: Form,
    pub language: Option<String>,
    /// Of the code, of the line for the shell, or of the words of the command, each ended by a NUL.
    pub sha256: Digest,
    /// Of the arguments, each ended by a NUL.
    pub args_sha256: Digest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    Code,
    Shell,
    Argv,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    pub stdin: Option<Blob>,
    pub files: Vec<FileIn>,
    pub env_names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blob {
    pub sha256: Digest,
    pub size_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileIn {
    pub path: String,
    pub sha256: Digest,
    pub size_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    pub name: String,
    /// Null for `host`, which is the machine's own /usr.
    pub sha256: Option<Digest>,
}

/// By which rules it was let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyUsed {
    /// Of the rules' text; null for a job of a server that did not keep it.
    pub sha256: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outputs {
    pub stdout: Option<StreamOut>,
    pub stderr: Option<StreamOut>,
}

/// What was kept of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamOut {
    pub sha256: Digest,
    pub size_bytes: u64,
    /// Whether there was more.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArtifactOut {
    pub path: String,
    pub size_bytes: u64,
    /// Null where the bytes were not kept.
    pub sha256: Option<Digest>,
}

impl Receipt {
    fn predicate_type(&self) -> &'static str {
        if self.step.is_some() { STEP_PREDICATE_TYPE } else { PREDICATE_TYPE }
    }

    fn subjects(&self) -> Vec<Subject> {
        let subject =
            |name: String, sha256: &Digest| Subject { name, digest: DigestSet { sha256: sha256.clone() } };
        let mut subjects = vec![subject("work".to_owned(), &self.work.sha256)];
        for (name, stream) in [("stdout", &self.outputs.stdout), ("stderr", &self.outputs.stderr)] {
            subjects.extend(stream.iter().map(|stream| subject(name.to_owned(), &stream.sha256)));
        }
        let artifacts =
            self.artifacts.iter().filter_map(|artifact| Some((artifact, artifact.sha256.as_ref()?)));
        subjects.extend(artifacts.map(|(file, sha256)| subject(format!("artifacts/{}", file.path), sha256)));
        subjects
    }

    /// Signs it. The same receipt and key make the same bytes.
    pub fn seal(self, key: &SigningKey) -> Envelope {
        let statement = Statement {
            statement_type: STATEMENT_TYPE.to_owned(),
            subject: self.subjects(),
            predicate_type: self.predicate_type().to_owned(),
            predicate: self,
        };
        Envelope::seal(key, PAYLOAD, &serde_json::to_vec(&statement).unwrap_or_default())
    }

    /// Reads a receipt, and checks whose it is where keys are given.
    pub fn open(envelope: &Envelope, keys: Option<&KeyList>) -> Result<(Self, Proof), ProofError> {
        let (payload, proof) = envelope.open(PAYLOAD, keys)?;
        let Head { statement_type, predicate_type } = serde_json::from_slice(&payload).map_err(malformed)?;
        let wrong = |found: &str, expected| {
            Err(ProofError::WrongType { found: found.chars().take(100).collect(), expected })
        };
        if statement_type != STATEMENT_TYPE {
            return wrong(&statement_type, STATEMENT_TYPE);
        }
        if ![PREDICATE_TYPE, STEP_PREDICATE_TYPE].contains(&predicate_type.as_str()) {
            return wrong(&predicate_type, PREDICATE_TYPE);
        }
        let Statement { subject, predicate, .. } = serde_json::from_slice(&payload).map_err(malformed)?;
        // What is said of a step is not said of a job, nor the other way round.
        if predicate_type != predicate.predicate_type() {
            return wrong(&predicate_type, predicate.predicate_type());
        }
        let finished_at = parse_timestamp("finished_at", &predicate.finished_at).map_err(malformed)?;
        if let (Some(keys), Proof::Signed { keyid }) = (keys, &proof) {
            keys.accept(keyid, Some(finished_at))?;
        }
        if subject != predicate.subjects() {
            return Err(malformed("its subjects are not what it speaks of"));
        }
        Ok((predicate, proof))
    }
}

/// What kind of statement it is, before the rest is read.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "_type")]
    statement_type: String,
    #[serde(rename = "predicateType")]
    predicate_type: String,
}
