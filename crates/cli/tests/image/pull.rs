//! `cofferdam image pull`, from a real registry.

use crate::bed::Bed;
use crate::registry::{LOGIN, Registry, Trouble, Way};
use crate::support::{Answer, finish, program};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

/// A registry with an image of two layers, of which the upper one is small.
fn registry(bed: &Bed, has_login: bool) -> Registry {
    let registry = Registry::start(has_login);
    let base = bed.busybox("base", &[("etc/motd", "lower\n")]);
    let upper = bed.tree("upper", &[("etc/motd", "from a registry\n")]);
    let process = json!({"Env": ["A=image"]});
    registry.push(&bed.docker("image.tar", &[&base, &upper], &process), "team/app:1", has_login);
    registry
}

fn names(bed: &Bed, folder: &str) -> usize {
    fs::read_dir(bed.store().join(folder)).map_or(0, |entries| entries.count())
}

/// That a pull failed with these words, and left nothing but the number of downloads.
fn fails(bed: &Bed, answer: &Answer, words: &[&str], downloads: usize) {
    assert_eq!(answer.code, Some(125), "{answer:?}");
    for word in words {
        assert!(answer.stderr.contains(word), "{word}: {answer:?}");
    }
    assert_eq!(bed.ok(&["image", "list", "--json"]), "[]\n");
    let left = ["downloads", "staging", "layers"].map(|folder| names(bed, folder));
    assert_eq!(left, [downloads, 0, 0], "{answer:?}");
}

#[test]
fn an_image_comes_by_tag_or_digest_and_layers_come_once() {
    let bed = Bed::new();
    let registry = registry(&bed, false);
    let way = Way::to(&registry, Trouble::None);
    let tagged = format!("{}/team/app:1", way.address);
    let first: Value = serde_json::from_str(&bed.ok(&["image", "pull", &tagged, "--json"])).expect("JSON");
    assert_eq!(first["names"], json!([tagged]));
    let script = "cat /etc/motd; echo $A";
    assert_eq!(bed.ok(&["run", "--image", &tagged, "--", "sh", "-c", script]), "from a registry\nimage\n");
    let layers = || way.requests().iter().filter(|line| line.contains("/blobs/")).count();
    assert_eq!(layers(), 3, "two layers and a configuration: {:?}", way.requests());
    let pinned = format!("{}/team/app@{}", way.address, registry.digest("team/app:1"));
    let again: Value =
        serde_json::from_str(&bed.ok(&["image", "pull", &pinned, "--name", "pinned", "--json"]))
            .expect("JSON");
    assert_eq!((&again["id"], &again["layers_shared"]), (&first["id"], &json!(2)));
    assert_eq!(layers(), 4, "one more configuration: {:?}", way.requests());
    assert_eq!((names(&bed, "downloads"), names(&bed, "staging")), (0, 0));
    let other = Bed::new();
    let wrong = format!("{}/team/app@sha256:{:064}", way.address, 7);
    fails(&other, &other.cofferdam(&["image", "pull", &wrong]), &["no such image", &wrong], 0);
}

#[test]
fn of_several_platforms_it_is_this_machines() {
    let bed = Bed::new();
    let registry = registry(&bed, false);
    let other = bed.tree("other", &[("only", "elsewhere")]);
    registry.push(&bed.docker("other.tar", &[&other], &json!({})), "team/app:other", false);
    let digest = |tag: &str| registry.digest(&format!("team/app:{tag}"));
    registry.put_index("team/app:both", &digest("1"), &digest("other"));
    bed.ok(&["image", "pull", &format!("{}/team/app:both", registry.address), "--name", "app"]);
    assert_eq!(bed.ok(&["run", "--image", "app", "--", "cat", "/etc/motd"]), "from a registry\n");
}

#[test]
fn what_was_cut_goes_on_where_it_ended() {
    let bed = Bed::new();
    let registry = registry(&bed, false);
    // In the same pull.
    let way = Way::to(&registry, Trouble::Cuts { times: 2, after: 50_000 });
    bed.ok(&["image", "pull", &format!("{}/team/app:1", way.address), "--name", "app"]);
    let ranges = way.requests().iter().filter(|line| line.contains("bytes=")).count();
    assert_eq!(ranges, 2, "{:?}", way.requests());
    assert_eq!(bed.ok(&["run", "--image", "app", "--", "cat", "/etc/motd"]), "from a registry\n");
    // In a later one.
    let bed = Bed::new();
    let broken = Way::to(&registry, Trouble::Cuts { times: 100, after: 300 });
    let answer =
        bed.cofferdam(&["image", "pull", &format!("{}/team/app:1", broken.address), "--name", "app"]);
    fails(&bed, &answer, &["was cut 5 times", "try again"], 2);
    let way = Way::to(&registry, Trouble::Cuts { times: 1, after: 50_000 });
    bed.ok(&["image", "pull", &format!("{}/team/app:1", way.address), "--name", "app"]);
    assert_eq!((names(&bed, "downloads"), names(&bed, "layers")), (0, 2));
}

#[test]
fn what_is_not_what_was_promised_is_refused() {
    let bed = Bed::new();
    let registry = registry(&bed, false);
    let way = Way::to(&registry, Trouble::Damage);
    let answer = bed.cofferdam(&["image", "pull", &format!("{}/team/app:1", way.address), "--name", "app"]);
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(answer.stderr.contains("the digest of") && answer.stderr.contains("was promised"), "{answer:?}");
    assert_eq!((names(&bed, "staging"), names(&bed, "layers")), (0, 0));
    assert_eq!(bed.ok(&["image", "list", "--json"]), "[]\n");
}

#[test]
fn a_login_is_used_where_one_is_wanted() {
    let bed = Bed::new();
    let registry = registry(&bed, true);
    let image = format!("{}/team/app:1", registry.address);
    let home = bed.path("home");
    fs::create_dir_all(home.join(".docker")).expect("a folder");
    let pull = |words: &[&str], password: &str| {
        let mut command = bed.command(&[&["image", "pull"], words].concat());
        command.env("HOME", &home).env_remove("DOCKER_CONFIG").env_remove("REGISTRY_AUTH_FILE");
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        let _ = child.stdin.take().expect("stdin").write_all(password.as_bytes());
        finish(child)
    };
    fails(&bed, &pull(&[&image], ""), &["wants a login", "--username"], 0);
    let named = [image.as_str(), "--username", "me", "--password-stdin"];
    fails(&bed, &pull(&named, "wrong\n"), &["refused the login of \"me\""], 0);
    let answer = pull(&named, "word\n");
    assert_eq!(answer.code, Some(0), "{answer:?}");
    // As `docker login` leaves it.
    let auth = Command::new("base64").arg("-w0").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut auth = auth.expect("base64");
    auth.stdin.take().expect("stdin").write_all(LOGIN.as_bytes()).expect("a name");
    let auth = String::from_utf8(auth.wait_with_output().expect("its output").stdout).expect("text");
    let file = json!({"auths": {&registry.address: {"auth": auth}}}).to_string();
    fs::write(home.join(".docker/config.json"), &file).expect("a file");
    let answer = pull(&[&image], "");
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

#[test]
fn a_token_is_fetched_where_one_is_wanted() {
    let bed = Bed::new();
    let registry = registry(&bed, false);
    let way = Way::to(&registry, Trouble::Tokens);
    let image = format!("{}/team/app:1", way.address);
    fails(&bed, &bed.cofferdam(&["image", "pull", &image]), &["wants a login"], 0);
    let mut command = bed.command(&["image", "pull", &image, "--username", "me", "--password-stdin"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("stdin").write_all(b"word").expect("a password");
    let answer = finish(child);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let tokens = way.requests().iter().filter(|line| line.contains("scope=repository")).count();
    assert_eq!(tokens, 2, "{:?}", way.requests());
}

#[test]
fn a_full_disk_is_told_and_keeps_no_part() {
    let bed = Bed::new();
    let registry = registry(&bed, false);
    fs::create_dir(bed.store()).expect("a folder");
    let script = r#"mount -t tmpfs -o size=400k,mode=0700 none "$2" || exit 99
        "$1" image pull "$3" --name app; code=$?
        ls "$2/staging" "$2/layers" | wc -l; "$1" image list --json; exit $code"#;
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(program()).arg(bed.store());
    command.arg(format!("{}/team/app:1", registry.address)).env("COFFERDAM_IMAGES", bed.store());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let answer = finish(command.spawn().expect("unshare starts"));
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(answer.stderr.contains("image_store_full: "), "{answer:?}");
    // Two headings and an empty line.
    assert_eq!(answer.stdout, "3\n[]\n", "{answer:?}");
}

#[test]
fn a_registry_that_is_not_there_is_named() {
    let bed = Bed::new();
    let answer = bed.cofferdam(&["image", "pull", "127.0.0.1:1/app"]);
    fails(&bed, &answer, &["127.0.0.1:1 cannot be reached", "refused"], 0);
}
