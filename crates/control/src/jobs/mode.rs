//! `execution_mode` and `sandbox` of a request: another spelling of a job on the docker backend, brought to the first
//! one before anything else looks at it. What is left of `sandbox` is where it starts and what is mounted.

use crate::backends::NATIVE;
use crate::mounts::{MountSettings, outside};
use crate::placement::Demand;
use crate::{Control, ControlError, MountProblem, Result};
use cofferdam_api::{Command, JobRequest, SandboxRequest};
use cofferdam_core::InvalidValue;
use cofferdam_policy::Permit;
use serde_json::json;
use std::sync::Arc;

/// The job's own container.
const DOCKER_SANDBOX: &str = "docker-sandbox";

/// The native backend, by an older word.
const DIRECT: &str = "direct";

/// The backends that make containers of named images, the first choice first.
const ENGINES: [&str; 2] = ["docker", "podman"];

impl Control {
    /// Brings a request to one spelling. A mount that the operator does not allow is a denial, and is noted.
    pub(crate) async fn settle_mode(&self, permit: &Permit, request: &mut JobRequest) -> Result<()> {
        let Some(mut sandbox) = take(request)? else { return Ok(()) };
        let mounts: &MountSettings = &self.parts.settings.backends.mounts;
        let engine = self.engine(request.backend.as_deref())?;
        let mut settled = mounts.settle(permit.tenant(), &mut sandbox);
        if settled.is_ok() {
            settled = self.look_at_mounts(sandbox.clone()).await;
        }
        if let Err(ControlError::Denied(denial)) = &settled {
            let action = permit.action().as_str();
            let details = json!({"action": action, "rule": denial.rule, "why": denial.why});
            self.note_denial(permit.principal(), permit.tenant(), denial, details).await?;
        }
        settled?;
        put(request, engine, sandbox);
        Ok(())
    }

    /// What can be seen of the folders now. They are opened anew for the run.
    async fn look_at_mounts(&self, sandbox: SandboxRequest) -> Result<()> {
        let checker = Arc::clone(&self.parts.checker);
        let looked = tokio::task::spawn_blocking(move || checker.check_mounts(&sandbox)).await;
        match looked.map_err(|error| ControlError::Unavailable(error.to_string()))? {
            Ok(()) => Ok(()),
            Err(MountProblem::Unusable(error)) => Err(error.into()),
            Err(MountProblem::Outside(InvalidValue { field, value, fix })) => {
                Err(outside(format!("{field}: {value:?}: {fix}"), "name a folder that is in it"))
            }
        }
    }

    /// The backend for it: the one that is asked for, or that some worker has.
    fn engine(&self, asked: Option<&str>) -> Result<&'static str> {
        let has = |name: &str| {
            let backend = name.to_owned();
            self.parts.fleet.could_fit(&Demand { backend, ..Demand::default() })
        };
        let wanted = match asked {
            None => ENGINES.into_iter().find(|name| has(name)),
            Some(asked) => match ENGINES.into_iter().find(|name| *name == asked) {
                Some(engine) => Some(engine).filter(|name| has(name)),
                None => {
                    let fix = "docker-sandbox is a container of docker or podman; leave backend out";
                    return Err(InvalidValue::new("backend", asked, fix).into());
                }
            },
        };
        match wanted.filter(|_| self.parts.settings.backends.images) {
            Some(engine) => Ok(engine),
            None => Err(ControlError::Unsupported {
                field: "execution_mode",
                why: "docker-sandbox needs a worker with docker or podman; an operator turns one on \
                      (backends.enabled = [\"native\", \"docker\"] and backends.images = true)"
                    .into(),
            }),
        }
    }
}

type Taken<T> = std::result::Result<T, InvalidValue>;

/// Takes the mode out of a request, and what it is about.
fn take(request: &mut JobRequest) -> Taken<Option<SandboxRequest>> {
    let wrong = |field, value: &str, fix| Err(InvalidValue::new(field, value, fix));
    let mode = request.execution_mode.take();
    match (mode.as_deref(), request.sandbox.take()) {
        (None, None) => Ok(None),
        (None, Some(_)) => wrong("sandbox", "", "it is for jobs with execution_mode docker-sandbox"),
        (Some(DIRECT), Some(_)) => wrong("sandbox", "", "execution_mode direct has none; give command"),
        (Some(DIRECT), None) => match request.backend.as_deref() {
            None | Some(NATIVE | DIRECT) => Ok(None),
            Some(other) => wrong("backend", other, "execution_mode direct is native; give one of the two"),
        },
        (Some(DOCKER_SANDBOX), None) => {
            wrong("sandbox", "", "execution_mode docker-sandbox needs it, with image and command")
        }
        (Some(DOCKER_SANDBOX), Some(sandbox)) => check(request, sandbox).map(Some),
        (Some(other), _) => wrong("execution_mode", other, "it must be docker-sandbox or direct"),
    }
}

/// Refuses what is there twice, or not at all.
fn check(request: &JobRequest, sandbox: SandboxRequest) -> Taken<SandboxRequest> {
    let plain = [
        ("language", request.language.is_some()),
        ("code", request.code.is_some()),
        ("command", request.command.is_some()),
        ("args", !request.args.is_empty()),
        ("env", !request.env.is_empty()),
        ("image", request.image.is_some()),
        ("profile", request.profile.is_some()),
        ("kind", !request.kind.is_run()),
        ("runner", request.runner.is_some()),
    ];
    if let Some((field, _)) = plain.into_iter().find(|(_, is_given)| *is_given) {
        let fix = "the job has a sandbox: say there what runs, or leave sandbox and execution_mode out";
        return Err(InvalidValue::new(field, "", fix));
    }
    if sandbox.image.as_deref().is_none_or(str::is_empty) {
        return Err(InvalidValue::new("sandbox.image", "", "name an image of the server's store"));
    }
    let is_empty = match &sandbox.command {
        None => true,
        Some(Command::Argv(argv)) => argv.first().is_none_or(String::is_empty),
        Some(Command::Shell(line)) => line.trim().is_empty(),
    };
    if is_empty {
        return Err(InvalidValue::new(
            "sandbox.command",
            "",
            "give a program and its arguments, or a line for a shell",
        ));
    }
    Ok(sandbox)
}

/// Writes it as any other job on that backend is written.
fn put(request: &mut JobRequest, engine: &str, sandbox: SandboxRequest) {
    let SandboxRequest { image, command, workdir, env, mounts } = sandbox;
    request.backend = Some(engine.to_owned());
    request.image = image;
    request.command = command;
    request.env = env;
    if workdir.is_some() || !mounts.is_empty() {
        request.sandbox = Some(SandboxRequest { workdir, mounts, ..SandboxRequest::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn taken(body: Value) -> std::result::Result<Option<JobRequest>, String> {
        let mut request: JobRequest = serde_json::from_value(body).expect("a request");
        match take(&mut request).map_err(|error| error.to_string())? {
            None => Ok(None),
            Some(sandbox) => {
                put(&mut request, "docker", sandbox);
                Ok(Some(request))
            }
        }
    }

    #[test]
    fn a_sandbox_becomes_a_job_of_the_docker_backend() {
        let body = json!({
            "execution_mode": "docker-sandbox", "timeout_ms": 7,
            "sandbox": {"image": "app:1", "command": ["ls", "-l"], "env": {"A": "1"}},
        });
        let plain = json!({
            "backend": "docker", "image": "app:1", "command": ["ls", "-l"], "env": {"A": "1"}, "timeout_ms": 7,
        });
        assert_eq!(taken(body).unwrap(), serde_json::from_value(plain).unwrap());
        let body = json!({
            "execution_mode": "docker-sandbox",
            "sandbox": {"image": "app:1", "command": "ls", "workdir": "/app"},
        });
        let kept = taken(body).unwrap().expect("a sandbox");
        let left = SandboxRequest { workdir: Some("/app".to_owned()), ..SandboxRequest::default() };
        assert_eq!(kept.sandbox, Some(left));
        assert_eq!(kept.execution_mode, None, "it is never kept");
    }

    #[test]
    fn direct_is_native() {
        for backend in [Value::Null, json!("native"), json!("direct")] {
            let body = json!({"execution_mode": "direct", "command": "true", "backend": backend});
            assert_eq!(taken(body), Ok(None));
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_field_and_value() {
        let sandbox = json!({"image": "app:1", "command": "ls"});
        let with = |field: &str, value: Value| {
            let mut body = json!({"execution_mode": "docker-sandbox", "sandbox": sandbox});
            body[field] = value;
            body
        };
        for (body, expected) in [
            (json!({"execution_mode": "host", "command": "ls"}), "execution_mode: \"host\""),
            (json!({"execution_mode": "", "command": "ls"}), "execution_mode: \"\""),
            (json!({"execution_mode": "docker-sandbox"}), "sandbox: \"\""),
            (json!({"execution_mode": "direct", "sandbox": sandbox}), "sandbox: \"\""),
            (json!({"execution_mode": "direct", "command": "ls", "backend": "oci"}), "backend: \"oci\""),
            (json!({"sandbox": sandbox}), "sandbox: \"\""),
            (with("sandbox", json!({"command": "ls"})), "sandbox.image"),
            (with("sandbox", json!({"image": "", "command": "ls"})), "sandbox.image"),
            (with("sandbox", json!({"image": "app:1"})), "sandbox.command"),
            (with("sandbox", json!({"image": "app:1", "command": []})), "sandbox.command"),
            (with("sandbox", json!({"image": "app:1", "command": " "})), "sandbox.command"),
            (with("command", json!("ls")), "command: "),
            (with("code", json!("1")), "code: "),
            (with("language", json!("python")), "language: "),
            (with("args", json!(["a"])), "args: "),
            (with("env", json!({"A": "1"})), "env: "),
            (with("image", json!("app:1")), "image: "),
            (with("profile", json!("base-tools")), "profile: "),
            (with("kind", json!("test")), "kind: "),
            (with("runner", json!({})), "runner: "),
        ] {
            let error = taken(body.clone()).expect_err("it is refused");
            assert!(error.starts_with(expected), "{body}: {error}");
        }
    }
}
