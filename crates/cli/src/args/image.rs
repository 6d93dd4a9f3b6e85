//! The words of `image`.

use super::RemoteArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

pub(crate) const IMAGE_EXAMPLES: &str = "\
Images are kept in /var/lib/cofferdam/images, or where COFFERDAM_IMAGES says.

Examples:
  cofferdam image import ./rootfs --name app:1
  cofferdam image list
  cofferdam run --image app:1 -- cat /etc/os-release";

const IMPORT_EXAMPLES: &str = "\
What it is is seen from what it holds: an archive of docker save, an OCI layout (a folder or an
archive), a root filesystem (a folder, or a tar archive, plain or compressed by gzip or zstd).

Examples:
  cofferdam image import ./rootfs --name app:1
  docker save node:20 -o node.tar && cofferdam image import node.tar --name node:20
  curl -sL https://example.org/root.tar.zst | cofferdam image import /dev/stdin --name app";

const PULL_EXAMPLES: &str = "\
A registry on this machine is spoken to without TLS, every other one with it. What was cut goes on
where it ended when the pull is repeated. Logins of `docker login` and `podman login` are used.
docker-daemon:NAME is an image that dockerd has, or the daemon that DOCKER_HOST or CONTAINER_HOST
names.

Examples:
  cofferdam image pull debian:12
  cofferdam image pull docker-daemon:app:1
  cofferdam image pull registry.example.org/team/app@sha256:0123… --name app:1
  echo $TOKEN | cofferdam image pull ghcr.io/team/app:1 --username me --password-stdin";

const LIST_EXAMPLES: &str = "\
Without --remote it is the store of this machine that is listed.

Examples:
  cofferdam image list
  cofferdam image list --remote --profile python-tools
  cofferdam image list --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  cofferdam image show app:1
  cofferdam image show app:1 --json";

const RM_EXAMPLES: &str = "\
Layers that no other image has are removed with it. One that a sandbox uses stays until later.

Examples:
  cofferdam image rm app:1
  cofferdam image rm sha256:0123456789ab";

const CHECK_EXAMPLES: &str = "\
Runs every tool in a sandbox on the image, and looks for credentials in every layer, also in files
that a later layer deletes. Exit code: 0 if all is there, 1 if something is not.

Examples:
  cofferdam image check app:1
  cofferdam image check app:1 --profile python-tools --json";

const BUILD_EXAMPLES: &str = "\
Needs root, debootstrap and a mirror of Debian; some get tools from PyPI or npm's registry, too,
each file by its digest.

Examples:
  cofferdam image build-profile base-tools
  cofferdam image build-profile python-tools --name python:12 --mirror http://mirror.local/debian";

const REGISTER_EXAMPLES: &str = "\
The image is in the store of the machine that the service runs on. The service tries it for every
profile first, and refuses one that fails, or that has credentials in it.

Examples:
  cofferdam image register python-tools:1 --profile python-tools
  cofferdam image register app:1 --digest sha256:0123… --profile base-tools --capability numpy
  cofferdam image register base-tools:1 --profile base-tools --global";

const UNREGISTER_EXAMPLES: &str = "\
Its layers stay in the store; `cofferdam image rm` there removes them.

Examples:
  cofferdam image unregister img-k3jq5h2aaaaaaaaa";

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Take an image or a root filesystem into the store
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImageImportArgs),
    /// Get an image from a registry or a daemon into the store
    #[command(after_help = PULL_EXAMPLES)]
    Pull(ImagePullArgs),
    /// List the images of the store
    #[command(after_help = LIST_EXAMPLES)]
    List(ImageListArgs),
    /// Show what an image is made of and what it says of itself
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ImageShowArgs),
    /// Remove a name, and what only it had
    #[command(after_help = RM_EXAMPLES)]
    Rm(ImageShowArgs),
    /// Look whether an image has what sandboxes need, and no credentials
    #[command(after_help = CHECK_EXAMPLES)]
    Check(ImageCheckArgs),
    /// Make the image of a profile from Debian's packages
    #[command(after_help = BUILD_EXAMPLES)]
    BuildProfile(ImageBuildArgs),
    /// Register an image with a service, for jobs that ask for a profile
    #[command(after_help = REGISTER_EXAMPLES)]
    Register(ImageRegisterArgs),
    /// Take an image back that was registered with a service
    #[command(after_help = UNREGISTER_EXAMPLES)]
    Unregister(ImageUnregisterArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ImageRegisterArgs {
    /// What it is called there
    #[arg(value_name = "NAME[:TAG]")]
    pub(crate) name: String,

    /// Which image it is [default: the one that has the name in the service's store]
    #[arg(long, value_name = "sha256:DIGITS")]
    pub(crate) digest: Option<String>,

    /// What it has: base-tools, python-tools or another profile; may be repeated
    #[arg(long = "profile", value_name = "PROFILE", required = true)]
    pub(crate) profiles: Vec<String>,

    /// What it can do besides; may be repeated
    #[arg(long = "capability", value_name = "WORD")]
    pub(crate) capabilities: Vec<String>,

    /// Registers it for all tenants, as an operator
    #[arg(long)]
    pub(crate) global: bool,

    /// Registers it although it has credentials in it; that is noted
    #[arg(long)]
    pub(crate) allow_credentials: bool,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImageUnregisterArgs {
    /// The image's id, of `image list --remote`
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImageCheckArgs {
    /// A name, a name with its digest (NAME@sha256:…), or a digest
    #[arg(value_name = "IMAGE")]
    pub(crate) image: String,

    /// What it has to have: python-tools or another profile [default: base-tools]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,

    /// Prints the rows as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImageBuildArgs {
    /// base-tools, python-tools, node-tools, typescript-tools, go-tools, java-tools or secops-tools
    #[arg(value_name = "PROFILE")]
    pub(crate) profile: String,

    /// What the image will be called [default: the profile's name]
    #[arg(long, value_name = "NAME[:TAG]")]
    pub(crate) name: Option<String>,

    /// Where packages come from [default: http://deb.debian.org/debian]
    #[arg(long, value_name = "URL")]
    pub(crate) mirror: Option<String>,

    /// Prints the image as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImageImportArgs {
    /// A folder or an archive
    #[arg(value_name = "ROOT_FOLDER_OR_TAR")]
    pub(crate) source: PathBuf,

    /// What it will be called
    #[arg(long, value_name = "NAME[:TAG]")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) limits: ImageLimitArgs,

    /// Prints the image as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What an image that is taken in may be.
#[derive(Debug, Args)]
pub(crate) struct ImageLimitArgs {
    /// The most that it may be, unpacked [default: 32g]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<String>,

    /// The most files, folders and links that it may have [default: 2000000]
    #[arg(long, value_name = "N")]
    pub(crate) max_entries: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ImagePullArgs {
    /// [REGISTRY/]NAME[:TAG][@sha256:…], or docker-daemon:NAME[:TAG]
    #[arg(value_name = "REF")]
    pub(crate) reference: String,

    /// What it will be called [default: as it is called there]
    #[arg(long, value_name = "NAME[:TAG]")]
    pub(crate) name: Option<String>,

    /// Who logs in
    #[arg(long, value_name = "NAME", requires = "password_stdin")]
    pub(crate) username: Option<String>,

    /// Reads the password from stdin
    #[arg(long, requires = "username")]
    pub(crate) password_stdin: bool,

    /// Speaks without TLS: others on the way can read and change it
    #[arg(long)]
    pub(crate) plain_http: bool,

    #[command(flatten)]
    pub(crate) limits: ImageLimitArgs,

    /// Prints the image as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImageListArgs {
    /// Lists those that are registered with a service, and seen with this key
    #[arg(long)]
    pub(crate) remote: bool,

    /// Only those that are registered for this profile
    #[arg(long, value_name = "PROFILE", requires = "remote")]
    pub(crate) profile: Option<String>,

    /// Address of the service [default: COFFERDAM_URL, or port 8080 here]
    #[arg(long, value_name = "URL", requires = "remote")]
    pub(crate) url: Option<String>,

    /// File with the key [default: the key in COFFERDAM_API_KEY]
    #[arg(long, value_name = "FILE", requires = "remote")]
    pub(crate) key_file: Option<PathBuf>,

    /// Prints the images as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImageShowArgs {
    /// A name, a name with its digest (NAME@sha256:…), or a digest
    #[arg(value_name = "IMAGE")]
    pub(crate) image: String,

    /// Prints the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
