//! priv-02: everything that the host's /proc shows of init and of a payload, against golden files.
//!
//! Numbers that differ from run to run are written as what they mean: ids relative to the sandbox's range,
//! namespaces as "own" or "host's". `COFFERDAM_BLESS=1` writes the golden files anew.

use super::leak::init_of;
use super::{Looks, broke, held};
use crate::inventory::children;
use crate::lab::{Lab, PROBE, Wish, guest, process};
use crate::mode::{self, Mode};
use crate::row::Seen;
use cofferdam_linux::cgroup::Layout;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind::PermissionDenied;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use tokio::io::AsyncReadExt;

const SET_LIMITS: [&str; 7] = [
    "Max core file size",
    "Max open files",
    "Max locked memory",
    "Max pending signals",
    "Max msgqueue size",
    "Max nice priority",
    "Max realtime priority",
];

/// Init and payload, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Posture {
    pub(crate) init: String,
    pub(crate) payload: String,
}

pub(crate) async fn golden(lab: &mut Lab) -> Result<Looks, String> {
    let seen = take(lab, &Wish::default()).await?;
    let again = take(lab, &Wish { spares: true, ..Wish::default() }).await?;
    let (lines, mut wrong) = against_golden("", &seen)?;
    wrong.extend(difference(&seen.init, &again.init).map(|line| format!("init by a server: {line}")));
    wrong
        .extend(difference(&seen.payload, &again.payload).map(|line| format!("payload by a server: {line}")));
    let wall = if wrong.is_empty() {
        held(format!("{lines} lines as in the golden files"))
    } else {
        broke(wrong.join("; "))
    };
    Ok((wall, Seen::Without("each control is left out in turn: see the mutations".to_owned())))
}

/// The posture of what is there already, in a session.
pub(crate) fn of_session(id: &str, slot: u32, init: u32, payload: u32) -> Result<Posture, String> {
    let described =
        |pid, is_payload| Ok::<_, String>(describe(slot, pid, is_payload)?.replace(id, "SESSION"));
    Ok(Posture { init: described(init, false)?, payload: described(payload, true)? })
}

/// Holds a posture against the golden files of a kind: how many lines it has, and those that differ.
pub(crate) fn against_golden(kind: &str, seen: &Posture) -> Result<(usize, Vec<String>), String> {
    let mode = Mode::detect()?;
    let mut wrong = Vec::new();
    for (name, text) in [("init", &seen.init), ("payload", &seen.payload)] {
        let name = if kind.is_empty() { name.to_owned() } else { format!("{kind}-{name}") };
        let file = golden_file(mode, &name);
        if std::env::var_os("COFFERDAM_BLESS").is_some() {
            fs::write(&file, text).map_err(|e| e.to_string())?;
        }
        let wanted = fs::read_to_string(&file).map_err(|e| format!("{name}: {e}"))?;
        wrong.extend(difference(&wanted, text).map(|line| format!("{name}: {line}")));
    }
    Ok((seen.init.lines().count() + seen.payload.lines().count(), wrong))
}

fn golden_file(mode: Mode, name: &str) -> PathBuf {
    let folder = std::env::var_os("COFFERDAM_GOLDEN").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden"));
    folder.join(format!("{name}-{mode}.txt"))
}

/// The lines that are in one text only.
fn difference<'t>(wanted: &'t str, seen: &'t str) -> impl Iterator<Item = String> + 't {
    let missing = wanted.lines().filter(|line| !seen.lines().any(|other| other == *line));
    let new = seen.lines().filter(|line| !wanted.lines().any(|other| other == *line));
    missing.map(|line| format!("-{line}")).chain(new.map(|line| format!("+{line}")))
}

/// Whether leaving something out changes the posture, and the first line that says so.
pub(crate) fn changed(wanted: &Posture, seen: &Posture) -> Option<String> {
    let payload = difference(&wanted.payload, &seen.payload).last();
    payload.or_else(|| difference(&wanted.init, &seen.init).last())
}

/// Makes a sandbox, runs something in it, and looks at both.
pub(crate) async fn take(lab: &mut Lab, wish: &Wish) -> Result<Posture, String> {
    let cell = lab.cell(wish).await.map_err(|e| format!("create: {e}"))?;
    let argv = [PROBE, "--beat", "50"].map(str::to_owned).to_vec();
    let running = cell.sandbox.start(process(argv)).await.map_err(|e| format!("start: {e}"))?;
    let mut stdout = running.take_stdout().ok_or("no stdout")?;
    stdout.read_u8().await.map_err(|e| format!("the payload says nothing: {e}"))?;
    // Init answers when it is done with what came before, such as closing its ends of the payload's pipes.
    let _ = cell.sandbox.read_file(&guest("/workspace/nothing")).await;
    let init = init_of(&cell)?;
    let payload = *children(init).first().ok_or("init has no child")?;
    let posture =
        Posture { init: describe(cell.slot, init, false)?, payload: describe(cell.slot, payload, true)? };
    cell.sandbox.destroy().await.map_err(|e| format!("destroy: {e}"))?;
    Ok(posture)
}

fn describe(slot: u32, pid: u32, is_payload: bool) -> Result<String, String> {
    let read =
        |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).map_err(|e| format!("{name}: {e}"));
    let mut text = String::new();
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_err(|e| e.to_string())?;
    for thread in threads.flatten() {
        let status = fs::read_to_string(thread.path().join("status")).map_err(|e| e.to_string())?;
        status_lines(&mut text, &status, &mode::host_ids(slot));
    }
    for map in ["uid_map", "gid_map"] {
        let fields: Vec<String> =
            read(map)?.split_whitespace().map(|n| relative(n, &mode::host_ids(slot))).collect();
        let _ = writeln!(text, "{map} {}", fields.join(" "));
    }
    for kind in ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"] {
        let link = |who: &str| fs::read_link(format!("/proc/{who}/ns/{kind}"));
        let shown = match (link(&pid.to_string()), link("self").map_err(|e| e.to_string())?) {
            (Ok(its), host) if its == host => "the host's",
            (Ok(_), _) => "own",
            (Err(error), _) if !mode::is_root() && error.kind() == PermissionDenied => CLOSED,
            (Err(error), _) => return Err(error.to_string()),
        };
        let _ = writeln!(text, "namespace {kind} {shown}");
    }
    descriptors(&mut text, pid, slot)?;
    groups(&mut text, &read("cgroup")?, slot);
    for line in read("mountinfo")?.lines() {
        let _ = writeln!(text, "mount {}", mount(line));
    }
    for line in read("limits")?.lines().skip(1) {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        // The others are the machine's own, which nothing sets.
        if SET_LIMITS.iter().any(|name| line.starts_with(name)) {
            let _ = writeln!(text, "limit {line}");
        }
    }
    let _ = writeln!(text, "oom_score_adj {}", read("oom_score_adj")?.trim());
    for name in ["environ", "cmdline"] {
        let Some(bytes) = look_at(pid, &["cat", &format!("/proc/{pid}/{name}")])? else {
            let _ = writeln!(text, "{name} {CLOSED}");
            continue;
        };
        let blank = bytes.iter().all(|byte| *byte == 0);
        let shown = String::from_utf8_lossy(&bytes).replace('\0', " ");
        let _ = writeln!(text, "{name} {}", if blank { "blank" } else { shown.trim() });
    }
    let owner = fs::metadata(format!("/proc/{pid}/status")).map_err(|e| e.to_string())?.uid();
    let _ =
        writeln!(text, "files in /proc belong to {}", relative(&owner.to_string(), &mode::host_ids(slot)));
    session(&mut text, &read("stat")?);
    let allowed = user_namespaces(pid)?;
    let shown = if allowed.is_empty() && !mode::is_root() { CLOSED } else { &allowed };
    let _ = writeln!(text, "user namespaces allowed {shown}");
    if is_payload {
        let cwd = fs::read_link(format!("/proc/{pid}/cwd")).map_err(|e| e.to_string())?;
        let _ = writeln!(text, "cwd {}", cwd.display());
    }
    Ok(text)
}

/// An id of the sandbox's range as `+n`, any other as it is.
fn relative(number: &str, ids: &Range<u32>) -> String {
    match number.parse::<u32>() {
        Ok(n) if ids.contains(&n) => format!("+{}", n - ids.start),
        _ => number.to_owned(),
    }
}

fn status_lines(text: &mut String, status: &str, ids: &Range<u32>) {
    const FIELDS: [&str; 14] = [
        "Name",
        "Umask",
        "Uid",
        "Gid",
        "Groups",
        "Threads",
        "CapInh",
        "CapPrm",
        "CapEff",
        "CapBnd",
        "CapAmb",
        "NoNewPrivs",
        "Seccomp",
        "Seccomp_filters",
    ];
    for line in status.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        if FIELDS.contains(&name) {
            let values: Vec<String> = value.split_whitespace().map(|word| relative(word, ids)).collect();
            let _ = writeln!(text, "{name} {}", values.join(" "));
        }
    }
}

/// The groups that count: the sandbox's own, or none of ours.
fn groups(text: &mut String, all: &str, slot: u32) {
    let own = all.lines().find_map(|line| line.strip_prefix("0::"));
    if let (Layout::V2 { .. }, Some(own)) = (mode::layout(), own) {
        let base = mode::group_path();
        let shown = match own.strip_prefix(base.trim_end_matches('s')) {
            Some(group) if group == format!("s{slot}") => "sN",
            Some(group) => group,
            None => "none of ours",
        };
        let _ = writeln!(text, "cgroup {shown}");
        return;
    }
    for controller in ["memory", "pids", "cpu", "cpuacct", "devices", "freezer"] {
        let path = all.lines().find_map(|line| {
            let (names, path) = line.split_once(':')?.1.split_once(':')?;
            names.split(',').any(|name| name == controller).then_some(path)
        });
        let shown = match path {
            Some(path) if path.starts_with("/cofferdam") => path.replace(&format!("/s{slot}"), "/sN"),
            Some(_) => "none of ours".to_owned(),
            None => "no such controller".to_owned(),
        };
        let _ = writeln!(text, "cgroup {controller} {shown}");
    }
}

/// What each descriptor is, without the numbers that the kernel draws.
fn descriptors(text: &mut String, pid: u32, slot: u32) -> Result<(), String> {
    let listed =
        look_at(pid, &["find", &format!("/proc/{pid}/fd"), "-mindepth", "1", "-printf", "%f %l\\n"])?;
    let Some(listed) = listed else {
        let _ = writeln!(text, "descriptors {CLOSED}");
        return Ok(());
    };
    let mut all = Vec::new();
    for line in String::from_utf8_lossy(&listed).lines() {
        let (number, target) = line.split_once(' ').ok_or("a descriptor without a target")?;
        let kind = target.split_once(":[").map_or(target, |(kind, _)| kind);
        let kind = match kind.strip_suffix(&format!("/s{slot}")) {
            Some(base) => format!("{base}/sN"),
            None => kind.replace(&format!("/s{slot}/"), "/sN/"),
        };
        // Init's own get whatever number is free.
        let is_stdio = number.parse().is_ok_and(|number: u32| number < 3);
        all.push(if is_stdio { format!("{number} {kind}") } else { kind });
    }
    all.sort();
    for line in all {
        let _ = writeln!(text, "descriptor {line}");
    }
    Ok(())
}

/// What stands for something that the kernel keeps from this user; to root it keeps nothing.
const CLOSED: &str = "closed to this user";

/// Runs a program that looks at a process: without root, as root of the process's own user namespace, which this
/// user may enter. `None` where the process is closed even so.
fn look_at(pid: u32, argv: &[&str]) -> Result<Option<Vec<u8>>, String> {
    let mut command = if mode::is_root() {
        std::process::Command::new(argv[0])
    } else {
        let mut command = std::process::Command::new("nsenter");
        command.args(["--user", "--target", &pid.to_string(), argv[0]]);
        command
    };
    let output = command.args(&argv[1..]).output().map_err(|e| format!("{}: {e}", argv[0]))?;
    let error = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(Some(output.stdout)),
        false if !mode::is_root() && error.contains("Permission denied") => Ok(None),
        false => Err(format!("{}: {error}", argv[0])),
    }
}

/// Where, with which options, of what kind; without the kernel's numbers.
fn mount(line: &str) -> String {
    let (left, right) = line.split_once(" - ").unwrap_or((line, ""));
    let left: Vec<&str> = left.split(' ').collect();
    let right: Vec<&str> = right.split(' ').collect();
    let keep = |option: &&str| {
        !["uid=", "gid=", "size=", "nr_inodes="].iter().any(|start| option.starts_with(start))
    };
    let options: Vec<&str> = right.get(2).unwrap_or(&"").split(',').filter(keep).collect();
    let has = |start: &str| right.get(2).is_some_and(|all| all.split(',').any(|o| o.starts_with(start)));
    let limits = match (has("size="), has("nr_inodes=")) {
        (true, true) => " limited",
        (true, false) => " limited in bytes",
        (false, true) => " limited in files",
        (false, false) => "",
    };
    let field = |i: usize| left.get(i).copied().unwrap_or("");
    let is_host = field(3).starts_with("/run/") || field(3).starts_with("/usr");
    let root = if is_host { "(of the host)" } else { field(3) };
    format!("{} {root} {} {} {}{limits}", field(4), field(5), right[0], options.join(","))
}

fn session(text: &mut String, stat: &str) {
    let fields: Vec<&str> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
    let pid = stat.split(' ').next().unwrap_or("");
    let same = |i: usize| if fields.get(i) == Some(&pid) { "own" } else { "another's" };
    let _ = writeln!(text, "group {} session {}", same(2), same(3));
}

/// What the kernel would let this process's user namespace have of further ones.
fn user_namespaces(pid: u32) -> Result<String, String> {
    let mut command = std::process::Command::new("nsenter");
    command.args([
        "-U",
        "--preserve-credentials",
        "-t",
        &pid.to_string(),
        "cat",
        "/proc/sys/user/max_user_namespaces",
    ]);
    let output = command.output().map_err(|e| format!("nsenter: {e}"))?;
    let own = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(if text == own.trim() || text.len() > 4 { "as on the host".to_owned() } else { text })
}

/// Init before anything was asked of it: its memory is closed already.
pub(crate) async fn at_rest(lab: &mut Lab) -> Result<Looks, String> {
    use cofferdam_core::Control;
    let mut looks = Vec::new();
    for wish in [Wish::default(), Wish::without(&[Control::InitProtected])] {
        let cell = lab.bare(&wish).await.map_err(|e| e.to_string())?;
        let init = init_of(&cell)?;
        let owner = fs::metadata(format!("/proc/{init}/status")).map_err(|e| e.to_string())?.uid();
        cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
        looks.push(match owner {
            0 => held("init's files belong to the host's root: it cannot be dumped or traced"),
            _ => broke(format!("init's files belong to {}", relative(&owner.to_string(), &cell.ids()))),
        });
    }
    let control = looks.pop().unwrap_or(Seen::Error(String::new()));
    Ok((looks.remove(0), control))
}
