//! What a fork has of trees that were made to be awkward, and what becomes of its session meanwhile.
//!
//! A snapshot keeps files by another way, through a stream; what it brings is what a fork has to bring.

use crate::client::Client;
use crate::machine::wait_until;
use crate::pausing::{ROOMY, post, stdout};
use crate::server::{Folder, Server};
use crate::sessions::{create, delete, python, shell};
use crate::snapshots::{fork, snapshot};
use serde_json::json;

/// Every kind of thing, with every kind of name; more of some than are handed over at once.
pub(crate) const AWKWARD: &str = r#"
import os, socket
os.makedirs('deep/' + '/'.join('d' * 20 for _ in range(100)))
open('deep/' + 'd' * 20 + '/file', 'w').write('in between')
os.makedirs('many'); os.makedirs('empty/inner')
for i in range(300):
    open('many/%d' % i, 'wb').write(b'%d' % i * (i % 7) * 1000)
for name in ['ü 漢', 'new\nline', '-n', ' ', 'x' * 255, '*', '\\', '.hidden', "'"]:
    open(name, 'w').write(name)
for name, target in [('out', '/etc/passwd'), ('up', '../' * 50 + 'etc'), ('loop', 'loop'), ('none', 'missing'),
                     ('many/link', '../many/1'), ('folder', 'many'), ('long', 'y' * 4000)]:
    os.symlink(target, name)
os.link('many/1', 'hard'); os.mkfifo('fifo'); os.mkfifo('many/fifo')
socket.socket(socket.AF_UNIX).bind('socket')
with open('sparse', 'wb') as file:
    file.truncate(5 << 20); file.seek(3 << 20); file.write(b'here')
open('large', 'wb').write(os.urandom(3 << 20) * 7)
open('set', 'w').write('x'); os.chmod('set', 0o6755)
open('mine', 'w').write('x'); os.chmod('mine', 0o400)
os.makedirs('closed/in'); open('closed/in/file', 'w').write('x')
os.makedirs('sticky'); os.chmod('sticky', 0o3777)
os.utime('many/5', (1e9, 1e9 + 0.123)); os.utime('empty', (1e9, 1e9))
os.chmod('closed/in', 0o555); os.chmod('closed', 0o500)
print('made')
"#;

/// What there is, in words.
pub(crate) const MANIFEST: &str = r#"
import hashlib, os, stat
for at, folders, names in os.walk('/workspace', onerror=print):
    folders.sort()
    for name in sorted(folders + names):
        path = os.path.join(at, name)
        seen = os.lstat(path)
        what = ''
        if stat.S_ISLNK(seen.st_mode):
            what = os.readlink(path)
        elif stat.S_ISREG(seen.st_mode):
            content = open(path, 'rb').read()
            what = '%d %d %s' % (seen.st_nlink, seen.st_mtime_ns // 1000000, hashlib.sha256(content).hexdigest()[:16])
        else:
            what = str(seen.st_mtime_ns // 1000000)
        print(ascii(path[:60]), len(path), oct(seen.st_mode), seen.st_uid, seen.st_gid, what[:60], len(what))
"#;

#[test]
fn a_fork_of_an_awkward_tree_has_what_a_snapshot_has() {
    let folder = Folder::new("awkward-forks");
    let server = Server::start(folder.path(), &ROOMY);
    let client = Client::of(&server);
    let parent = create(&client, "{}");
    assert_eq!(stdout(&python(&client, &parent, AWKWARD)), "made\n");
    snapshot(&client, &parent, "awkward");
    let kept = create(&client, r#"{"snapshot":"awkward"}"#);
    let kept = stdout(&python(&client, &kept, MANIFEST)).to_owned();
    for child in fork(&client, &parent, 2) {
        let forked = python(&client, &child, MANIFEST);
        for (forked, kept) in stdout(&forked).lines().zip(kept.lines()) {
            assert_eq!(forked, kept);
        }
        assert_eq!(stdout(&forked), kept);
    }
    let line = |name: &str| {
        let start = format!("'/workspace/{name}' ");
        kept.lines().find(|line| line.starts_with(&start)).unwrap_or("nothing").to_owned()
    };
    for left_out in ["fifo", "socket", "many/fifo"] {
        assert_eq!(line(left_out), "nothing");
    }
    for (name, words) in [
        ("set", "0o100755 1000 1000 1 "),
        ("sticky", "0o41777 1000 1000 "),
        ("hard", "0o100644 1000 1000 1 "),
    ] {
        assert!(line(name).contains(words), "{}", line(name));
    }
    assert!(line("out").contains(" /etc/passwd "), "{}", line("out"));
    assert!(line("many/5").contains(" 1000000000123 "), "{}", line("many/5"));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn what_cannot_be_forked_leaves_the_session_as_it_was() {
    let folder = Folder::new("refused-forks");
    let server = Server::start(folder.path(), &ROOMY);
    let client = Client::of(&server);
    // Its files have half of its memory.
    let parent = create(&client, r#"{"limits":{"memory_bytes":134217728}}"#);
    let sparse = "import os; os.mkdir('t'); [open('t/%d' % i, 'wb').truncate(40 << 20) for i in range(2)]";
    for (make, words) in [
        (
            r"import os; os.makedirs(b't/\xff')",
            r#""/workspace/t" is not valid: a name in it is not UTF-8, and cannot be kept; rename it"#,
        ),
        ("import os; os.makedirs('t/' + 'd/' * 130)", r#"/d" is not valid: it is too deep to be kept"#),
        (
            "import os; os.makedirs('t/closed'); os.chmod('t/closed', 0)",
            r#""/workspace/t/closed" is not valid: Permission denied"#,
        ),
        (
            "import os; os.mkdir('t'); os.close(os.open('t/a', os.O_CREAT, 0))",
            r#""/workspace/t/a" is not valid: Permission denied"#,
        ),
        // Either of the two may be the one that does not fit.
        (sparse, "writing /workspace/t/…: No space left on device"),
    ] {
        python(&client, &parent, make);
        let refused = post(&client, &parent, "fork", &json!({"count": 2}));
        assert_eq!(refused.status, 503, "{make}: {refused:?}");
        let text = refused.json()["error"]["message"].as_str().expect("a message").to_owned();
        assert!(words.split('…').all(|part| text.contains(part)), "{make}: {text}");
        let live = client.get("/v1/sessions?state=ready").json();
        assert_eq!(live["sessions"].as_array().map(Vec::len), Some(1), "{make}: {live}");
        let goes_on = shell(&client, &parent, "chmod -R u+rwx t; rm -r t && echo gone");
        assert_eq!(stdout(&goes_on), "gone\n", "{make}");
    }
    // And what fits is forked, however much there is of it.
    let small = "import os; os.mkdir('t')\nfor i in range(3500): open('t/%d' % i, 'w').close()";
    python(&client, &parent, small);
    let child = fork(&client, &parent, 1).remove(0);
    assert_eq!(stdout(&shell(&client, &child, "ls t | wc -l")), "3500\n");
    assert_eq!(server.stop(), Some(0));
}

/// Counts through its files one by one, for good.
const WRITER: &str = "import os
n = 0
while True:
    n += 1
    for i in range(400):
        open('.next', 'w').write(str(n))
        os.rename('.next', 'f%03d' % i)
";

#[test]
fn a_fork_sees_its_session_at_one_moment_and_lets_it_go_on() {
    let folder = Folder::new("forks-of-one-moment");
    let server = Server::start(folder.path(), &ROOMY);
    let client = Client::of(&server);
    let parent = create(&client, "{}");
    let start = format!("open('/tmp/writer.py', 'w').write({WRITER:?})");
    python(&client, &parent, &start);
    shell(&client, &parent, "mkdir w; cd w; python3 /tmp/writer.py > /dev/null 2>&1 &");
    let last = || stdout(&shell(&client, &parent, "cat w/f399 || echo 0")).trim().parse::<u64>().unwrap_or(0);
    wait_until("it has written each", || last() > 0);
    for _ in 0..5 {
        let child = fork(&client, &parent, 1).remove(0);
        let seen = python(&client, &child, "print(*[int(open('w/f%03d' % i).read()) for i in range(400)])");
        let seen: Vec<u64> = stdout(&seen).split_whitespace().map(|n| n.parse().expect("a number")).collect();
        assert_eq!(seen.len(), 400);
        assert!(seen.is_sorted_by(|a, b| a >= b) && seen[0] - seen[399] <= 1, "of several moments: {seen:?}");
        assert_eq!(delete(&client, &format!("/v1/sessions/{child}")).status, 204);
        let now = last();
        wait_until("it goes on", || last() > now);
    }
    assert_eq!(server.stop(), Some(0));
}
