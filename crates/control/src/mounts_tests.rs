//! What of the host a request may have mounted.

use super::*;
use serde_json::{Value, json};

fn path(text: &str) -> HostPath {
    HostPath::parse("path", text).expect("a path")
}

fn settings() -> MountSettings {
    let root = |text, read_only| MountRoot { path: path(text), read_only };
    MountSettings {
        roots: vec![root("/srv/data", true), root("/srv/out", false)],
        projects: BTreeMap::from([
            ("ten-a".to_owned(), path("/home/a")),
            ("ten-b".to_owned(), path("/home/b")),
        ]),
    }
}

/// What is left of `sandbox`, or what is said of it.
fn settle(tenant: &str, sandbox: Value) -> std::result::Result<Value, String> {
    let mut sandbox: SandboxRequest = serde_json::from_value(sandbox).expect("a sandbox");
    settings().settle(tenant, &mut sandbox).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(sandbox).expect("JSON"))
}

fn mounts(mounts: Value) -> std::result::Result<Value, String> {
    settle("ten-a", json!({"mounts": mounts})).map(|sandbox| sandbox["mounts"].clone())
}

#[test]
fn a_mount_is_read_only_unless_both_say_otherwise() {
    let one = |source: &str, read_only: Value| {
        let mut mount = json!({"source": source, "target": "/in"});
        if !read_only.is_null() {
            mount["read_only"] = read_only;
        }
        mounts(json!([mount])).map(|mounts| mounts[0]["read_only"].clone())
    };
    assert_eq!(one("/srv/data/x", Value::Null), Ok(json!(true)));
    assert_eq!(one("/srv/data", json!(true)), Ok(json!(true)));
    assert_eq!(one("/srv/out", Value::Null), Ok(json!(true)));
    assert_eq!(one("/srv/out/x", json!(false)), Ok(json!(false)));
    for source in ["/srv/data/x", "/home/a"] {
        let error = one(source, json!(false)).expect_err("it may only be read");
        assert!(error.contains("sandbox.mounts[0].read_only") && error.contains(source), "{error}");
    }
}

#[test]
fn what_is_outside_of_the_roots_is_denied_by_name() {
    for source in ["/etc", "/", "/srv", "/srv/database", "/srv/data2/x", "/home/b", "/home/b/secret"] {
        let error =
            mounts(json!([{"source": "/srv/data", "target": "/a"}, {"source": source, "target": "/b"}]));
        let error = error.expect_err(source);
        assert!(
            error.contains("sandbox.mounts[1].source") && error.contains(&format!("{source:?}")),
            "{error}"
        );
    }
    // Each tenant's project is its own.
    assert!(mounts(json!([{"source": "/home/a/src", "target": "/b"}])).is_ok());
}

#[test]
fn what_is_wrong_is_said_with_its_field_and_value() {
    let target = |target: &str| json!([{"source": "/srv/data", "target": target}]);
    for (wanted, field, value) in [
        (target("data"), "sandbox.mounts[0].target", "\"data\""),
        (target("/a/../b"), "sandbox.mounts[0].target", "\"/a/../b\""),
        (target("/proc"), "sandbox.mounts[0].target", "\"/proc\""),
        (target("/proc/self"), "sandbox.mounts[0].target", "\"/proc/self\""),
        (target("//sys/fs"), "sandbox.mounts[0].target", "\"//sys/fs\""),
        (target("/dev/shm"), "sandbox.mounts[0].target", "\"/dev/shm\""),
        (target("/"), "sandbox.mounts[0].target", "\"/\""),
        (target("/run/secrets"), "sandbox.mounts[0].target", "\"/run/secrets\""),
        (target("/.cofferdam"), "sandbox.mounts[0].target", "\"/.cofferdam\""),
        (target("/workspace/"), "sandbox.mounts[0].target", "\"/workspace\""),
        (target("/tmp"), "sandbox.mounts[0].target", "\"/tmp\""),
        (
            json!([{"source": "/srv/data", "target": "/a"}, {"source": "/srv/out", "target": "/a/."}]),
            "sandbox.mounts[1].target",
            "\"/a/.\"",
        ),
        (
            json!([{"source": "/srv/data", "target": "/a"}, {"source": "/srv/out", "target": "/a/b"}]),
            "sandbox.mounts[1].target",
            "\"/a/b\"",
        ),
        (
            json!([{"source": "/srv/data", "target": "/a/b/c"}, {"source": "/srv/out", "target": "/a"}]),
            "sandbox.mounts[1].target",
            "\"/a\"",
        ),
        (json!([{"source": "data", "target": "/a"}]), "sandbox.mounts[0].source", "\"data\""),
        (
            json!([{"source": "/srv/data/../../etc", "target": "/a"}]),
            "sandbox.mounts[0].source",
            "\"/srv/data/../../etc\"",
        ),
    ] {
        let error = mounts(wanted.clone()).expect_err("it is refused");
        assert!(error.starts_with(field) && error.contains(value), "{wanted}: {error}");
    }
    let many: Vec<_> = (0..33).map(|i| json!({"source": "/srv/data", "target": format!("/a{i}")})).collect();
    assert!(mounts(json!(many)).unwrap_err().contains("at most 32"));
    for start in ["app", "/app/..", "/proc/1", "/", "/run/x"] {
        let error = settle("ten-c", json!({"workdir": start})).expect_err(start);
        assert!(error.starts_with("sandbox.workdir") && error.contains(&format!("{start:?}")), "{error}");
    }
}

#[test]
fn below_the_jobs_own_room_and_anywhere_else_may_be_mounted() {
    for target in ["/workspace/data", "/tmp/x", "/opt/data", "/procession"] {
        let settled = mounts(json!([{"source": "/srv//data/", "target": target}])).expect(target);
        assert_eq!(settled, json!([{"source": "/srv/data", "target": target, "read_only": true}]));
    }
}

#[test]
fn without_mounts_it_is_the_tenants_project_or_the_jobs_own_workspace() {
    // A tenant without a project.
    for sandbox in [json!({}), json!({"workdir": "/app"}), json!({"workdir": "/workspace/x"})] {
        assert_eq!(settle("ten-c", sandbox.clone()), Ok(sandbox));
    }
    let mounted = |target: &str| json!([{"source": "/home/a", "target": target, "read_only": true}]);
    let expected = json!({"workdir": "/project", "mounts": mounted("/project")});
    assert_eq!(settle("ten-a", json!({})), Ok(expected));
    let expected = json!({"workdir": "/app", "mounts": mounted("/app")});
    assert_eq!(settle("ten-a", json!({"workdir": "/app"})), Ok(expected));
    // It never takes the place of what the job may write to.
    let expected = json!({"workdir": "/workspace", "mounts": mounted("/project")});
    assert_eq!(settle("ten-a", json!({"workdir": "/workspace"})), Ok(expected));
    assert!(settle("ten-a", json!({"workdir": "/run"})).is_err());
}
