//! Jobs: the same attacks through the worker, which bounds time and output and collects artifacts.

use crate::lab::{Lab, limits};
use cofferdam_core::{Cpus, GuestPath, JobResult, Limits};
use cofferdam_worker::artifacts::HostFolder;
use cofferdam_worker::{ArtifactsWanted, Discard, FileIn, JobSpec, Work, cancellation, draw_job_id, run};
use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

/// Runs the probe as a job, with its time limits; artifacts go to a folder of the host, if one is named.
pub(crate) async fn probe(
    lab: &mut Lab,
    argv: &[&str],
    timeout: Duration,
    grace: Duration,
    artifacts: Option<&Path>,
) -> Result<JobResult, String> {
    let bytes = std::fs::read(&lab.probe).map_err(|e| e.to_string())?;
    let mut words = vec![crate::lab::PROBE.to_owned()];
    for word in argv {
        words.push(lab.plants.fill(word, None).map_err(|e| e.to_string())?);
    }
    let id = draw_job_id().map_err(|e| e.to_string())?;
    let mut spec = JobSpec::new(id, Work::Command { argv: words });
    let path = GuestPath::parse("file", crate::lab::PROBE).map_err(|e| e.to_string())?;
    spec.files = vec![FileIn { path, mode: 0o755, content: Box::new(Cursor::new(bytes)) }];
    spec.limits = Limits { timeout, grace, ..limits(Cpus::ONE) };
    if let Some(folder) = artifacts {
        let folder = HostFolder::open(folder).map_err(|e| e.to_string())?;
        spec.artifacts = ArtifactsWanted::Stored(Box::new(folder));
    }
    let (_canceller, cancel) = cancellation();
    let backend = lab.backend().map_err(|e| e.to_string())?;
    run(backend, spec, &mut Discard, cancel).await.map_err(|e| e.to_string())
}
