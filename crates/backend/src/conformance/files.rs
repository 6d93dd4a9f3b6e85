//! Files between host and sandbox. Names and links inside are chosen by code that nobody trusts.

use super::support::*;
use crate::{Backend, Change, EntryKind, Watched};

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

pub async fn restored_files_are_as_they_were(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    let then = 1_234_567_890_000;
    sandbox.make_folder(&path("/workspace/folder")).await.expect("a folder");
    let file = path("/workspace/folder/file");
    // Set-id bits are not brought back, whoever kept them.
    let restored = sandbox.restore_file(&file, 0o4711, then, Box::new(&b"some"[..])).await;
    assert_eq!(restored.expect("a file"), 4);
    sandbox.restore_folder(&path("/workspace/folder"), 0o2550, then + 1000).await.expect("a folder");
    let seen = sh_ok(&*sandbox, "stat -c %a folder folder/file; cat folder/file").await;
    assert_eq!(seen, "550\n711\nsome");
    if backend.capabilities().file_times {
        let seen = sh_ok(&*sandbox, "stat -c %Y folder folder/file").await;
        assert_eq!(seen, "1234567891\n1234567890\n");
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

/// It is refused, and what it points to stays as it is.
pub async fn writing_never_follows_a_link(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "echo kept > target; ln -s target link; ln -s made dangling").await;
    for name in ["link", "dangling"] {
        assert_refused(name, write(&*sandbox, &format!("/workspace/{name}"), 0o644, b"written").await);
    }
    assert_eq!(sh_ok(&*sandbox, "cat target; test ! -e made; test -L link -a -L dangling").await, "kept\n");
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

pub async fn stat_tells_what_a_path_is(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "printf 12345 > file; chmod 640 file; mkdir -m 750 folder; ln -s file link; mkfifo fifo; ln -s folder way")
        .await;
    for (name, kind, mode) in [
        ("file", EntryKind::File, Some(0o640)),
        ("folder", EntryKind::Folder, Some(0o750)),
        ("link", EntryKind::Link, None),
        ("fifo", EntryKind::Other, None),
    ] {
        let stat = sandbox.stat(&path(&format!("/workspace/{name}"))).await.expect(name);
        assert_eq!(stat.kind, kind, "{name}");
        assert!(mode.is_none_or(|mode| stat.mode == mode), "{name}: {:o}", stat.mode);
        assert!(stat.modified_ms > 1_600_000_000_000, "{name}: {}", stat.modified_ms);
    }
    assert_eq!(sandbox.stat(&path("/workspace/file")).await.expect("a file").size_bytes, 5);
    assert_not_found("a missing file", sandbox.stat(&path("/workspace/missing")).await);
    assert_not_permitted("behind a link", sandbox.stat(&path("/workspace/way/x")).await);
}

pub async fn removed_files_are_gone(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "echo kept > target; ln -s target link; echo x > file; mkdir empty full; echo x > full/file; ln -s full way")
        .await;
    let remove = async |name: &str, kind| sandbox.remove(&path(&format!("/workspace/{name}")), kind).await;
    remove("file", EntryKind::File).await.expect("a file");
    remove("link", EntryKind::Link).await.expect("a link");
    remove("empty", EntryKind::Folder).await.expect("an empty folder");
    assert_eq!(sh_ok(&*sandbox, "ls; cat target").await, "full\ntarget\nway\nkept\n");
    assert_not_found("a file that is gone", remove("file", EntryKind::File).await);
    assert_refused("a full folder", remove("full", EntryKind::Folder).await);
    assert_refused("a folder as a file", remove("full", EntryKind::File).await);
    assert_not_permitted("behind a link", remove("way/file", EntryKind::File).await);
    assert_not_permitted("a file of the root", sandbox.remove(&path("/etc/passwd"), EntryKind::File).await);
    assert_eq!(sh_ok(&*sandbox, "ls full").await, "file\n");
}

pub async fn renamed_files_replace_others(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "echo new > new; echo old > old; mkdir a other; echo in > a/in; ln -s other way").await;
    let rename = async |from: &str, to: &str| {
        sandbox.rename(&path(&format!("/workspace/{from}")), &path(&format!("/workspace/{to}"))).await
    };
    rename("new", "old").await.expect("a file in the place of another");
    assert_eq!(sh_ok(&*sandbox, "cat old; test ! -e new").await, "new\n");
    rename("a", "made/for/it").await.expect("a folder, and those above it");
    assert_eq!(sh_ok(&*sandbox, "cat made/for/it/in; stat -c %u made").await, "in\n1000\n");
    assert_not_found("a missing file", rename("missing", "x").await);
    assert_not_permitted("to behind a link", rename("old", "way/old").await);
    sh_ok(&*sandbox, "echo x > other/file").await;
    assert_not_permitted("from behind a link", rename("way/file", "stolen").await);
    assert_refused("a file in the place of a folder", rename("old", "made").await);
    assert_eq!(sh_ok(&*sandbox, "cat old other/file; ls other").await, "new\nx\nfile\n");
}

pub async fn modes_are_set_without_their_special_bits(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "echo x > file; mkdir folder; ln -s file link; chmod 600 file; mkfifo fifo").await;
    let set = async |name: &str, mode| sandbox.set_mode(&path(&format!("/workspace/{name}")), mode).await;
    set("file", 0o4755).await.expect("a file");
    set("folder", 0o2711).await.expect("a folder");
    assert_eq!(sh_ok(&*sandbox, "stat -c %a file folder").await, "755\n711\n");
    assert_not_permitted("a link", set("link", 0o600).await);
    assert_not_permitted("a pipe", set("fifo", 0o600).await);
    assert_not_permitted("a file of the root", sandbox.set_mode(&path("/etc/passwd"), 0o666).await);
    assert_not_found("a missing file", set("missing", 0o600).await);
    assert_eq!(sh_ok(&*sandbox, "stat -c %a file").await, "755\n");
}

pub async fn links_are_made_and_read_but_not_followed(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "echo x > file; mkdir other; ln -s other way").await;
    let long = "n".repeat(3000);
    for (name, target) in [("a/link", "../file"), ("out", "/etc/passwd"), ("long", long.as_str())] {
        let link = path(&format!("/workspace/{name}"));
        sandbox.make_link(&link, target.as_bytes()).await.expect(name);
        assert_eq!(sandbox.read_link(&link).await.expect(name), target.as_bytes());
    }
    assert_eq!(sh_ok(&*sandbox, "cat a/link; readlink out").await, "x\n/etc/passwd\n");
    assert_refused("in the place of a file", sandbox.make_link(&path("/workspace/file"), b"x").await);
    assert_not_permitted("behind a link", sandbox.make_link(&path("/workspace/way/x"), b"x").await);
    assert_not_permitted("not a link", sandbox.read_link(&path("/workspace/file")).await);
    assert_not_found("nothing", sandbox.read_link(&path("/workspace/missing")).await);
    assert_eq!(sh_ok(&*sandbox, "ls other").await, "");
}

pub async fn files_are_read_from_a_byte_on(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "printf 0123456789 > file; ln -s file link").await;
    for (first, rest) in [(0, "0123456789"), (4, "456789"), (10, ""), (99, "")] {
        let mut reader = sandbox.read_file_from(&path("/workspace/file"), first).await.expect("a file");
        let mut text = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut reader, &mut text).await.expect("its bytes");
        assert_eq!(text, rest, "from {first}");
    }
    assert_not_permitted("a link", sandbox.read_file_from(&path("/workspace/link"), 1).await.map(drop));
}

pub async fn files_are_handed_from_one_to_another(backend: &dyn Backend) {
    let (one, other) = (sandbox(backend).await, sandbox(backend).await);
    let folder = path("/workspace/d");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let of_none = one.open_files(&folder, Vec::new()).await;
    if !backend.capabilities().hand_over {
        assert_unsupported("handing out", of_none.map(drop));
        return assert_unsupported("taking", other.take_files(&folder, Vec::new()).await);
    }
    assert!(of_none.expect("nothing of nothing").is_empty());
    sh_ok(
        &*one,
        "mkdir d; cd d; printf first > a; chmod 600 a; printf x > 'b ü'; chmod 6755 'b ü'; : > empty",
    )
    .await;
    sh_ok(&*other, "mkdir d; printf 'longer than before' > d/a").await;
    let files = one.open_files(&folder, names(&["b ü", "empty", "a"])).await.expect("three files");
    let seen: Vec<_> = files.iter().map(|file| (file.name.as_str(), file.stat.size_bytes)).collect();
    assert_eq!(seen, [("b ü", 1), ("empty", 0), ("a", 5)]);
    // What becomes of a name afterwards is not what was handed out.
    sh_ok(&*one, "rm d/a; echo another > d/a").await;
    assert_eq!(other.take_files(&folder, files).await.expect("three files"), 6);
    let found = sh_ok(&*other, "cd d; cat a 'b ü' empty; stat -c ' %n %a %u' a 'b ü' empty").await;
    assert_eq!(found, "firstx a 600 1000\n b ü 755 1000\n empty 644 1000\n");
}

pub async fn only_plain_files_are_handed_over(backend: &dyn Backend) {
    let (one, other) = (sandbox(backend).await, sandbox(backend).await);
    if !backend.capabilities().hand_over {
        return assert_unsupported("handing out", one.open_files(&path("/workspace"), Vec::new()).await);
    }
    let make =
        "echo x > outside; mkdir d; echo x > d/a; mkfifo d/fifo; ln -s a d/link; mkdir d/folder; ln -s d way";
    sh_ok(&*one, make).await;
    let open = async |folder: &str, name: &str| {
        let names = vec!["a".to_owned(), name.to_owned()];
        promptly("an answer", one.open_files(&path(folder), names)).await
    };
    for name in ["link", "fifo", "folder"] {
        assert_not_permitted(name, open("/workspace/d", name).await);
    }
    assert_not_found("nothing", open("/workspace/d", "missing").await);
    assert_not_permitted("a folder behind a link", open("/workspace/way", "a").await);
    for name in ["../outside", "/etc/passwd", ""] {
        assert_refused("a way out", open("/workspace/d", name).await);
    }
    sh_ok(&*other, "mkdir d; echo theirs > theirs; ln -s ../theirs d/a; ln -s d way; mkdir e; mkfifo e/a")
        .await;
    for folder in ["/workspace/d", "/workspace/way", "/workspace/e"] {
        let files = one.open_files(&path("/workspace/d"), vec!["a".to_owned()]).await.expect("a file");
        let taken = promptly("an answer", other.take_files(&path(folder), files)).await;
        assert_not_permitted(folder, taken);
    }
    assert_eq!(sh_ok(&*other, "cat theirs").await, "theirs\n");
    assert_still_runs(&*one).await;
}

/// As many as one job may have, and as large: files in memory, for their owner alone.
pub async fn secrets_have_a_place_in_memory(backend: &dyn Backend) {
    // Whoever has secrets looks before; there is nothing here that could be refused.
    if !backend.capabilities().secrets {
        return;
    }
    let sandbox = sandbox(backend).await;
    let look = "stat -c '%a %u %g' /run/secrets; ls -A /run/secrets; stat -f -c %T /run/secrets";
    assert_eq!(sh_ok(&*sandbox, look).await, "700 1000 1000\ntmpfs\n");
    for i in 0..32 {
        let file = format!("/run/secrets/deep/{i}/token");
        write(&*sandbox, &file, 0o400, &vec![b'0' + i; 64 << 10]).await.expect(&file);
    }
    let look = "cd /run/secrets/deep; stat -c '%a %u %g %s' */token; head -c 3 7/token";
    let expected = "400 1000 1000 65536\n".repeat(32) + "777";
    assert_eq!(sh_ok(&*sandbox, look).await, expected);
}

pub async fn changes_are_watched_in_order(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    sh_ok(&*sandbox, "mkdir -p w/old; ln -s /tmp w/way; ln -s w link").await;
    let started = sandbox.watch(&path("/workspace/w")).await;
    if !backend.capabilities().watch {
        return assert_unsupported("watching", started.map(drop));
    }
    let mut watcher = started.expect("a watch");
    assert_not_permitted("a link", sandbox.watch(&path("/workspace/link")).await.map(drop));
    assert_not_found("nothing", sandbox.watch(&path("/workspace/missing")).await.map(drop));
    let mut seen = Vec::new();
    let first = "cd w; echo 1 > a; mv a b; echo 2 >> b; mkdir -p new/deep; echo 3 > new/deep/c; rm b";
    let second =
        "cd w; touch /tmp/unseen way/unseen; echo 4 > old/d; mv new moved; echo 5 > moved/deep/e; mv old ..
        echo 6 > ../old/unseen; rm -r moved; echo end > end";
    // What is in a new folder is seen once the folder is: so much is waited for before it goes again.
    for (script, last) in [(first, "new/deep/c"), (second, "end")] {
        sh_ok(&*sandbox, script).await;
        while !seen.iter().any(|(path, _)| path == last) {
            seen.extend(watcher.next().await.expect("news").into_iter().filter_map(told));
        }
    }
    let place = |(path, change): (&str, &str)| {
        let found: Vec<_> = (0..seen.len()).filter(|&i| seen[i].0 == path && seen[i].1 == change).collect();
        assert_eq!(found.len(), 1, "{path} {change}: {seen:?}");
        found[0]
    };
    let order = [
        ("a", "created"),
        ("b", "from a"),
        ("new", "created"),
        ("new/deep", "created"),
        ("new/deep/c", "created"),
        ("old/d", "created"),
        ("moved", "from new"),
        ("moved/deep/e", "created"),
        ("old", "removed"),
        ("moved/deep/e", "removed"),
        ("moved/deep", "removed"),
        ("moved", "removed"),
        ("end", "created"),
    ];
    assert!(order.map(place).is_sorted(), "{seen:?}");
    assert!(place(("b", "from a")) < place(("b", "removed")), "{seen:?}");
    assert!(!seen.iter().any(|(path, _)| path.contains("unseen")), "{seen:?}");
}

/// A change in words; what was only written to is left out.
fn told(news: Watched) -> Option<(String, String)> {
    let Watched::Changed { path, change, .. } = news else { panic!("nothing was missed: {news:?}") };
    let change = match change {
        Change::Created => "created".to_owned(),
        Change::Modified => return None,
        Change::Removed => "removed".to_owned(),
        Change::Moved { from } => format!("from {}", String::from_utf8_lossy(&from)),
    };
    Some((String::from_utf8_lossy(&path).into_owned(), change))
}

pub async fn a_watch_ends_with_its_sandbox(backend: &dyn Backend) {
    let sandbox = sandbox(backend).await;
    if !backend.capabilities().watch {
        return assert_unsupported("watching", sandbox.watch(&path("/workspace")).await.map(drop));
    }
    let mut watcher = sandbox.watch(&path("/workspace")).await.expect("a watch");
    sandbox.destroy().await.expect("an end");
    // What was seen on the way may still come, and then nothing more.
    while watcher.next().await.is_ok() {}
}
