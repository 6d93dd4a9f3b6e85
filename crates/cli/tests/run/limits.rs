//! Limits hold, and running into one is told by what the kernel counted.

use crate::support::leftovers::wait_until_no_disk;
use crate::support::{Folder, run};
use serde_json::Value;

fn hits(result: &Value) -> Vec<&str> {
    let hits = result["limits_hit"].as_array().expect("a list");
    hits.iter().map(|hit| hit["limit"].as_str().expect("a name")).collect()
}

#[test]
fn out_of_memory_is_137_and_says_so() {
    let code = "x = bytearray(300 << 20); print('still here')";
    let answer = run(&["--memory", "64m", "-c", code]);
    assert_eq!(answer.stdout, "");
    answer.says(137, "out of memory: the limit was 64 MiB; see --memory");
    let result = run(&["--json", "--memory", "64m", "-c", code]).json();
    assert_eq!(result["outcome"], serde_json::json!({ "kind": "oom_killed" }));
    assert!(result["exit_code"].is_null());
    assert!(hits(&result).contains(&"memory"), "{result}");
    let peak = result["resource_usage"]["memory_peak_bytes"].as_u64().expect("a number");
    assert!(peak <= 64 << 20, "{peak}");
}

#[test]
fn out_of_memory_in_a_child_ends_the_whole_job() {
    let script = "python3 -c 'x = bytearray(300 << 20)'; sleep 100; echo still here";
    let result = run(&["--json", "--memory", "64m", "--", "sh", "-c", script]).json();
    assert_eq!(result["outcome"]["kind"], "oom_killed");
    assert_eq!(result["stdout"], "");
}

#[test]
fn a_full_workspace_is_no_space_and_not_out_of_memory() {
    let script = "dd if=/dev/zero of=big bs=1M count=500; echo $?; wc -c < big; /bin/echo next process";
    let result = run(&["--json", "--memory", "64m", "--", "sh", "-c", script]).json();
    assert_eq!(result["outcome"], serde_json::json!({ "kind": "exited", "code": 0 }), "{result}");
    assert_eq!(result["stdout"], "1\n33554432\nnext process\n");
    assert!(result["stderr"].as_str().expect("text").contains("No space left on device"));
    assert_eq!(hits(&result), ["disk"]);
}

#[test]
fn workspace_and_tmp_share_one_limit() {
    let script = "dd if=/dev/zero of=/tmp/a bs=1M count=6; dd if=/dev/zero of=/workspace/b bs=1M count=6; \
                  expr $(stat -c %s /tmp/a) + $(stat -c %s /workspace/b)";
    let result = run(&["--json", "--disk", "8m", "--", "sh", "-c", script]).json();
    assert_eq!(result["stdout"], format!("{}\n", 8 << 20), "{result}");
}

#[test]
fn too_many_files_is_no_space_as_well() {
    let code = "import errno\n\
                try:\n    for i in range(10000): open(f'f{i}', 'w').close()\n\
                except OSError as e: print(errno.errorcode[e.errno])";
    let result = run(&["--json", "--disk", "8m", "-c", code]).json();
    assert_eq!(result["stdout"], "ENOSPC\n", "{result}");
    assert_eq!(hits(&result), ["inodes"]);
}

#[test]
fn files_on_disk_may_be_larger_than_memory() {
    let root = Folder::on_disk();
    let script = "dd if=/dev/zero of=big bs=1000000 count=500; wc -c < big; cp big .artifacts/copy; echo $?
        rm .artifacts/copy; echo kept > .artifacts/kept; /bin/echo next process";
    let out = root.path("out");
    let options = ["--memory", "64m", "--disk", "512m", "--workspace-root", &root.path("disks")];
    let result =
        run(&[&["--json", "--artifacts-out", &out], &options[..], &["--", "sh", "-c", script]].concat())
            .json();
    assert_eq!(result["outcome"], serde_json::json!({ "kind": "exited", "code": 0 }), "{result}");
    assert_eq!(result["stdout"], "500000000\n1\nnext process\n", "{result}");
    assert!(result["stderr"].as_str().expect("text").contains("No space left on device"), "{result}");
    assert_eq!(std::fs::read_to_string(root.path("out/kept")).expect("an artifact"), "kept\n");
    assert_eq!(state_of(&result, "disk_limit"), "enforced");
    wait_until_no_disk(&root.0.join("disks"));
}

fn state_of<'r>(result: &'r Value, control: &str) -> &'r str {
    let rows = result["isolation"]["controls"].as_array().expect("a list");
    let row = rows.iter().find(|row| row["control"] == control).expect("a row");
    row["state"].as_str().expect("text")
}

#[test]
fn a_size_that_fits_in_memory_needs_no_disk() {
    let result = run(&["--json", "--disk", "1g", "--", "sh", "-c", "stat -f -c %T /workspace"]).json();
    assert_eq!(result["stdout"], "tmpfs\n", "{result}");
    let result = run(&["--json", "--disk", "1025m", "--", "sh", "-c", "stat -f -c %T /workspace"]).json();
    assert_eq!(result["stdout"], "ext2/ext3\n", "{result}");
}

#[test]
fn no_more_processes_than_allowed() {
    let code = "import os, time\n\
                n = 1\n\
                try:\n    while os.fork(): n += 1\n    time.sleep(100)\n\
                except BlockingIOError: print(n)";
    let result = run(&["--json", "--pids", "20", "-c", code]).json();
    assert_eq!(result["stdout"], "20\n", "{result}");
    assert_eq!(hits(&result), ["pids"]);
    assert_eq!(result["resource_usage"]["pids_peak"], 20);
}

#[test]
fn no_more_cpu_than_allowed() {
    let code = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass";
    let result = run(&["--json", "--cpus", "0.2", "-c", code]).json();
    let percent = result["resource_usage"]["cpu_percent"].as_f64().expect("a number");
    // The quota is for periods of 100 ms; one that has begun may be used up at once.
    assert!(percent < 40.0, "{percent}");
    assert!(hits(&result).contains(&"cpu"), "{result}");
}

#[test]
fn every_wall_stands() {
    let result = run(&["--json", "--", "true"]).json();
    let controls = result["isolation"]["controls"].as_array().expect("a list");
    assert!(controls.len() >= 40, "{}", controls.len());
    // What depends on the kernel, or on the layout of its cgroups.
    let optional = ["landlock", "cgroup_namespace", "devices_limit"];
    let missing: Vec<_> = controls
        .iter()
        .filter(|row| {
            row["state"] != "enforced" && !optional.contains(&row["control"].as_str().expect("text"))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(
        (&result["isolation"]["mode"], &result["isolation"]["backend"]),
        (&"strict".into(), &"native".into())
    );
}
