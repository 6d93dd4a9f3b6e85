//! Imports that cannot end: nothing is left that looks like an image.

use crate::bed::{Bed, tar};
use crate::support::{finish, program, wait_until};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn a_full_disk_is_told_and_leaves_nothing() {
    let bed = Bed::new();
    let large = bed.tree("large", &[("file", &"x".repeat(8 << 20))]);
    let small = bed.tree("small", &[("file", "x")]);
    fs::create_dir(bed.store()).expect("a folder");
    // A small disk, which is gone with the namespace that it is mounted in.
    let script = r#"mount -t tmpfs -o size=4m,mode=0700 none "$2" || exit 99
        "$1" image import "$4" --name small >/dev/null || exit 98
        "$1" image import "$3" --name large; code=$?
        "$1" image list --json; ls "$2/staging" "$2/layers" | wc -l; exit $code"#;
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(program()).arg(bed.store()).args([&large, &small]);
    command.env("COFFERDAM_IMAGES", bed.store());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let answer = finish(command.spawn().expect("unshare starts"));
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(answer.stderr.starts_with("cofferdam: image_store_full: "), "{answer:?}");
    assert!(answer.stdout.contains("small:latest") && !answer.stdout.contains("large"), "{answer:?}");
    // Two headings, an empty line and the one layer of the small image.
    assert!(answer.stdout.ends_with("\n4\n"), "{answer:?}");
}

#[test]
fn a_killed_import_leaves_nothing() {
    let bed = Bed::new();
    let root = bed.tree("root", &[("a", &"x".repeat(1 << 20)), ("b", &"y".repeat(1 << 20))]);
    let archive = bed.path("root.tar");
    tar(&root, &archive, &["."]);
    let bytes = fs::read(&archive).expect("a file");
    let pipe = bed.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("it starts").success());
    let mut import = bed
        .command(&["image", "import", pipe.to_str().expect("text"), "--name", "app"])
        .spawn()
        .expect("it starts");
    let mut writer = OpenOptions::new().write(true).open(&pipe).expect("it is read");
    writer.write_all(&bytes[..bytes.len() / 2]).expect("it is read");
    let staging = bed.store().join("staging");
    let made = || fs::read_dir(&staging).is_ok_and(|mut entries| entries.next().is_some());
    wait_until("something is being made", made);
    import.kill().expect("it runs");
    import.wait().expect("it ends");
    assert_eq!(bed.ok(&["image", "list", "--json"]), "[]\n");
    assert!(made(), "it was killed before it had made anything");
    bed.ok(&["image", "import", archive.to_str().expect("text"), "--name", "app"]);
    assert!(!made());
    assert_eq!(fs::read_dir(bed.store().join("layers")).expect("a folder").count(), 1);
}

#[test]
fn an_image_can_come_through_a_pipe() {
    let bed = Bed::new();
    let root = bed.busybox("root", &[("etc/motd", "piped\n")]);
    let image = bed.docker("image.tar", &[&root], &serde_json::json!({}));
    for (source, name) in [(&image, "image"), (&root, "root")] {
        let script = match name {
            "image" => r#"gzip -c "$2" | "$1" image import /dev/stdin --name "$3""#,
            _ => r#"tar -C "$2" -cf - . | "$1" image import /dev/stdin --name "$3""#,
        };
        let mut command = Command::new("sh");
        command
            .args(["-c", script, "sh"])
            .arg(program())
            .args([source, name])
            .env("COFFERDAM_IMAGES", bed.store());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let answer = finish(command.spawn().expect("it starts"));
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert_eq!(bed.ok(&["run", "--image", name, "--", "cat", "/etc/motd"]), "piped\n");
    }
}
