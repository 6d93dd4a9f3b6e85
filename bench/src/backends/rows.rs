//! Starts of sandboxes, each beside that of the engine or the runtime below it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cofferdam_backend::Image;
use cofferdam_docker::{DockerBackend, DockerOptions, Engine};
use cofferdam_linux::launcher::default_runtime_folder;
use cofferdam_oci::{OciBackend, OciOptions};

use super::Row;
use crate::args::{Plan, Rounds};
use crate::beside::Beside;
use crate::contestant::{Contestant, Entrant, Pace};
use crate::contestants::{self, Peer, WholeCommand, quiet};
use crate::failure::{Doing, Failure, Result};
use crate::in_process::{Cold, Exec, Host, Warm};
use crate::progress::Progress;
use crate::schedule::{self, Mode};
use crate::workload::Workload;
use crate::workplace::Workplace;

const WORKLOAD: Workload = Workload::True;

/// The image's name in our own store.
const NAME: &str = "bench:1";

/// A helper waits while others have their turn.
const LOST_AFTER: Duration = Duration::from_secs(600);

/// In turn, with a pause before each in which engines finish what they left.
fn in_turn(
    row: Row,
    (ours, theirs): (&dyn Contestant, &dyn Contestant),
    count: usize,
    progress: &mut Progress,
) -> Result<Beside<Row>> {
    let entrants =
        [ours, theirs].map(|contestant| Entrant { contestant: Box::new(contestant), pace: Pace::Fast });
    let watch = |round| progress.at(row.label(), round, count);
    let series = schedule::race(&entrants, Mode::Sparse, Rounds { fast: count, slow: 0 }, watch);
    if let Some(failure) = series.iter().find_map(|series| series.failure.as_ref()) {
        return Err(Failure::new(failure.clone()));
    }
    Beside::new(row, row.command(), &series[0].samples, &series[1].samples)
}

/// The root that all share as an image of our own store, which is made once for each tree.
fn store(program: &Path, place: &Workplace) -> Result<PathBuf> {
    let folder = place.cache("backends").join(format!("store-{}", place.stamp()));
    let whole = folder.with_extension("whole");
    if whole.exists() {
        return Ok(folder);
    }
    let parent = place.cache("backends");
    let _ = fs::remove_dir_all(&parent);
    fs::create_dir_all(&parent).doing(format_args!("creating {}", parent.display()))?;
    import(program, &folder, &place.rootfs(), NAME)?;
    fs::write(&whole, "").doing(format_args!("writing {}", whole.display()))?;
    Ok(folder)
}

/// `cofferdam image import`.
pub(super) fn import(program: &Path, store: &Path, source: &Path, name: &str) -> Result<()> {
    let mut command = quiet(program);
    command.env("COFFERDAM_IMAGES", store).args(["image", "import"]).arg(source).args(["--name", name]);
    let output = command.stderr(std::process::Stdio::piped()).output().doing("starting an import")?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failure::new(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// `cofferdam run` with these words before the workload's.
fn run(name: &'static str, program: &Path, store: &Path, words: &[&str]) -> Result<WholeCommand> {
    let command = WholeCommand::new(name, program, ["run"])
        .args(words)
        .args(["--"])
        .args(WORKLOAD.argv())
        .env("COFFERDAM_IMAGES", store);
    command.check(WORKLOAD)?;
    Ok(command)
}

pub(super) fn native_on_image(
    program: &Path,
    place: &Workplace,
    plan: Plan,
    progress: &mut Progress,
) -> Result<Beside<Row>> {
    let store = store(program, place)?;
    let ours = run("image", program, &store, &["--image", NAME])?;
    let theirs = run("host", program, &store, &[])?;
    in_turn(Row::NativeOnImage, (&ours, &theirs), plan.sparse.fast, progress)
}

/// A host on the shared root, with that runtime.
fn oci(program: &Path, place: &Workplace, runtime: &str) -> Result<Arc<Host>> {
    let options = OciOptions {
        runtime: runtime.to_owned(),
        rootfs: None,
        helper: program.to_owned(),
        runtime_folder: default_runtime_folder(),
    };
    let backend = move || OciBackend::new(options).map(|backend| Arc::new(backend) as _);
    let host = Arc::new(Host::of(backend, Image::Folder(place.rootfs()))?);
    host.check(WORKLOAD)?;
    Ok(host)
}

/// From the request to the exit status, as everything that is called cold.
pub(super) fn runc_cold(
    program: &Path,
    place: &Workplace,
    plan: Plan,
    progress: &mut Progress,
) -> Result<Beside<Row>> {
    let theirs = contestants::Runc::prepare(place)?.command(WORKLOAD)?;
    theirs.check(WORKLOAD)?;
    let host = oci(program, place, contestants::Runc::PROGRAM)?;
    in_turn(Row::RuncCold, (&Cold::new(host, WORKLOAD), &theirs), plan.sparse.slow, progress)
}

/// With the start of the program and the end of the sandbox.
pub(super) fn runc_command(
    program: &Path,
    place: &Workplace,
    plan: Plan,
    progress: &mut Progress,
) -> Result<Beside<Row>> {
    let store = store(program, place)?;
    let runtime = contestants::Runc::PROGRAM;
    let ours = run("oci", program, &store, &["--backend", "oci", "--runtime", runtime, "--image", NAME])?;
    let theirs = contestants::Runc::prepare(place)?.command(WORKLOAD)?;
    theirs.check(WORKLOAD)?;
    in_turn(Row::RuncCommand, (&ours, &theirs), plan.sparse.slow, progress)
}

pub(super) fn runsc_warm(
    program: &Path,
    place: &Workplace,
    plan: Plan,
    progress: &mut Progress,
) -> Result<Beside<Row>> {
    let peer = contestants::Runsc::prepare(place)?;
    let theirs = peer.command(WORKLOAD)?;
    theirs.check(WORKLOAD)?;
    let ours = Warm::new(oci(program, place, &peer.program().display().to_string())?, WORKLOAD);
    let measured = in_turn(Row::RunscWarm, (&ours, &theirs), plan.sparse.slow, progress);
    ours.end()?;
    measured
}

/// One daemon for both rows of it.
pub(super) struct Docker {
    peer: contestants::Docker,
    host: Arc<Host>,
}

impl Docker {
    pub(super) fn start(program: &Path, place: &Workplace) -> Result<Self> {
        let peer = contestants::Docker::prepare(place)?;
        let options = DockerOptions {
            engine: Engine::Docker,
            host: peer.host().to_owned(),
            image: None,
            store: None,
            folder: place.run("docker-backend"),
            runtime: None,
            helper: program.to_owned(),
            lost_after: LOST_AFTER,
        };
        let backend = move || DockerBackend::new(options).map(|backend| Arc::new(backend) as _);
        let host = Arc::new(Host::of(backend, Image::Named(place.image()))?);
        host.check(WORKLOAD)?;
        Ok(Self { peer, host })
    }

    pub(super) fn exec(&self, plan: Plan, progress: &mut Progress) -> Result<Beside<Row>> {
        let ours = Exec::new(Arc::clone(&self.host), WORKLOAD)?;
        let container = self.peer.container()?;
        let theirs = container.exec(WORKLOAD);
        theirs.check(WORKLOAD)?;
        let measured = in_turn(Row::DockerExec, (&ours, &theirs), plan.sparse.slow, progress);
        ours.end()?;
        measured
    }

    pub(super) fn warm(&self, plan: Plan, progress: &mut Progress) -> Result<Beside<Row>> {
        let ours = Warm::new(Arc::clone(&self.host), WORKLOAD);
        let theirs = self.peer.command(WORKLOAD)?;
        theirs.check(WORKLOAD)?;
        let measured = in_turn(Row::DockerWarm, (&ours, &theirs), plan.sparse.slow, progress);
        ours.end()?;
        measured
    }
}
