//! Images of the store on other walls.

use crate::bed::Bed;
use crate::support::program;
use std::process::Command;

/// A store with a root of this machine's own programs, and with what two layers make of it.
fn bed() -> Bed {
    let bed = Bed::new();
    let root = bed.path("root");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/container-root.sh");
    let made = Command::new(script).arg(&root).arg(program()).status().expect("container-root.sh");
    assert!(made.success(), "{made}");
    let upper = bed.tree(
        "upper",
        &[("etc/motd", "from the store\n"), ("opt/.wh..wh..opq", ""), ("usr/share/.wh.empty", "")],
    );
    std::fs::create_dir_all(root.join("opt/below")).expect("a folder");
    let process = serde_json::json!({"Env": ["A=image"], "WorkingDir": "/opt"});
    let image = bed.docker("image.tar", &[root.to_str().expect("text"), &upper], &process);
    bed.ok(&["image", "import", &image, "--name", "app:1"]);
    bed
}

#[test]
fn a_runtimes_container_has_the_images_layers() {
    let bed = bed();
    let script =
        "cat /etc/motd; echo $A; pwd; ls /opt; [ -e /usr/share/empty ] || echo deleted; id -un; touch /etc/x";
    for runtime in ["runc", "runsc"] {
        let words =
            ["run", "--backend", "oci", "--runtime", runtime, "--image", "app:1", "--", "sh", "-c", script];
        let answer = bed.cofferdam(&words);
        assert_eq!(answer.stdout, "from the store\nimage\n/opt\ndeleted\nsandbox\n", "{runtime}: {answer:?}");
        // gVisor looks at the permissions first.
        assert!(answer.stderr.contains("cannot touch '/etc/x'"), "{runtime}: {answer:?}");
    }
    let answer = bed.cofferdam(&["run", "--backend", "oci", "--image", "nowhere:1", "--", "true"]);
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(answer.stderr.contains("nowhere:1") && answer.stderr.contains("image list"), "{answer:?}");
}
