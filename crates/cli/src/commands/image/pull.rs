//! `cofferdam image pull`.

use super::import::{answer, limits};
use super::store;
use crate::args::ImagePullArgs;
use crate::exit::Failure;
use cofferdam_images::ImageName;
use cofferdam_registry::{Credentials, Progress, Pull, Reference};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::env;
use std::io::{IsTerminal, Read, stderr, stdin};
use std::path::PathBuf;
use std::process::ExitCode;

/// Longer than any token of a registry.
const MAX_PASSWORD: u64 = 64 << 10;

pub(super) fn pull(args: &ImagePullArgs) -> Result<ExitCode, Failure> {
    let reference = Reference::parse("image", &args.reference)?;
    let name = match &args.name {
        Some(name) => ImageName::parse("--name", name)?,
        None => reference.name("image")?,
    };
    let limits = limits(&args.limits)?;
    let credentials = credentials(args, &reference.host)?;
    let pull = Pull { reference, name, credentials, plain_http: args.plain_http, limits };
    let bar = bar(args.json);
    let progress = |progress| match progress {
        Progress::Begin { total, here } => {
            bar.set_length(total);
            bar.set_position(here);
        }
        Progress::Bytes(bytes) => bar.inc(bytes),
        Progress::Unpacking => bar.set_message("unpacking"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let pulled = runtime.block_on(cofferdam_registry::pull(&store()?, &pull, &progress));
    bar.finish_and_clear();
    answer(&pull.name, &pulled?, args.json)
}

/// A bar on a terminal's stderr; elsewhere nothing.
fn bar(is_quiet: bool) -> ProgressBar {
    let is_shown = !is_quiet && stderr().is_terminal();
    let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(None, target).with_message("pulling");
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {bytes} of {total_bytes} ({eta})") {
        bar.set_style(style);
    }
    bar
}

/// What was said, else what somebody logged in with before.
fn credentials(args: &ImagePullArgs, host: &str) -> Result<Option<Credentials>, Failure> {
    if let Some(username) = &args.username {
        let mut password = String::new();
        stdin().take(MAX_PASSWORD).read_to_string(&mut password)?;
        let password = password.trim_end_matches(['\r', '\n']).to_owned();
        return Ok(Some(Credentials { username: username.clone(), password }));
    }
    let files = login_files().into_iter().filter_map(|path| std::fs::read(path).ok());
    Ok(files.filter_map(|json| Credentials::from_docker_config(&json, host)).next())
}

/// Where logins are kept by those who have such a command.
fn login_files() -> Vec<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let podman = set("REGISTRY_AUTH_FILE")
        .or_else(|| set("XDG_RUNTIME_DIR").map(|run| run.join("containers/auth.json")));
    let docker = set("DOCKER_CONFIG").or_else(|| set("HOME").map(|home| home.join(".docker")));
    [podman, docker.map(|folder| folder.join("config.json"))].into_iter().flatten().collect()
}
