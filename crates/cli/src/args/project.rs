//! The words of `job test` and `job build`.

use super::{JobRunArgs, RemoteArgs};
use clap::Args;
use std::path::PathBuf;

pub(super) const TEST_EXAMPLES: &str = "\
The folder is uploaded, and the tool is told from its files unless --tool names it: cargo, go, jest,
node, pytest, tap, unittest, or junit with a command of yours.

Exit code: 0 where all tests passed and every file is as expected, 1 where not, or where that is not
known; 125 where the service failed or the job could not be run.

Examples:
  cofferdam job test .
  cofferdam job test ./project --json | jq .result.report.counts
  cofferdam job test . --tool tap -- sh tests/run.sh
  cofferdam job test . --tool junit --report out.xml -- ./gradlew test
  cofferdam job test . --expect out.txt=golden/out.txt";

pub(super) const BUILD_EXAMPLES: &str = "\
The folder is uploaded, and the tool is told from its files unless --tool names it: cargo, go, tsc,
make, cc or javac. What the build puts into .artifacts is kept; `job artifacts` gets it.

Exit code: 0 where it was built and every file is as expected, 1 where not; 125 where the service
failed or the job could not be run.

Examples:
  cofferdam job build .
  cofferdam job build ./project --tool make -- make -j2 all
  cofferdam job build . --expect version.txt=golden/version.txt";

/// A project, what is done with it, and within which limits.
#[derive(Debug, Default, Args)]
pub(crate) struct JobProjectArgs {
    /// Folder of the project
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,

    /// A command in the place of the tool's own
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,

    /// The tool [default: told from the project's files]
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,

    /// Where the command leaves its report, if it does not print it
    #[arg(long, value_name = "PATH")]
    pub(crate) report: Option<String>,

    /// A file that is to be as a file here; may be repeated
    #[arg(long, value_name = "PATH=FILE")]
    pub(crate) expect: Vec<String>,

    /// Shows what the tool prints, as it comes
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Ends the job after this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) timeout: Option<String>,

    /// Memory limit
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) memory: Option<String>,

    /// Space for files
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) disk: Option<String>,

    /// CPUs that may be used
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) cpus: Option<String>,

    /// Processes and threads that may exist at once
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) pids: Option<String>,

    /// Image that has the tool, where the service allows it
    #[arg(long, value_name = "NAME")]
    pub(crate) image: Option<String>,

    /// Sets an environment variable
    #[arg(short, long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(crate) env: Vec<String>,

    /// Your own id for what the job serves
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) task_id: Option<String>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

impl JobProjectArgs {
    /// The part that `job run` has, too.
    pub(crate) fn as_job_run(&self) -> JobRunArgs {
        JobRunArgs {
            memory: self.memory.clone(),
            disk: self.disk.clone(),
            cpus: self.cpus.clone(),
            pids: self.pids.clone(),
            ..JobRunArgs::default()
        }
    }
}
