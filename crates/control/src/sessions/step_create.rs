//! `step.create`: a request becomes a step that is kept, and runs.

use super::step_run::StepAttempt;
use crate::artifacts::named;
use crate::limits::within_timeout;
use crate::terms::Terms;
use crate::{Control, ControlError, Result, ids, now_ms, receipts};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{Command, InlineFile, KERNEL_LANGUAGES, StepRequest};
use cofferdam_core::{GuestPath, InvalidValue};
use cofferdam_policy::Permit;
use cofferdam_store::{Idempotency, NewStep, SealStep, StepAccepted, StepPart};
use serde_json::json;
use std::sync::atomic::Ordering;

/// A step that is kept, now or from an earlier request of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmittedStep {
    pub id: String,
}

pub(super) const DEFAULT_CONTEXT: &str = "default";

const ROUTE: &str = "POST /v1/sessions/{id}/steps";

impl Control {
    /// Keeps a step and has it run. When this returns, it is on the disk: it is run at most once, whatever happens.
    pub async fn create_step(
        &self,
        permit: &Permit,
        session: &str,
        mut request: StepRequest,
        idempotency: Option<(String, String)>,
    ) -> Result<SubmittedStep> {
        let kind = check(&mut request)?;
        check_files(&request.files)?;
        let inputs = self.check_inputs(permit, &named("files", &request.files)).await?;
        let terms = Terms { inputs, ..Terms::of_rules(self.parts.policy.version()) };
        within_timeout(&self.parts.settings.limits, &mut request.timeout_ms)?;
        if self.parts.is_draining.load(Ordering::Relaxed) {
            return Err(ControlError::Unavailable("the server is about to stop".to_owned()));
        }
        let id = ids::step()?.to_string();
        let name = request.context.get_or_insert_with(|| DEFAULT_CONTEXT.to_owned());
        let context = format!("{kind}/{name}");
        let spec = serde_json::to_string(&request).map_err(|e| ControlError::Unavailable(e.to_string()))?;
        let seal = self.step_seal(permit.tenant(), session).await?;
        let step = NewStep {
            id: id.clone(),
            session: session.to_owned(),
            tenant: permit.tenant().to_owned(),
            spec: match &seal {
                Some(seal) => seal.text(&id, StepPart::Spec, &spec)?,
                None => spec,
            },
            created_at_ms: now_ms(),
            most_waiting: self.parts.settings.sessions.max_waiting_steps as i64,
            context: context.clone(),
            owner: self.parts.instance.clone(),
        };
        let details = json!({
            "session": session, "context": context, "work_sha256": receipts::step_work(&request),
        });
        let event = self.event(permit, "step.started", &id, details);
        // A key is for one session: the same one in another is another request.
        let idempotency = idempotency.map(|(name, body_hash)| Idempotency {
            route: ROUTE,
            name: format!("{session}/{name}"),
            body_hash,
        });
        let handle = self.parts.running.add(&id);
        let accepted = self.parts.store.start_step(step, idempotency, event).await;
        match accepted {
            Ok(StepAccepted::New { step, worker }) => {
                let tenant = permit.tenant().to_owned();
                self.spawn_step(StepAttempt { step: *step, tenant, worker, request, handle, seal, terms });
                Ok(SubmittedStep { id })
            }
            other => {
                self.parts.running.remove(&id, &handle);
                match other.map_err(|error| self.step_refused(error))? {
                    StepAccepted::Before { id } => Ok(SubmittedStep { id }),
                    StepAccepted::OtherBody | StepAccepted::New { .. } => {
                        Err(ControlError::IdempotencyConflict)
                    }
                }
            }
        }
    }

    fn step_refused(&self, error: cofferdam_store::StoreError) -> ControlError {
        match error {
            cofferdam_store::StoreError::QueueFull { most, .. } => ControlError::OverQuota {
                quota: "max_waiting_steps",
                most: most.unsigned_abs(),
                retry_after: std::time::Duration::from_secs(1),
            },
            other => other.into(),
        }
    }
}

/// Said before the step is kept, where it can be.
fn check_files(files: &[InlineFile]) -> Result<()> {
    for (i, file) in files.iter().enumerate() {
        let place = format!("files[{i}].path");
        let path = GuestPath::parse_in_workspace(&place, &file.path)?;
        if !path.as_str().starts_with("/workspace/") {
            return Err(InvalidValue::new(&place, file.path.as_str(), "it must lie in /workspace").into());
        }
        let given = [&file.content, &file.content_base64, &file.artifact];
        if given.into_iter().flatten().count() > 1 {
            let fix = "give one of content, content_base64 and artifact";
            return Err(InvalidValue::new(&format!("files[{i}].content"), "", fix).into());
        }
        if file.content_base64.as_ref().is_some_and(|text| STANDARD.decode(text).is_err()) {
            let field = format!("files[{i}].content_base64");
            return Err(InvalidValue::new(&field, "…", "it is not base64").into());
        }
    }
    Ok(())
}

pub(super) fn check_context(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
        let fix = "it must be 1 to 64 letters, digits, dots, dashes or underscores";
        return Err(InvalidValue::new("context", name, fix).into());
    }
    Ok(())
}

/// Refuses what can be refused beforehand, and says what kind of context the step has.
fn check(request: &mut StepRequest) -> Result<String> {
    let wrong = |field, fix| Err(InvalidValue::new(field, "", fix).into());
    if let Some(name) = &request.context {
        check_context(name)?;
    }
    for (name, value) in &request.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let fix = "a name must not be empty or contain = or NUL, nor a value NUL";
            return Err(InvalidValue::new("env", name.clone(), fix).into());
        }
    }
    if let Some(path) = &request.workdir {
        GuestPath::parse("workdir", path)?;
    }
    match (&mut request.language, &request.code, &request.command) {
        (Some(language), Some(code), None) => {
            let name = kernel_name(language)?;
            *language = name.to_owned();
            if request.stdin.is_some() {
                return wrong("stdin", "code has no input; give stdin with a command");
            }
            if request.workdir.is_some() {
                return wrong("workdir", "code runs where its interpreter is; give workdir with a command");
            }
            if code.contains('\0') {
                return wrong("code", "it must not contain NUL");
            }
            // The two share an interpreter, and so a queue.
            Ok(if name == "typescript" { "javascript" } else { name }.to_owned())
        }
        (None, None, Some(command)) => {
            let words = match command {
                Command::Argv(argv) if argv.is_empty() => return wrong("command", "name a program to run"),
                Command::Argv(argv) if argv[0].is_empty() => {
                    return wrong("command", "the program's name must not be empty");
                }
                Command::Argv(argv) => argv.as_slice(),
                Command::Shell(line) => std::slice::from_ref(line),
            };
            if words.iter().any(|word| word.contains('\0')) {
                return wrong("command", "an argument must not contain NUL");
            }
            Ok("command".to_owned())
        }
        (Some(_), None, None) => wrong("code", "a language needs code to run"),
        (None, Some(_), None) => wrong("language", "code needs a language, such as python"),
        (None, None, None) => wrong("code", "give language and code, or command"),
        (_, _, Some(_)) => wrong("command", "give either command, or language and code"),
    }
}

/// The one name of a language that a session has an interpreter for.
pub(super) fn kernel_name(asked: &str) -> Result<&'static str> {
    let wanted = asked.to_ascii_lowercase();
    Ok(match wanted.as_str() {
        "python" | "py" | "python3" => "python",
        "node" | "js" | "javascript" | "nodejs" => "javascript",
        "typescript" | "ts" => "typescript",
        "bash" => "bash",
        _ => {
            let fix = format!(
                "in a session it must be one of {}; others run as a command",
                KERNEL_LANGUAGES.join(", ")
            );
            return Err(InvalidValue::new("language", asked, fix).into());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_on_the_wire_is_known_and_no_other() {
        for name in KERNEL_LANGUAGES {
            assert!(kernel_name(name).is_ok(), "{name}");
        }
        assert!(kernel_name("cobol").is_err());
    }

    #[test]
    fn what_is_wrong_is_named_as_on_the_wire() {
        for (body, field) in [
            (r#"{}"#, "code"),
            (r#"{"language":"python"}"#, "code"),
            (r#"{"code":"1"}"#, "language"),
            (r#"{"language":"cobol","code":"1"}"#, "language"),
            (r#"{"command":[]}"#, "command"),
            (r#"{"command":[""]}"#, "command"),
            (r#"{"command":"ls","language":"python","code":"1"}"#, "command"),
            (r#"{"command":"ls","context":"a b"}"#, "context"),
            (r#"{"command":"ls","context":""}"#, "context"),
            (r#"{"command":"ls","workdir":"../x"}"#, "workdir"),
            (r#"{"command":"ls","env":{"":"x"}}"#, "env"),
            (r#"{"language":"python","code":"1","stdin":"x"}"#, "stdin"),
        ] {
            let mut request: StepRequest = serde_json::from_str(body).unwrap();
            match check(&mut request) {
                Err(ControlError::Invalid(error)) => assert_eq!(error.field, field, "{body}"),
                other => panic!("{body}: {other:?}"),
            }
        }
    }
}
