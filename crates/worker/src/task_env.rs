//! The environment that a job's process starts with: the task contract, and nothing of the host's.

use cofferdam_core::{GuestPath, InvalidValue, JobId, SessionId, TaskId};

/// The working directory of a job, fresh and gone afterwards.
pub const WORKSPACE_DIR: &str = "/workspace";

pub(crate) fn workspace() -> GuestPath {
    GuestPath::parse("workdir", WORKSPACE_DIR).expect("the workspace's own path is valid")
}

/// What a job leaves here outlives it.
pub const ARTIFACTS_DIR: &str = "/workspace/.artifacts";

/// The number of a step, for what runs in it.
pub(crate) const STEP_VARIABLE: &str = "CYNODE_STEP";

/// Names that begin so are ours; a request cannot set them.
const RESERVED_PREFIX: &str = "CYNODE_";

const DEFAULTS: [(&str, &str); 5] = [
    ("HOME", WORKSPACE_DIR),
    ("USER", "sandbox"),
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
];

/// Those of the defaults by which a program finds its parts, its language or its time when it starts.
pub(crate) const STARTUP_VARIABLES: [&str; 4] = ["HOME", "PATH", "LANG", "TZ"];

/// The environment of a program that starts before there is a job for it.
pub(crate) fn default_env() -> Vec<(String, String)> {
    DEFAULTS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// What every program knows how to draw on; the host's own TERM stays outside.
const TERMINAL_TYPE: &str = "xterm-256color";

/// An environment, and what in the request had no effect on it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TaskEnv {
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) warnings: Vec<String>,
}

/// Lays the request over the defaults, and the contract over both.
pub(crate) fn task_env(
    requested: &[(String, String)],
    job_id: &JobId,
    task_id: &TaskId,
    terminal: bool,
) -> Result<TaskEnv, InvalidValue> {
    contract(requested, job_id.as_str(), task_id, terminal)
}

/// The same for a step: it is known by its session's id, and by its number.
pub(crate) fn session_env(
    requested: &[(String, String)],
    id: &SessionId,
    task_id: &TaskId,
    step: i64,
) -> Result<TaskEnv, InvalidValue> {
    let mut env = contract(requested, id.as_str(), task_id, false)?;
    env.set(STEP_VARIABLE, &step.to_string());
    Ok(env)
}

pub(crate) fn contract(
    requested: &[(String, String)],
    id: &str,
    task_id: &TaskId,
    terminal: bool,
) -> Result<TaskEnv, InvalidValue> {
    let mut env = TaskEnv { variables: Vec::with_capacity(requested.len() + 10), warnings: Vec::new() };
    env.variables.extend(default_env());
    if terminal {
        env.set("TERM", TERMINAL_TYPE);
    }
    for (name, value) in requested {
        check(name, value)?;
        if name.starts_with(RESERVED_PREFIX) {
            env.warnings.push(format!("{name} is set by the sandbox; the requested value was ignored"));
        } else {
            env.set(name, value);
        }
    }
    env.set("CYNODE_TASK_ID", task_id.as_str());
    env.set("CYNODE_JOB_ID", id);
    env.set("CYNODE_WORKSPACE_DIR", WORKSPACE_DIR);
    env.set("CYNODE_ARTIFACTS_DIR", ARTIFACTS_DIR);
    Ok(env)
}

fn check(name: &str, value: &str) -> Result<(), InvalidValue> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(InvalidValue::new(
            "env",
            name,
            "a variable's name must not be empty or contain = or NUL",
        ));
    }
    if value.contains('\0') {
        return Err(InvalidValue::new("env", name, "a variable's value must not contain NUL"));
    }
    Ok(())
}

impl TaskEnv {
    /// Each name appears once: the last value given wins.
    fn set(&mut self, name: &str, value: &str) {
        match self.variables.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.variables.push((name.to_owned(), value.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(requested: &[(&str, &str)], terminal: bool) -> TaskEnv {
        let requested: Vec<_> = requested.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let task_id = TaskId::parse("task_id", "t-1").unwrap();
        task_env(&requested, &JobId::from_random([0; 10]), &task_id, terminal).unwrap()
    }

    fn get<'a>(env: &'a TaskEnv, name: &str) -> Vec<&'a str> {
        env.variables.iter().filter(|(k, _)| k == name).map(|(_, v)| v.as_str()).collect()
    }

    #[test]
    fn the_contract_is_there_and_nothing_of_the_host() {
        let env = made(&[], false);
        let mut names: Vec<_> = env.variables.iter().map(|(k, _)| k.as_str()).collect();
        names.sort_unstable();
        let contract = ["CYNODE_ARTIFACTS_DIR", "CYNODE_JOB_ID", "CYNODE_TASK_ID", "CYNODE_WORKSPACE_DIR"];
        assert_eq!(names, [&contract[..], &["HOME", "LANG", "PATH", "TZ", "USER"]].concat());
        assert_eq!(get(&env, "CYNODE_TASK_ID"), ["t-1"]);
        assert_eq!(get(&env, "CYNODE_JOB_ID"), ["job-aaaaaaaaaaaaaaaa"]);
        assert_eq!(get(&env, "CYNODE_ARTIFACTS_DIR"), ["/workspace/.artifacts"]);
    }

    #[test]
    fn the_request_wins_over_defaults_and_the_last_of_equals_wins() {
        let env = made(&[("PATH", "/opt"), ("A", "1"), ("A", "2")], false);
        assert_eq!((get(&env, "PATH"), get(&env, "A")), (vec!["/opt"], vec!["2"]));
        assert!(env.warnings.is_empty());
    }

    #[test]
    fn reserved_names_are_ignored_with_a_warning_each() {
        let env = made(&[("CYNODE_JOB_ID", "mine"), ("CYNODE_OTHER", "x")], false);
        assert_eq!(get(&env, "CYNODE_JOB_ID"), ["job-aaaaaaaaaaaaaaaa"]);
        assert!(get(&env, "CYNODE_OTHER").is_empty());
        assert_eq!(env.warnings.len(), 2);
        assert!(env.warnings[0].starts_with("CYNODE_JOB_ID "));
    }

    #[test]
    fn only_a_terminal_has_a_type() {
        assert!(get(&made(&[], false), "TERM").is_empty());
        assert_eq!(get(&made(&[], true), "TERM"), ["xterm-256color"]);
        assert_eq!(get(&made(&[("TERM", "dumb")], true), "TERM"), ["dumb"]);
    }

    #[test]
    fn names_and_values_that_no_process_can_have_are_refused() {
        let task_id = TaskId::parse("task_id", "t").unwrap();
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")] {
            let requested = [(name.to_owned(), value.to_owned())];
            assert!(task_env(&requested, &JobId::from_random([0; 10]), &task_id, false).is_err());
        }
    }
}
