//! `receipt.get`: what is kept of a job that has ended, as a signed statement.
//!
//! It is made when it is asked for, of what was written when the job was taken in and when it ended, so it costs a
//! job nothing, and the same job and key always make the same bytes.

use crate::terms::Terms;
use crate::{Control, ControlError, Result, timestamp};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{Command, InlineFile, JobRequest, StepRequest};
use cofferdam_core::{JobKind, JobState};
use cofferdam_policy::Permit;
use cofferdam_proof::{
    ArtifactOut, Blob, Digest, Envelope, FileIn, Form, Hasher, Image, Inputs, Outputs, PolicyUsed, Receipt,
    StreamOut, Work, sha256,
};
use cofferdam_store::{JobRecord, StoreError};
use serde_json::{Value, json};

impl Control {
    /// The receipt of a job that has ended.
    pub async fn get_receipt(&self, permit: &Permit, id: &str) -> Result<Envelope> {
        let job = self.get_job(permit, id).await?;
        if !job.state.is_final() {
            return Err(ControlError::WrongState { state: job.state });
        }
        // The job before the key: what a key signs has happened before the key was retired.
        let receipt = receipt(&job)?;
        let keys = self.signing()?;
        self.note_read(permit, "receipt.read", id).await?;
        Ok(receipt.seal(&keys.current))
    }
}

fn receipt(job: &JobRecord) -> Result<Receipt> {
    let unreadable = |what: &str| {
        let text = format!("the {what} of {}", job.id);
        ControlError::from(StoreError::Unreadable(text))
    };
    let request: JobRequest = serde_json::from_str(&job.spec).map_err(|_| unreadable("request"))?;
    let terms = Terms::read(job.terms.as_deref()).ok_or_else(|| unreadable("terms"))?;
    let result: Value = match &job.result {
        Some(text) => serde_json::from_str(text).map_err(|_| unreadable("result"))?,
        None => Value::Null,
    };
    let text = |name: &str| result[name].as_str().map(str::to_owned);
    let (image, digest) = terms.image();
    let image = Image { name: image.to_owned(), sha256: digest };
    Ok(Receipt {
        job_id: job.id.clone(),
        step: None,
        tenant: job.tenant.clone(),
        task_id: job.task_id.clone(),
        agent: job.agent.clone(),
        work: work(&request),
        inputs: inputs(&request, &terms).ok_or_else(|| unreadable("files"))?,
        image,
        policy: PolicyUsed { sha256: terms.policy_sha256 },
        network_policy: result.get("network_policy_applied").cloned(),
        limits: terms.limits,
        outputs: Outputs { stdout: stream(&result, "stdout"), stderr: stream(&result, "stderr") },
        artifacts: artifacts(&result),
        isolation: result["isolation"].clone(),
        state: job.state.as_str().to_owned(),
        outcome: outcome(job, &result),
        limits_hit: result["limits_hit"].clone(),
        resource_usage: result["resource_usage"].clone(),
        duration_ms: result["duration_ms"].as_u64(),
        worker: job.worker.clone(),
        sandbox_id: text("sandbox_id"),
        created_at: timestamp(job.created_at_ms),
        started_at: job.started_at_ms.map(timestamp),
        finished_at: timestamp(job.transition_at_ms),
    })
}

/// The digest of a list of words, each ended by a NUL, which no word has.
fn words(words: &[String]) -> Digest {
    let mut hasher = Hasher::default();
    for word in words {
        hasher.update(word.as_bytes());
        hasher.update(&[0]);
    }
    hasher.finish()
}

/// What was run, by its digest.
pub(crate) fn work(request: &JobRequest) -> Work {
    let (form, digest) = match (&request.code, &request.command) {
        (_, Some(Command::Argv(argv))) => (Form::Argv, words(argv)),
        (_, Some(Command::Shell(line))) => (Form::Shell, sha256(line.as_bytes())),
        // What runs is the tool's own command.
        (None, None) if !request.kind.is_run() => (Form::Argv, words(&tool_words(request))),
        (code, None) => (Form::Code, sha256(code.as_deref().unwrap_or_default().as_bytes())),
    };
    Work { form, language: request.language.clone(), sha256: digest, args_sha256: words(&request.args) }
}

/// The kind of a test or a build, and the tool where the request names one.
fn tool_words(request: &JobRequest) -> Vec<String> {
    let kind = if request.kind == JobKind::Build { "build" } else { "test" };
    let tool = request.runner.as_ref().and_then(|runner| runner.tool.clone());
    [kind.to_owned()].into_iter().chain(tool).collect()
}

/// What a step runs, as it is noted.
pub(crate) fn step_work(request: &StepRequest) -> Digest {
    match (&request.code, &request.command) {
        (_, Some(Command::Argv(argv))) => words(argv),
        (_, Some(Command::Shell(line))) => sha256(line.as_bytes()),
        (code, None) => sha256(code.as_deref().unwrap_or_default().as_bytes()),
    }
}

fn blob(bytes: &[u8]) -> Blob {
    Blob { sha256: sha256(bytes), size_bytes: bytes.len() as u64 }
}

pub(crate) fn inputs(request: &JobRequest, terms: &Terms) -> Option<Inputs> {
    let file = |file: &InlineFile| {
        let given = file.artifact.as_ref().and_then(|id| terms.inputs.get(id));
        let blob = match (&file.content, &file.content_base64) {
            _ if file.artifact.is_some() => {
                Blob { sha256: given?.sha256.clone()?, size_bytes: given?.size_bytes }
            }
            (Some(text), _) => blob(text.as_bytes()),
            (None, Some(text)) => blob(&STANDARD.decode(text).ok()?),
            (None, None) => blob(b""),
        };
        Some(FileIn { path: file.path.clone(), sha256: blob.sha256, size_bytes: blob.size_bytes })
    };
    let mut files = request.files.iter().map(file).collect::<Option<Vec<_>>>()?;
    if let Some(id) = request.runner.as_ref().and_then(|runner| runner.project.as_ref()) {
        let given = terms.inputs.get(id)?;
        let (sha256, size_bytes) = (given.sha256.clone()?, given.size_bytes);
        files.push(FileIn { path: "/workspace".to_owned(), sha256, size_bytes });
    }
    Some(Inputs {
        stdin: request.stdin.as_ref().map(|text| blob(text.as_bytes())),
        files,
        env_names: request.env.keys().cloned().collect(),
    })
}

/// What was kept of a stream, as it was counted when the job ended: the bytes themselves go earlier than the job.
pub(crate) fn stream(result: &Value, name: &str) -> Option<StreamOut> {
    let field = |rest: &str| &result[format!("{name}_{rest}")];
    Some(StreamOut {
        sha256: Digest::parse(field("sha256").as_str()?).ok()?,
        size_bytes: field("size_bytes").as_u64()?,
        truncated: field("truncated").as_bool().unwrap_or(false),
    })
}

pub(crate) fn artifacts(result: &Value) -> Vec<ArtifactOut> {
    let artifact = |value: &Value| {
        Some(ArtifactOut {
            path: value["path"].as_str()?.to_owned(),
            size_bytes: value["size_bytes"].as_u64()?,
            sha256: value["sha256"].as_str().and_then(|text| Digest::parse(text).ok()),
        })
    };
    result["artifacts"].as_array().into_iter().flatten().filter_map(artifact).collect()
}

/// How it ended; told by its state where it has no result.
fn outcome(job: &JobRecord, result: &Value) -> Value {
    match (&result["outcome"], job.state) {
        (Value::Null, JobState::Cancelled) => json!({"kind": "cancelled", "by": job.cancelled_by}),
        (Value::Null, state) => json!({"kind": state}),
        (outcome, _) => outcome.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(spec: Value, result: Option<Value>, state: JobState) -> JobRecord {
        JobRecord {
            id: "job-a".into(),
            tenant: "ten-a".into(),
            agent: None,
            task_id: "task".into(),
            state,
            reason: None,
            message: None,
            created_at_ms: 0,
            transition_at_ms: 20,
            spec: spec.to_string(),
            result: result.map(|value| value.to_string()),
            fence: 1,
            starts: 1,
            worker: Some("wrk-a".into()),
            traceparent: None,
            cancelled_by: Some("key-a".into()),
            output_expired_at_ms: None,
            started_at_ms: Some(10),
            terms: None,
            owner: None,
            lease_until_ms: None,
        }
    }

    #[test]
    fn what_was_asked_for_is_in_it_as_digests_and_no_secret_is() {
        let spec = json!({
            "language": "python", "code": "print(1)", "args": ["a", "b"], "stdin": "in",
            "env": {"TOKEN": "s3cret"},
            "files": [{"path": "a", "content": "x"}, {"path": "b", "content_base64": "/w=="}, {"path": "c"}],
        });
        let receipt = receipt(&job(spec, None, JobState::Lost)).unwrap();
        assert_eq!((receipt.work.form, receipt.work.sha256), (Form::Code, sha256(b"print(1)")));
        assert_eq!(receipt.work.args_sha256, sha256(b"a\0b\0"));
        assert_eq!(receipt.inputs.stdin, Some(blob(b"in")));
        let files: Vec<_> =
            receipt.inputs.files.iter().map(|file| (file.sha256.clone(), file.size_bytes)).collect();
        assert_eq!(files, [(sha256(b"x"), 1), (sha256(b"\xff"), 1), (sha256(b""), 0)]);
        assert_eq!(receipt.inputs.env_names, ["TOKEN"]);
        assert_eq!((receipt.outcome, receipt.outputs.stdout), (json!({"kind": "lost"}), None));
        assert_eq!(receipt.started_at.as_deref(), Some("1970-01-01T00:00:00.010Z"));
    }

    #[test]
    fn an_artifact_that_was_given_is_in_it_with_its_digest() {
        let spec = json!({"command": "ls", "files": [{"path": "a", "artifact": "art-a"}]});
        let terms = json!({"inputs": {"art-a": {"sha256": sha256(b"x"), "size_bytes": 1}}}).to_string();
        let job = JobRecord { terms: Some(terms), ..job(spec.clone(), None, JobState::Lost) };
        let files = receipt(&job).unwrap().inputs.files;
        assert_eq!((files[0].sha256.clone(), files[0].size_bytes), (sha256(b"x"), 1));
        // Nothing is said of what is not known.
        assert!(receipt(&JobRecord { terms: None, ..job }).is_err());
    }

    #[test]
    fn commands_are_told_apart_by_their_form() {
        let work = |command: Value| work(&serde_json::from_value(json!({"command": command})).unwrap());
        assert_eq!(work(json!("ls")).form, Form::Shell);
        assert_eq!(work(json!("ls")).sha256, sha256(b"ls"));
        assert_ne!(work(json!(["a", "b"])).sha256, work(json!(["ab"])).sha256);
        assert_eq!(work(json!(["a", "b"])).sha256, sha256(b"a\0b\0"));
    }

    #[test]
    fn the_result_is_taken_as_it_was_kept() {
        let result = json!({
            "outcome": {"kind": "exited", "code": 3}, "stdout_sha256": sha256(b"1"), "stdout_size_bytes": 1,
            "stdout_truncated": true, "duration_ms": 5, "sandbox_id": "sbx-a",
            "artifacts": [{"path": "r", "size_bytes": 9}, {"path": "s", "size_bytes": 1, "sha256": sha256(b"s")}],
        });
        let receipt = receipt(&job(json!({"command": "ls"}), Some(result), JobState::Failed)).unwrap();
        let stdout = StreamOut { sha256: sha256(b"1"), size_bytes: 1, truncated: true };
        assert_eq!((receipt.outputs.stdout, receipt.outputs.stderr), (Some(stdout), None));
        assert_eq!(
            (receipt.outcome["code"].as_i64(), receipt.sandbox_id.as_deref()),
            (Some(3), Some("sbx-a"))
        );
        let digests: Vec<_> = receipt.artifacts.into_iter().map(|artifact| artifact.sha256).collect();
        assert_eq!(digests, [None, Some(sha256(b"s"))]);
    }

    #[test]
    fn a_job_that_never_ran_says_who_ended_it() {
        let receipt = receipt(&job(json!({"command": "ls"}), None, JobState::Cancelled)).unwrap();
        assert_eq!(receipt.outcome, json!({"kind": "cancelled", "by": "key-a"}));
    }

    /// The wire says how a document looks, and this is how it looks.
    #[test]
    fn documents_are_as_on_the_wire() {
        use cofferdam_api::{SignedDocument, SigningKeyList};
        use cofferdam_proof::{KeyList, ListedKey, SigningKey};
        let key = SigningKey::from_seed(&[1; 32]);
        let sealed = receipt(&job(json!({"command": "ls"}), None, JobState::Lost)).unwrap().seal(&key);
        let sealed = serde_json::to_value(sealed).unwrap();
        let wire: SignedDocument = serde_json::from_value(sealed.clone()).unwrap();
        assert_eq!(serde_json::to_value(wire).unwrap(), sealed);
        let list =
            serde_json::to_value(KeyList::new(vec![ListedKey::new(&key.public(), 0)]).unwrap()).unwrap();
        let wire: SigningKeyList = serde_json::from_value(list.clone()).unwrap();
        assert_eq!(serde_json::to_value(wire).unwrap(), list);
    }
}
