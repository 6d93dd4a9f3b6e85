//! `cofferdam image pull`: from a registry, or from a daemon of this machine.

use super::import::{answer, limits};
use super::store;
use crate::args::ImagePullArgs;
use crate::backends;
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

/// What an image of a daemon begins with.
const DAEMON: &str = "docker-daemon:";

pub(super) fn pull(args: &ImagePullArgs) -> Result<ExitCode, Failure> {
    if let Some(image) = args.reference.strip_prefix(DAEMON) {
        return pull_from_daemon(args, image);
    }
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

/// By name and tag: a daemon asked for a name alone would send every tag of it.
fn pull_from_daemon(args: &ImagePullArgs, image: &str) -> Result<ExitCode, Failure> {
    if args.username.is_some() || args.plain_http {
        let option = if args.plain_http { "--plain-http" } else { "--username" };
        return Err(Failure::new(format!("{option} is for registries, and {DAEMON}{image} is of a daemon")));
    }
    let wanted = ImageName::parse("image", image)?;
    let name = match &args.name {
        Some(name) => ImageName::parse("--name", name)?,
        None => wanted.clone(),
    };
    let (limits, store) = (limits(&args.limits)?, store()?);
    let engine = backends::named_engine();
    // The one thread brings pieces while this one reads them.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mut saved = runtime.block_on(cofferdam_docker::save(
        engine,
        &backends::host(engine, None),
        &wanted.to_string(),
    ))?;
    let bar = bar(args.json);
    let total = saved.size_bytes.unwrap_or_default();
    bar.set_length(total);
    // Once it is here it is read again, to be unpacked; its size was the daemon's guess.
    let progress = |bytes| match bar.position() + bytes < total {
        true => bar.inc(bytes),
        false => bar.set_message("unpacking"),
    };
    let imported = store.import_stream(&mut saved, &name, limits, &progress);
    bar.finish_and_clear();
    answer(&name, &imported?, args.json)
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
