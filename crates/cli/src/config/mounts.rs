//! How folders of the machine are written that jobs may mount.

use super::kinds::{Kind, Words};
use cofferdam_core::{HostPath, MountRoot, TenantId};
use std::collections::BTreeMap;
use toml::de::DeValue;

/// What is the kernel's is no folder to hand out, and everything is too much.
const NEVER: [&str; 3] = ["/proc", "/sys", "/dev"];

fn folder(text: &str) -> Result<HostPath, String> {
    let path = HostPath::parse("", text).map_err(|error| error.fix)?;
    if path.as_str() == "/" {
        return Err("/ is the whole machine; name folders in it".to_owned());
    }
    let is_kernels =
        |folder: &&str| HostPath::parse("", folder).is_ok_and(|outer| path.below(&outer).is_some());
    match NEVER.iter().find(|folder| is_kernels(folder)) {
        Some(folder) => Err(format!("{folder} is never mounted")),
        None => Ok(path),
    }
}

/// `["/srv/data", "/srv/out:rw"]`; as text with commas between.
pub(crate) struct Roots;

impl Kind for Roots {
    type Value = Vec<MountRoot>;
    const WRITTEN: &'static str = "paths such as [\"/srv/data\", \"/srv/out:rw\"]";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        Words::toml(value)
    }

    fn parse(text: &str) -> Result<Vec<MountRoot>, String> {
        let mut roots: Vec<MountRoot> = Vec::new();
        for word in Words::parse(text)? {
            let (path, read_only) = match (word.strip_suffix(":rw"), word.strip_suffix(":ro")) {
                (Some(path), _) => (path, false),
                (None, Some(path)) => (path, true),
                (None, None) => (&*word, true),
            };
            let path = folder(path)?;
            if roots.iter().any(|root| root.path == path) {
                return Err(format!("{path} is there twice"));
            }
            roots.push(MountRoot { path, read_only });
        }
        Ok(roots)
    }

    fn show(value: &Vec<MountRoot>) -> String {
        let one = |root: &MountRoot| format!("{}{}", root.path, if root.read_only { "" } else { ":rw" });
        value.iter().map(one).collect::<Vec<_>>().join(",")
    }
}

/// `["ten-…=/srv/project"]`; as text with commas between.
pub(crate) struct Projects;

impl Kind for Projects {
    type Value = BTreeMap<String, HostPath>;
    const WRITTEN: &'static str = "tenants and paths such as [\"ten-aaaaaaaaaaaaaaaa=/srv/project\"]";

    fn toml(value: &DeValue<'_>) -> Option<String> {
        Words::toml(value)
    }

    fn parse(text: &str) -> Result<Self::Value, String> {
        let mut projects = BTreeMap::new();
        for word in Words::parse(text)? {
            let Some((tenant, path)) = word.split_once('=') else {
                return Err(format!("write {word:?} as TENANT=PATH"));
            };
            TenantId::parse("", tenant)
                .map_err(|error| format!("{tenant:?} is no tenant's id: {}", error.fix))?;
            if projects.insert(tenant.to_owned(), folder(path)?).is_some() {
                return Err(format!("{tenant} is there twice"));
            }
        }
        Ok(projects)
    }

    fn show(value: &Self::Value) -> String {
        value.iter().map(|(tenant, path)| format!("{tenant}={path}")).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_shown_again() {
        let roots = Roots::parse("/srv/data, /srv//out:rw,/a:ro").unwrap();
        assert_eq!(Roots::show(&roots), "/srv/data,/srv/out:rw,/a");
        let projects = Projects::parse("ten-baaaaaaaaaaaaaaa=/srv/b/,ten-aaaaaaaaaaaaaaaa=/srv/a").unwrap();
        assert_eq!(Projects::show(&projects), "ten-aaaaaaaaaaaaaaaa=/srv/a,ten-baaaaaaaaaaaaaaa=/srv/b");
        assert!(Roots::parse("").unwrap().is_empty() && Projects::parse("").unwrap().is_empty());
    }

    #[test]
    fn what_no_job_may_have_is_refused() {
        for wrong in ["/", "/proc", "/proc/1", "/sys", "/dev/shm", "srv", "/srv/../etc", "/a,/a:rw", "/:rw"] {
            assert!(Roots::parse(wrong).is_err(), "{wrong}");
        }
        for wrong in ["/srv", "=/srv", "default=/srv", "T=srv", "T=/", "T=/x,T=/y"] {
            assert!(Projects::parse(&wrong.replace('T', "ten-aaaaaaaaaaaaaaaa")).is_err(), "{wrong}");
        }
    }
}
