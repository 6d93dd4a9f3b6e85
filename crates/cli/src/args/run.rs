//! The words of `cofferdam run`.

use clap::Args;
use std::path::PathBuf;

pub(super) const RUN_EXAMPLES: &str = "\
Exit code: that of the command; 124 timed out, 125 cofferdam itself failed, 126 cannot be executed,
127 not found, 128+n ended by signal n, 137 out of memory (and it says so).

Examples:
  cofferdam run -c 'print(\"hello\")'
  cofferdam run --lang node -c 'console.log(process.argv.slice(1))' one two
  cofferdam run --timeout 10s --memory 512m script.py --flag
  cofferdam run --file data.csv --artifacts-out out -- sort -o .artifacts/sorted.csv data.csv
  echo hello | cofferdam run -i -- tr a-z A-Z
  cofferdam run -t -- bash
  cofferdam run --backend docker --image debian:12 -- cat /etc/os-release
  cofferdam run --backend oci --runtime runsc --rootfs ./root -- uname -a";

pub(super) const RUN_USAGE: &str = "\
cofferdam run [OPTIONS] -c CODE [ARGS]...
       cofferdam run [OPTIONS] FILE [ARGS]...
       cofferdam run [OPTIONS] -- COMMAND [ARGS]...";

#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// Code to run; Python unless --lang says otherwise
    #[arg(short = 'c', long, value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) code: Option<String>,

    /// A file to run and its arguments, or the arguments for the code
    // The first word ends our own options. The parser would take an unknown option for one: `run::work`
    // refuses that.
    #[arg(value_name = "FILE", num_args = 0.., allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,

    /// A command and its arguments, or further arguments
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,

    /// Language: python, node, bash, sh, ruby, perl, go, java, deno or php
    #[arg(short, long, value_name = "L")]
    pub(crate) lang: Option<String>,

    /// Ends the job after this time [default: 5m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) timeout: Option<String>,

    /// Time between asking and killing, at most 30s [default: 2s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) grace: Option<String>,

    /// Memory limit [default: 2g]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) memory: Option<String>,

    /// Space for files; more than half of the memory (or 1g) is kept on disk
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) disk: Option<String>,

    /// CPUs that may be used [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) cpus: Option<String>,

    /// Processes and threads that may exist at once [default: 100]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) pids: Option<String>,

    /// Network: none or restricted [default: none]
    #[arg(long, value_name = "POLICY")]
    pub(crate) network: Option<String>,

    /// Sets an environment variable
    #[arg(short, long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(crate) env: Vec<String>,

    /// Puts a file into the sandbox; its place is taken from /workspace
    #[arg(short, long, value_name = "FILE[:PLACE]")]
    pub(crate) file: Vec<String>,

    /// Keeps what the job leaves in $CYNODE_ARTIFACTS_DIR
    #[arg(short = 'o', long, value_name = "DIR")]
    pub(crate) artifacts_out: Option<PathBuf>,

    /// Working directory inside [default: /workspace]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) workdir: Option<String>,

    /// An image of the store, or of the daemon [default: host, this machine]
    #[arg(long, value_name = "NAME", conflicts_with = "rootfs")]
    pub(crate) image: Option<String>,

    /// A folder to use as the root filesystem
    #[arg(long, value_name = "DIR")]
    pub(crate) rootfs: Option<PathBuf>,

    /// The backend: native, oci, docker or podman [default: native]
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,

    /// The runtime that makes the container, such as runc or runsc
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,

    /// Where the daemon of docker or podman listens
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<String>,

    /// Lets the job change its root filesystem, for itself
    #[arg(long)]
    pub(crate) writable_root: bool,

    /// Where workspaces on disk are kept
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace_root: Option<PathBuf>,

    /// strict, or best-effort to run with controls missing [default: strict]
    #[arg(long, value_name = "MODE")]
    pub(crate) isolation: Option<String>,

    /// Passes standard input on
    #[arg(short = 'i', long)]
    pub(crate) stdin: bool,

    /// Gives the job a terminal
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) tty: bool,

    /// Prints the result as JSON, and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    /// Your own id for what the job serves
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) task_id: Option<String>,
}
