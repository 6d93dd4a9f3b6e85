//! The words of `worker`.

use super::{CapacityArgs, LogArgs, TlsArgs};
use clap::Args;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
SIGTERM takes no new work, lets what runs end for up to 30 seconds, and exits with 0.

Images are those of this machine's image store, and control has to allow them
(--set backends.images=true there).

Examples:
  cofferdam worker --control http://127.0.0.1:8080 --service-token-file data/service.token
  cofferdam worker --control https://control:8080 --control-ca ca.pem --service-token-file token \\
      --listen 10.0.0.5:8081 --tls-cert cert.pem --tls-key key.pem --label zone=a --slots 16
  cofferdam worker --control http://127.0.0.1:8080 --service-token-file data/service.token \\
      --backend oci --oci-runtime runsc --backend docker --docker-socket /run/docker.sock";

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Address of a control plane; may be repeated
    #[arg(long, value_name = "URL", required = true)]
    pub(crate) control: Vec<String>,

    /// File with the tokens that control is known by
    #[arg(long, value_name = "FILE")]
    pub(crate) service_token_file: PathBuf,

    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    pub(crate) listen: String,

    /// Where control reaches it [default: where it listens]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// Something that jobs may ask for
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) label: Vec<String>,

    #[command(flatten)]
    pub(crate) backends: WorkerBackendArgs,

    #[command(flatten)]
    pub(crate) capacity: CapacityArgs,

    /// Certificates of those who sign control's, in PEM form
    #[arg(long, value_name = "FILE")]
    pub(crate) control_ca: Option<PathBuf>,

    /// For development: takes calls without a token, on loopback only, each of them logged
    #[arg(long)]
    pub(crate) dev_no_auth: bool,

    #[command(flatten)]
    pub(crate) tls: TlsArgs,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// What makes sandboxes besides the native backend.
#[derive(Debug, Args)]
pub(crate) struct WorkerBackendArgs {
    /// Offers oci, docker or podman besides native; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Vec<String>,

    /// The runtime of the oci backend [default: runc]
    #[arg(long, value_name = "NAME")]
    pub(crate) oci_runtime: Option<String>,

    /// Where dockerd listens [default: DOCKER_HOST, or the usual place]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) docker_socket: Option<String>,

    /// Where Podman listens [default: CONTAINER_HOST, or the usual place]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) podman_socket: Option<String>,

    /// Containers of a kind that wait for the next job or session; 0 for none [default: 2]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) waiting: Option<usize>,
}
