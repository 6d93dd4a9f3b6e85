//! Languages that sandboxes of the host's image can run. Nothing is started: an interpreter takes longer to
//! say its version than all of the rest.

use super::programs::{INSIDE, find, install};
use super::{degraded, missing, ok};
use cofferdam_core::Check;
use std::path::Path;

const GROUP: &str = "runtimes";

/// Programs, and Debian's packages for them.
const PROGRAMS: [(&str, Option<&str>); 10] = [
    ("python3", Some("python3")),
    ("node", Some("nodejs")),
    ("bash", Some("bash")),
    ("sh", Some("dash")),
    ("ruby", Some("ruby")),
    ("perl", Some("perl")),
    ("go", Some("golang-go")),
    ("java", Some("default-jdk-headless")),
    ("deno", None),
    ("php", Some("php-cli")),
];

/// Debian has no package of it. Its script asks nothing and puts the program where sandboxes see it.
const DENO: &str = "curl -fsSL https://deno.land/install.sh | sudo DENO_INSTALL=/usr/local sh -s -- -y";

/// What of the host is inside.
const IMAGE: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

pub(super) fn checks() -> Vec<Check> {
    PROGRAMS.iter().map(|(name, package)| check(name, *package)).collect()
}

fn check(name: &str, package: Option<&str>) -> Check {
    let fix = || package.map_or_else(|| DENO.to_owned(), install);
    let Some(path) = find(&INSIDE, name) else {
        return missing(GROUP, name, format!("not in {}", INSIDE.join(", ")), fix());
    };
    match path.canonicalize() {
        Ok(real) if is_inside(&real) => ok(GROUP, name, path.display().to_string()),
        Ok(real) => {
            let found = format!("{} leads to {}, which is not in sandboxes", path.display(), real.display());
            degraded(GROUP, name, found, fix())
        }
        Err(error) => degraded(GROUP, name, format!("{}: {error}", path.display()), fix()),
    }
}

fn is_inside(path: &Path) -> bool {
    IMAGE.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::CheckState;

    #[test]
    fn only_what_the_image_holds_counts() {
        assert!(is_inside(Path::new("/usr/lib/jvm/java-17/bin/java")));
        assert!(!is_inside(Path::new("/usrlocal/bin/x")));
        assert!(!is_inside(Path::new("/opt/python/bin/python3")));
    }

    #[test]
    fn there_is_always_a_shell_and_what_is_missing_has_a_fix() {
        assert_eq!(check("sh", Some("dash")).state, CheckState::Ok);
        let none = check("no-such-runtime", None);
        assert_eq!((none.state, none.fix.as_deref()), (CheckState::Missing, Some(DENO)));
    }
}
