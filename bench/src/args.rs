//! The command line, parsed once into settled values. By hand, so that a benchmark builds in seconds.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::backends::{BACKENDS, BackendPlan};
use crate::contestants;
use crate::failure::{Failure, Result};
use crate::in_process::IDLE;
use crate::schedule::Mode;
use crate::service::SERVICE;
use crate::sessions::{SESSIONS, SessionPlan};
use crate::store::{STORE, StorePlan};

pub(crate) const USAGE: &str = "\
Times whole commands and sandboxes made in this process, side by side on one root filesystem. Run bench/setup.sh (as root) once before.

usage: cofferdam-bench [options]
  --cofferdam PATH     the release binary under test (needed unless --only leaves it out)
  --only NAME,…        bare, bwrap, cofferdam, cold, warm, ahead, runc, podman, docker, runsc, idle, service, sessions, backends, store; default: all
  --samples N          back-to-back samples of the fast ones (default 1000; the slow get 3 %)
  --sparse-samples N   samples of the fast ones at one every 300 ms (default 100; the slow get 20 %)
  --store-jobs N       finished jobs in the large store, with ten audit events each (default 1000000)
  --sessions N         sessions open at once (default 500)
  --tree-mib N         files of a session that is forked (default 100)
  --tree-files N       so many of them, where they are not one (default 10000)
  --blob-mib N         the file that is sent to a session and fetched (default 512)
  --image-mib N        the image that is imported (default 1024)
  --image-files N      so many files in it (default 20000)
  --quick              a tenth of everything, to see that it works; its verdicts are noisy
  --json OUT           every figure, with facts about the machine
  --markdown OUT       the tables as a document
  --help

exit code: 0 all targets met, 1 a target missed, 2 the benchmark itself failed";

#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) cofferdam: Option<PathBuf>,
    pub(crate) only: Vec<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) markdown: Option<PathBuf>,
    pub(crate) plan: Plan,
}

impl Args {
    pub(crate) fn asks_for(&self, name: &str) -> bool {
        self.only.iter().any(|asked| asked == name)
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Plan {
    pub(crate) back_to_back: Rounds,
    pub(crate) sparse: Rounds,
    #[serde(rename = "throughput_window_ms", serialize_with = "as_millis")]
    pub(crate) throughput_window: Duration,
    /// Idle sandboxes at once.
    pub(crate) idle: usize,
    pub(crate) store: StorePlan,
    pub(crate) sessions: SessionPlan,
    pub(crate) backends: BackendPlan,
}

impl Plan {
    pub(crate) fn rounds(&self, mode: Mode) -> Rounds {
        match mode {
            Mode::BackToBack => self.back_to_back,
            Mode::Sparse => self.sparse,
        }
    }
}

/// Samples for each contestant of a pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Rounds {
    pub(crate) fast: usize,
    pub(crate) slow: usize,
}

/// Below this, a slow contestant's median is one lucky run.
const SLOW_MIN: usize = 3;

impl Rounds {
    fn new(fast: usize, slow_percent: usize) -> Self {
        Self { fast, slow: (fast * slow_percent / 100).max(SLOW_MIN).min(fast) }
    }
}

fn as_millis<S: serde::Serializer>(window: &Duration, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_u64(window.as_millis() as u64)
}

/// None when help was asked for.
pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Option<Args>> {
    let (mut cofferdam, mut only, mut json, mut markdown) = (None, None, None, None);
    let (mut samples, mut sparse_samples, mut store_jobs, mut quick) = (None, None, None, false);
    let (mut sessions, mut tree_mib, mut tree_files, mut blob_mib) = (None, None, None, None);
    let (mut image_mib, mut image_files) = (None, None);
    let mut words = words;
    while let Some(flag) = words.next() {
        let mut value = || words.next().ok_or_else(|| Failure::new(format!("{flag} needs a value")));
        match flag.as_str() {
            "--help" | "-h" => return Ok(None),
            "--quick" => quick = true,
            "--cofferdam" => cofferdam = Some(PathBuf::from(value()?)),
            "--json" => json = Some(PathBuf::from(value()?)),
            "--markdown" => markdown = Some(PathBuf::from(value()?)),
            "--only" => only = Some(names(&value()?)?),
            "--samples" => samples = Some(count(&flag, &value()?)?),
            "--store-jobs" => store_jobs = Some(count(&flag, &value()?)? as u64),
            "--sessions" => sessions = Some(count(&flag, &value()?)?),
            "--tree-mib" => tree_mib = Some(count(&flag, &value()?)? as u64),
            "--tree-files" => tree_files = Some(count(&flag, &value()?)? as u64),
            "--blob-mib" => blob_mib = Some(count(&flag, &value()?)? as u64),
            "--image-mib" => image_mib = Some(count(&flag, &value()?)? as u64),
            "--image-files" => image_files = Some(count(&flag, &value()?)? as u64),
            "--sparse-samples" => sparse_samples = Some(count(&flag, &value()?)?),
            _ => return Err(Failure::new(format!("unknown argument {flag:?}; see --help"))),
        }
    }
    let only = only.unwrap_or_else(|| known().map(String::from).collect());
    let needs_binary = |name: &String| ["cofferdam", SERVICE, SESSIONS, BACKENDS].contains(&name.as_str());
    if cofferdam.is_none() && only.iter().any(needs_binary) {
        let fix =
            "--cofferdam PATH is needed, or an --only without cofferdam, service, sessions and backends";
        return Err(Failure::new(fix));
    }
    let mut plan = plan(samples, sparse_samples, quick);
    plan.store.jobs = store_jobs.unwrap_or(plan.store.jobs);
    let given = plan.sessions;
    plan.sessions = SessionPlan {
        sessions: sessions.unwrap_or(given.sessions),
        tree_mib: tree_mib.unwrap_or(given.tree_mib),
        tree_files: tree_files.unwrap_or(given.tree_files),
        blob_mib: blob_mib.unwrap_or(given.blob_mib),
        ..given
    };
    plan.backends.image_mib = image_mib.unwrap_or(plan.backends.image_mib);
    plan.backends.image_files = image_files.unwrap_or(plan.backends.image_files);
    Ok(Some(Args { cofferdam, only, json, markdown, plan }))
}

fn plan(samples: Option<usize>, sparse_samples: Option<usize>, quick: bool) -> Plan {
    let divisor = if quick { 10 } else { 1 };
    Plan {
        back_to_back: Rounds::new(samples.unwrap_or(1_000 / divisor), 3),
        sparse: Rounds::new(sparse_samples.unwrap_or(100 / divisor), 20),
        throughput_window: Duration::from_millis(if quick { 500 } else { 4_000 }),
        idle: if quick { 200 } else { 1_000 },
        store: StorePlan {
            jobs: if quick { 10_000 } else { 1_000_000 },
            samples: samples.unwrap_or(1_000 / divisor),
        },
        sessions: SessionPlan {
            sessions: 500 / divisor,
            tree_mib: if quick { 20 } else { 100 },
            tree_files: if quick { 2_000 } else { 10_000 },
            forks: if quick { 5 } else { 20 },
            blob_mib: if quick { 64 } else { 512 },
            transfers: 5,
        },
        backends: BackendPlan {
            image_mib: if quick { 64 } else { 1_024 },
            image_files: if quick { 1_000 } else { 20_000 },
            imports: if quick { 3 } else { 5 },
        },
    }
}

/// Everything that can be asked for.
fn known() -> impl Iterator<Item = &'static str> {
    contestants::NAMES.into_iter().chain([IDLE, SERVICE, SESSIONS, BACKENDS, STORE])
}

fn names(list: &str) -> Result<Vec<String>> {
    let unknown = |name: &&str| !known().any(|known| known == *name);
    if let Some(name) = list.split(',').find(unknown) {
        return Err(Failure::new(format!(
            "--only: no contestant {name:?}; there are {}",
            known().collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(list.split(',').map(String::from).collect())
}

fn count(flag: &str, text: &str) -> Result<usize> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Failure::new(format!("{flag}: {text:?} is not a number above 0"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Args>> {
        parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn the_default_is_everything_at_full_length() {
        let args = parsed("--cofferdam /x").unwrap().unwrap();
        assert!(args.only.iter().eq(known().collect::<Vec<_>>().iter()));
        assert_eq!(args.plan.idle, 1_000);
        assert_eq!(args.plan.back_to_back, Rounds { fast: 1_000, slow: 30 });
        assert_eq!(args.plan.sparse, Rounds { fast: 100, slow: 20 });
    }

    #[test]
    fn quick_yields_to_an_explicit_count() {
        let plan = parsed("--only bare --quick --samples 7").unwrap().unwrap().plan;
        assert_eq!(plan.back_to_back, Rounds { fast: 7, slow: 3 });
        assert_eq!(plan.sparse, Rounds { fast: 10, slow: 3 });
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_value() {
        for (line, part) in [
            ("", "--cofferdam PATH is needed"),
            ("--only bare,lxc", "\"lxc\""),
            ("--only bare --samples 0", "\"0\""),
            ("--only bare --samples", "needs a value"),
            ("--fast", "\"--fast\""),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(part), "{line:?}: {error}");
        }
    }
}
