//! Other walls and other roots, each beside what it stands on: the same image by its own engine or runtime, and an
//! import beside `tar -x`.
//!
//! What somebody types is measured as a whole command. What only a server has, sandboxes that wait and processes in
//! them, is measured from inside this process, as a server would have it; what it is compared with is a whole command
//! all the same, because that is what its users have. The two are done in turn.

mod import;
mod rows;

use std::path::Path;

use serde::Serialize;

use crate::args::Plan;
use crate::beside::Beside;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::workplace::Workplace;

pub(crate) const BACKENDS: &str = "backends";

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct BackendPlan {
    /// The image that is imported.
    pub(crate) image_mib: u64,
    pub(crate) image_files: u64,
    pub(crate) imports: usize,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Row {
    NativeOnImage,
    DockerExec,
    DockerWarm,
    RuncCold,
    /// The same as a whole command.
    RuncCommand,
    RunscWarm,
    Import,
}

impl Row {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::NativeOnImage => "on an image",
            Self::DockerExec => "docker, exec",
            Self::DockerWarm => "docker, warm",
            Self::RuncCold => "runc, cold",
            Self::RuncCommand => "runc, command",
            Self::RunscWarm => "runsc, warm",
            Self::Import => "import",
        }
    }

    /// The whole of what it is compared with.
    pub(crate) fn against(self) -> &'static str {
        match self {
            Self::NativeOnImage => "the same on the image `host`",
            Self::DockerExec => "docker exec",
            Self::DockerWarm => "docker run --rm",
            Self::RuncCold | Self::RuncCommand => "runc run",
            Self::RunscWarm => "runsc run",
            Self::Import => "tar -x and sync",
        }
    }

    /// The same, in a word.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::NativeOnImage => "on host",
            Self::DockerExec => "exec",
            Self::DockerWarm => "run --rm",
            Self::RuncCold | Self::RuncCommand => "runc run",
            Self::RunscWarm => "runsc run",
            Self::Import => "tar -x",
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Backends {
    pub(crate) rows: Vec<Beside<Row>>,
    /// Those without figures, and why.
    pub(crate) failures: Vec<(Row, String)>,
    pub(crate) shared: Option<Shared>,
}

/// A second image that has all layers of a first one, and one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Shared {
    /// What the store's disk takes for the first.
    pub(crate) first_bytes: u64,
    /// What it takes more with the second.
    pub(crate) second_bytes: u64,
    /// What is new in the second.
    pub(crate) new_bytes: u64,
}

impl Shared {
    pub(crate) fn ratio(self) -> f64 {
        self.second_bytes as f64 / self.new_bytes as f64
    }
}

/// A row that cannot be measured does not take the others with it; a target without a figure fails the run.
pub(crate) fn measure(program: &Path, place: &Workplace, plan: Plan, progress: &mut Progress) -> Backends {
    let (mut found, mut shared) = (Vec::new(), None);
    found.push((Row::NativeOnImage, rows::native_on_image(program, place, plan, progress)));
    found.push((Row::RuncCold, rows::runc_cold(program, place, plan, progress)));
    found.push((Row::RuncCommand, rows::runc_command(program, place, plan, progress)));
    match rows::Docker::start(program, place) {
        Ok(docker) => {
            found.push((Row::DockerExec, docker.exec(plan, progress)));
            found.push((Row::DockerWarm, docker.warm(plan, progress)));
        }
        Err(failure) => {
            found.push((Row::DockerExec, Err(Failure::new(failure.to_string()))));
            found.push((Row::DockerWarm, Err(failure)));
        }
    }
    found.push((Row::RunscWarm, rows::runsc_warm(program, place, plan, progress)));
    let imported = import::measure(program, place, plan.backends, progress).map(|(beside, of_two)| {
        shared = Some(of_two);
        beside
    });
    found.push((Row::Import, imported));
    let mut backends = Backends { rows: Vec::new(), failures: Vec::new(), shared };
    for (row, measured) in found {
        match measured {
            Ok(beside) => backends.rows.push(beside),
            Err(failure) => backends.failures.push((row, failure.to_string())),
        }
    }
    backends
}
