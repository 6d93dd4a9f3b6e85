//! Forks where the host's filesystem can share files: by what changes, and with what a copy would have.

use crate::client::Client;
use crate::forks::{AWKWARD, MANIFEST};
use crate::machine::wait_until;
use crate::pausing::{ROOMY, stdout};
use crate::server::{Folder, Server, program};
use crate::sessions::{create, python, shell};
use crate::snapshots::{fork, snapshot};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const MIB: u64 = 1 << 20;

/// Where a server keeps workspaces on disk.
const WORKSPACES: &str = "/var/lib/cofferdam/workspaces";

/// A program that has such a filesystem there, which nobody else sees and which goes with it.
fn with_filesystem(folder: &Path) -> (PathBuf, PathBuf) {
    let (image, script) = (folder.join("xfs"), folder.join("cofferdam"));
    std::fs::File::create(&image).and_then(|file| file.set_len(3 << 30)).expect("an image");
    let made = Command::new("mkfs.xfs").arg("-q").arg(&image).status();
    assert!(made.expect("mkfs.xfs, of xfsprogs").success());
    std::fs::create_dir_all(WORKSPACES).expect("a folder");
    let inner = format!("mount -o loop '{}' {WORKSPACES} && exec \"$0\" \"$@\"", image.display());
    let text = format!(
        "#!/bin/sh\nexec unshare -m sh -c '{}' '{}' \"$@\"\n",
        inner.replace('\'', "'\\''"),
        program().display()
    );
    std::fs::write(&script, text).expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    (script, image)
}

/// Bytes that everything in the filesystem takes up.
fn used(server: &Server) -> u64 {
    let folder = format!("/proc/{}/root{WORKSPACES}", server.id());
    assert!(Command::new("sync").arg("-f").arg(&folder).status().expect("sync").success());
    let told = Command::new("stat").args(["-f", "-c", "%b %f %S", &folder]).output().expect("stat");
    let told = String::from_utf8(told.stdout).expect("numbers");
    let numbers: Vec<u64> = told.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    (numbers[0] - numbers[1]) * numbers[2]
}

const ON_DISK: &str = r#"{"limits":{"memory_bytes":268435456,"disk_bytes":1073741824}}"#;

#[test]
fn a_fork_on_a_filesystem_that_shares_takes_what_changes_and_has_what_a_copy_has() {
    let folder = Folder::new("shared-forks");
    let (script, image) = with_filesystem(folder.path());
    let data = folder.path().join("data");
    let server = Server::start_role(&script, "serve", &data, &ROOMY);
    let client = Client::of(&server);
    let parent = create(&client, ON_DISK);
    let make = "import os\nos.makedirs('a/b'); os.symlink('../x', 'a/b/link'); os.chmod('a', 0o750)\n\
        for i in range(500): open('a/%d' % i, 'w').write(str(i))\n\
        open('large', 'wb').write(os.urandom(100 << 20)); os.utime('large', (1e9, 1e9))\n\
        open('/tmp/left', 'w').write('x'); here = 1";
    python(&client, &parent, make);
    // What it has written is its own to pay for.
    shell(&client, &parent, "sync -f .");
    let before = used(&server);
    let children = fork(&client, &parent, 3);
    for child in &children {
        shell(&client, child, "sync -f .");
    }
    let more = used(&server).saturating_sub(before);
    assert!(more < 16 * MIB, "three forks of 100 MiB took {more} bytes");
    snapshot(&client, &parent, "copied");
    let body = ON_DISK.replacen('{', r#"{"snapshot":"copied","#, 1);
    let copied = create(&client, &body);
    let copied = stdout(&python(&client, &copied, MANIFEST)).to_owned();
    assert!(copied.lines().count() > 500, "{copied}");
    for child in &children {
        assert_eq!(stdout(&python(&client, child, MANIFEST)), copied);
        assert_eq!(stdout(&shell(&client, child, "ls -A /tmp; echo mine > large; id -u")), "1000\n");
    }
    let same = "import os; print(here, os.path.getsize('large'), os.listdir('/tmp'))";
    assert_eq!(stdout(&python(&client, &parent, same)), "1 104857600 ['left']\n");
    // One that has become another is forked as well, and so is a fork of it.
    let grandchild = fork(&client, &children[0], 1).remove(0);
    assert_eq!(stdout(&shell(&client, &grandchild, "cat large; ls a | wc -l")), "mine\n501\n");
    assert_eq!(server.stop(), Some(0));
    wait_until("nothing holds the filesystem", || {
        let holds = Command::new("losetup").arg("-j").arg(&image).output().expect("losetup");
        holds.stdout.is_empty()
    });
}

#[test]
fn what_cannot_be_shared_is_copied() {
    let folder = Folder::new("unshared-forks");
    let (script, _image) = with_filesystem(folder.path());
    let data = folder.path().join("data");
    let server = Server::start_role(&script, "serve", &data, &ROOMY);
    let client = Client::of(&server);
    let parent = create(&client, ON_DISK);
    assert_eq!(stdout(&python(&client, &parent, AWKWARD)), "made\n");
    snapshot(&client, &parent, "awkward");
    let kept = create(&client, &ON_DISK.replacen('{', r#"{"snapshot":"awkward","#, 1));
    let kept = stdout(&python(&client, &kept, MANIFEST)).to_owned();
    for child in fork(&client, &parent, 2) {
        assert_eq!(stdout(&python(&client, &child, MANIFEST)), kept);
    }
    assert_eq!(server.stop(), Some(0));
}
