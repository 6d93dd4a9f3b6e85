//! Files between host and sandbox. Names and links inside are chosen by code that nobody trusts.

use super::support::*;
use crate::{Backend, EntryKind};

pub async fn written_files_read_the_same(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let content: Vec<u8> = (0..=255).collect();
    for file in
        ["/workspace/file", "/workspace/ünïcödé 漢字", "/workspace/line\nbreak", "/workspace/-n", "/tmp/file"]
    {
        assert_eq!(write(&*sandbox, file, 0o644, &content).await.expect(file), 256);
        assert_eq!(read(&*sandbox, file).await.expect(file), content);
    }
}

pub async fn files_move_between_host_and_process(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    write(&*sandbox, "/workspace/in", 0o644, b"from the host\n").await.expect("a file");
    assert_eq!(
        sh_ok(&*sandbox, "cat in; echo from the process > out; cp in /tmp/in").await,
        "from the host\n"
    );
    assert_eq!(read(&*sandbox, "/workspace/out").await.expect("a file"), b"from the process\n");
    assert_eq!(read(&*sandbox, "/tmp/in").await.expect("a file"), b"from the host\n");
}

pub async fn parents_are_made(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    write(&*sandbox, "/workspace/a/b/c/file", 0o644, b"x").await.expect("a file");
    assert_eq!(sh_ok(&*sandbox, "cat a/b/c/file; echo y > a/b/new; stat -c %u a/b/c").await, "x1000\n");
}

pub async fn modes_are_kept(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    for mode in [0o644, 0o600, 0o755, 0o444] {
        let file = format!("/workspace/{mode:o}");
        write(&*sandbox, &file, mode, b"x").await.expect("a file");
        assert_eq!(sh_ok(&*sandbox, &format!("stat -c %a {file}")).await, format!("{mode:o}\n"));
    }
}

pub async fn writing_replaces(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    write(&*sandbox, "/workspace/file", 0o644, b"something longer").await.expect("a file");
    write(&*sandbox, "/workspace/file", 0o600, b"short").await.expect("a file in its place");
    assert_eq!(sh_ok(&*sandbox, "cat file; stat -c ' %a' file").await, "short 600\n");

    sh_ok(&*sandbox, "rm file; echo theirs > file; chmod 444 file; mkdir folder").await;
    write(&*sandbox, "/workspace/file", 0o644, b"ours").await.expect("a file in the place of theirs");
    assert_eq!(read(&*sandbox, "/workspace/file").await.expect("a file"), b"ours");
    assert_refused("a folder in the way", write(&*sandbox, "/workspace/folder", 0o644, b"x").await);
}

pub async fn big_files_are_whole(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let content: Vec<u8> = (0..8 * MIB).map(|i| (i % 251) as u8).collect();
    assert_eq!(write(&*sandbox, "/workspace/big", 0o644, &content).await.expect("a file"), 8 * MIB);
    assert_eq!(sh_ok(&*sandbox, "wc -c < big; cp big copy").await.trim(), (8 * MIB).to_string());
    let copy = read(&*sandbox, "/workspace/copy").await.expect("a file");
    assert!(copy == content, "{} bytes came back, or others", copy.len());
}

pub async fn empty_files_are_files(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    assert_eq!(write(&*sandbox, "/workspace/empty", 0o644, b"").await.expect("a file"), 0);
    assert_eq!(read(&*sandbox, "/workspace/empty").await.expect("a file"), b"");
    sh_ok(&*sandbox, "test -f empty && ! test -s empty").await;
}

pub async fn missing_files_are_not_found(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    for file in ["/workspace/missing", "/workspace/missing/file", "/missing/file"] {
        assert_not_found(file, read(&*sandbox, file).await);
        assert_not_found(file, sandbox.list_files(&path(file), 10).await);
    }
}

pub async fn lists_show_kinds_and_sizes(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let script = r#"mkdir list; cd list
        printf 12345 > file; : > empty; : > .hidden; mkdir folder; ln -s /etc/passwd link; mkfifo fifo
        : > "$(printf 'bytes\377')""#;
    sh_ok(&*sandbox, script).await;
    let entries = sandbox.list_files(&path("/workspace/list"), 100).await.expect("a list");
    let mut seen: Vec<_> = entries.iter().map(|entry| (entry.name.as_slice(), entry.kind)).collect();
    seen.sort_by_key(|(name, _)| *name);
    let expected: [(&[u8], EntryKind); 7] = [
        (b".hidden", EntryKind::File),
        (b"bytes\xff", EntryKind::File),
        (b"empty", EntryKind::File),
        (b"fifo", EntryKind::Other),
        (b"file", EntryKind::File),
        (b"folder", EntryKind::Folder),
        (b"link", EntryKind::Link),
    ];
    assert_eq!(seen, expected);
    for (name, size) in [(&b"file"[..], 5), (b"empty", 0)] {
        let entry = entries.iter().find(|entry| entry.name == name).expect("an entry");
        assert_eq!(entry.size_bytes, size, "{entry:?}");
    }
    assert_refused("a list of a file", sandbox.list_files(&path("/workspace/list/file"), 10).await);
}

pub async fn lists_stop_at_their_limit(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "mkdir many; cd many; i=0; while [ $i -lt 500 ]; do : > $i; i=$((i + 1)); done").await;
    for (limit, count) in [(0, 0), (1, 1), (499, 499), (1000, 500)] {
        let entries = sandbox.list_files(&path("/workspace/many"), limit).await.expect("a list");
        assert_eq!(entries.len(), count, "at most {limit}");
    }
}

pub async fn only_plain_files_are_read(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let script =
        "echo x > file; ln -s file link; ln -s /proc/self/root/etc/passwd magic; ln -s missing dangling
        ln -s loop loop; mkfifo fifo; mkdir folder";
    sh_ok(&*sandbox, script).await;
    for name in ["link", "magic", "dangling", "loop", "fifo", "folder"] {
        assert_not_permitted(name, read(&*sandbox, &format!("/workspace/{name}")).await);
    }
    assert_eq!(read(&*sandbox, "/workspace/file").await.expect("a file"), b"x\n");
}

/// Whether the link is replaced or refused is the backend's choice; what it points to stays as it is.
pub async fn writing_never_follows_a_link(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "echo kept > target; ln -s target link; ln -s made dangling").await;
    for name in ["link", "dangling"] {
        let _ = write(&*sandbox, &format!("/workspace/{name}"), 0o644, b"written").await;
    }
    assert_eq!(sh_ok(&*sandbox, "cat target; test ! -e made").await, "kept\n");
}

/// `write` fails the case when it hangs; replaced or refused, nothing may be waiting for a reader.
pub async fn writing_to_a_fifo_does_not_block(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "mkfifo fifo").await;
    if write(&*sandbox, "/workspace/fifo", 0o644, b"written").await.is_ok() {
        assert_eq!(read(&*sandbox, "/workspace/fifo").await.expect("a file in its place"), b"written");
    }
}

pub async fn links_in_a_path_are_refused(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "mkdir real; echo x > real/file; ln -s real link; ln -s /etc etc; ln -s / root").await;
    for file in ["/workspace/link/file", "/workspace/etc/passwd", "/workspace/root/workspace/real/file"] {
        assert_not_permitted(file, read(&*sandbox, file).await);
        assert_not_permitted(file, write(&*sandbox, file, 0o644, b"written").await);
    }
    for folder in ["/workspace/link", "/workspace/etc", "/workspace/root/workspace"] {
        assert_not_permitted(folder, sandbox.list_files(&path(folder), 10).await);
        let new = path(folder).join("new").expect("a path");
        assert_not_permitted(folder, sandbox.make_folder(&new).await);
        assert_not_permitted(folder, write(&*sandbox, new.as_str(), 0o644, b"written").await);
    }
    assert_eq!(sh_ok(&*sandbox, "cat real/*; ls real").await, "x\nfile\n");
}

pub async fn read_only_root_is_not_written(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    for file in ["/new", "/usr/new", "/etc/passwd", "/etc/new"] {
        assert_not_permitted(file, write(&*sandbox, file, 0o644, b"written").await);
    }
    for folder in ["/new", "/usr/new"] {
        assert_not_permitted(folder, sandbox.make_folder(&path(folder)).await);
    }
    assert_still_runs(&*sandbox).await;
}

pub async fn folders_are_made(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    for folder in ["/workspace/folder", "/workspace/a/b/c", "/tmp/folder", "/workspace/folder"] {
        sandbox.make_folder(&path(folder)).await.expect(folder);
        assert_eq!(sh_ok(&*sandbox, &format!("echo x > {folder}/mine; stat -c %u {folder}")).await, "1000\n");
    }
    sh_ok(&*sandbox, "echo x > file").await;
    assert_refused("a file in the way", sandbox.make_folder(&path("/workspace/file")).await);
}

pub async fn written_files_belong_to_the_sandbox_user(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    write(&*sandbox, "/workspace/sub/file", 0o600, b"ours\n").await.expect("a file");
    let script = "stat -c %u sub/file; echo theirs >> sub/file; cat sub/file; rm -r sub";
    assert_eq!(sh_ok(&*sandbox, script).await, "1000\nours\ntheirs\n");
}

pub async fn private_files_are_readable_by_the_host(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "umask 077; mkdir -p a/b; echo private > a/b/file").await;
    assert_eq!(read(&*sandbox, "/workspace/a/b/file").await.expect("a file"), b"private\n");
    let entries = sandbox.list_files(&path("/workspace/a/b"), 10).await.expect("a list");
    assert_eq!(entries.len(), 1);
    write(&*sandbox, "/workspace/a/b/ours", 0o644, b"ours").await.expect("a file");
}

pub async fn files_of_the_root_are_readable(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let inside = sh_ok(&*sandbox, "cat /etc/passwd").await;
    assert_eq!(read(&*sandbox, "/etc/passwd").await.expect("a file"), inside.as_bytes());
    let entries = sandbox.list_files(&path("/usr"), 1000).await.expect("a list");
    assert!(entries.iter().any(|entry| entry.name == b"bin"), "{entries:?}");
}
