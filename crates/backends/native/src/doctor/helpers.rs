//! Other backends' programs. The native backend needs none of them.

use super::identity::Identity;
use super::programs::{find_anywhere, install};
use super::{degraded, missing, ok};
use cofferdam_core::Check;
use cofferdam_linux::features::unix_socket_answers;
use cofferdam_linux::sys::Errno;

const GROUP: &str = "helpers";

pub(super) fn checks(identity: &Identity) -> Vec<Check> {
    let program = |name: &str, fix: String| match find_anywhere(name) {
        Some(path) => ok(GROUP, name, path.display().to_string()),
        None => missing(GROUP, name, "not found", fix),
    };
    vec![
        program("runsc", format!("only for gVisor: {}", install("runsc"))),
        program("runc", format!("only for other backends: {}", install("runc"))),
        program("podman", format!("only for Podman: {}", install("podman"))),
        docker(unix_socket_answers(c"/var/run/docker.sock"), identity),
    ]
}

fn docker(answer: Result<(), Errno>, identity: &Identity) -> Check {
    const NAME: &str = "docker socket";
    const PATH: &str = "/var/run/docker.sock";
    match answer {
        Ok(()) => ok(GROUP, NAME, format!("{PATH} answers")),
        Err(Errno(libc::ENOENT)) => {
            missing(GROUP, NAME, "not found", format!("only for Docker: {}", install("docker.io")))
        }
        Err(errno @ Errno(libc::EACCES)) => {
            let user = identity.name.as_deref().unwrap_or("USER");
            let fix = format!("sudo usermod -aG docker {user}, which makes {user} as good as root");
            degraded(GROUP, NAME, format!("{PATH}: {errno}"), fix)
        }
        Err(errno) => degraded(GROUP, NAME, format!("{PATH}: {errno}"), "sudo systemctl start docker"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::CheckState;

    #[test]
    fn dockers_socket_is_told_by_its_answer() {
        let state = |answer| docker(answer, &Identity::for_tests(1000)).state;
        assert_eq!(state(Ok(())), CheckState::Ok);
        assert_eq!(state(Err(Errno(libc::ENOENT))), CheckState::Missing);
        assert_eq!(state(Err(Errno(libc::EACCES))), CheckState::Degraded);
        assert_eq!(state(Err(Errno(libc::ECONNREFUSED))), CheckState::Degraded);
    }
}
