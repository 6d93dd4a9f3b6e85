//! Secrets of the host and of neighbours, looked for from both sides.

use super::{Looks, broke, held};
use crate::inventory::children;
use crate::lab::{Cell, Lab, Launched, Wish, create, process};
use crate::row::Seen;
use cofferdam_backend::ExitStatus;
use cofferdam_core::Control;
use cofferdam_linux::ControlSet;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use tokio::io::AsyncReadExt;

/// Init is a copy of the launcher: nothing that the server had may be in it.
pub(crate) async fn init(lab: &mut Lab) -> Result<Looks, String> {
    let mut looks = Vec::new();
    for wish in [Wish::default(), Wish::without(&[Control::CleanEnvironment])] {
        let cell = lab.cell(&wish).await.map_err(|e| e.to_string())?;
        let pid = init_of(&cell)?;
        let found = secrets_in(pid, &lab.plants.nonce)?;
        cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
        looks.push(if found.is_empty() {
            held("no nonce in init's environment, command line and stack")
        } else {
            broke(format!("nonce in init's {}", found.join(", ")))
        });
    }
    let control = looks.pop().unwrap_or(Seen::Error(String::new()));
    Ok((looks.remove(0), control))
}

/// The sandbox's init, as the host numbers it.
pub(crate) fn init_of(cell: &Cell) -> Result<u32, String> {
    let first = cell.ids().start;
    let is_it = |pid: &u32| {
        let map = fs::read_to_string(format!("/proc/{pid}/uid_map")).unwrap_or_default();
        map.split_whitespace().nth(1) == Some(&first.to_string())
    };
    let inits = children(cell.launcher);
    match inits.iter().find(|pid| is_it(pid)).or(inits.last()) {
        Some(pid) => Ok(*pid),
        None => Err("the launcher has no child".to_owned()),
    }
}

/// Where in a process the text is: what the kernel shows of it, and its stack.
fn secrets_in(pid: u32, nonce: &str) -> Result<Vec<String>, String> {
    let has = |bytes: &[u8]| bytes.windows(nonce.len()).any(|window| window == nonce.as_bytes());
    let mut found = Vec::new();
    for name in ["environ", "cmdline"] {
        if has(&fs::read(format!("/proc/{pid}/{name}")).map_err(|e| format!("{name}: {e}"))?) {
            found.push(name.to_owned());
        }
    }
    if has(&mapping(pid, "[stack]")?) {
        found.push("stack".to_owned());
    }
    Ok(found)
}

/// The bytes of a mapping, by the name that the kernel gives it; nothing where there is none.
pub(crate) fn mapping(pid: u32, name: &str) -> Result<Vec<u8>, String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|e| format!("maps: {e}"))?;
    let mut bytes = Vec::new();
    let mut memory = File::open(format!("/proc/{pid}/mem")).map_err(|e| format!("mem: {e}"))?;
    for line in maps.lines().filter(|line| line.ends_with(name)) {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let Some((Some(from), Some(to))) = range.map(|(a, b)| (number(a), number(b))) else { continue };
        let mut part = vec![0; (to - from) as usize];
        let read = memory.seek(SeekFrom::Start(from)).and_then(|_| memory.read(&mut part));
        part.truncate(read.unwrap_or(0));
        bytes.extend(part);
    }
    Ok(bytes)
}

/// What one tenant leaves, the next one on the same ids must not find.
pub(crate) async fn two_tenants(lab: &mut Lab) -> Result<Looks, String> {
    const PLANT: [&str; 3] = ["leak-02-plant", "{nonce_a}", "{nonce_b}"];
    const SEEK: [&str; 3] = ["leak-02-seek", "{nonce_a}", "{nonce_b}"];
    let mut slots = Vec::new();
    let mut wall = Seen::Error("nothing was tried".to_owned());
    for argv in [PLANT, SEEK] {
        if lab.works.is_some() {
            // One after the other: what of theirs is used again is the backend's to choose.
            let output = lab.run(&Wish::default(), &argv).await?;
            wall = if output.held() { held(output.summary()) } else { broke(output.summary()) };
            continue;
        }
        // A new backend begins with the same slot.
        let mut launched = lab.launch(ControlSet::EMPTY, false).map_err(|e| e.to_string())?;
        let cell = fresh(lab, &launched).await?;
        slots.push(cell.slot);
        let output = lab.run_in(&cell, &argv).await?;
        wall = if output.held() { held(output.summary()) } else { broke(output.summary()) };
        cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
        drop(cell);
        launched.child.kill().and_then(|()| launched.child.wait()).map_err(|e| e.to_string())?;
        if matches!(wall, Seen::Broke(_)) {
            break;
        }
    }
    if slots.iter().any(|slot| *slot != slots[0]) {
        return Err(format!("the slot was not used again: {slots:?}"));
    }
    let cell = lab.cell(&Wish::default()).await.map_err(|e| e.to_string())?;
    lab.run_in(&cell, &PLANT).await?;
    let output = lab.run_in(&cell, &SEEK).await?;
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    Ok((wall, if output.broke() { broke("found in the same sandbox") } else { held(output.summary()) }))
}

async fn fresh(lab: &mut Lab, launched: &Launched) -> Result<Cell, String> {
    let cell = create(launched, &Wish::default()).await.map_err(|e| e.to_string())?;
    lab.slots.insert(cell.slot);
    lab.bring_probe(&cell).await.map_err(|e| e.to_string())?;
    Ok(cell)
}

/// A neighbour holds a lock on a file of the root, and listens on an abstract socket.
const HOLDER: &str = "import fcntl,socket,time,sys\n\
    f=open('/usr/bin/env','rb'); fcntl.flock(f,fcntl.LOCK_EX)\n\
    s=socket.socket(socket.AF_UNIX); s.bind('\\0neighbour'); s.listen()\n\
    print('ready',flush=True); time.sleep(30)";

pub(crate) async fn neighbours(lab: &mut Lab) -> Result<Looks, String> {
    let mut looks = Vec::new();
    for wish in [Wish::default(), Wish::without(&[Control::PrivateRoot])] {
        let holder = lab.bare(&wish).await.map_err(|e| e.to_string())?;
        let argv = ["/usr/bin/python3", "-c", HOLDER].map(str::to_owned).to_vec();
        let process = holder.sandbox.start(process(argv)).await.map_err(|e| e.to_string())?;
        let mut ready = [0; 6];
        let mut stdout = process.take_stdout().ok_or("no stdout")?;
        stdout.read_exact(&mut ready).await.map_err(|e| format!("the neighbour did not start: {e}"))?;
        let cell = lab.cell(&wish).await.map_err(|e| e.to_string())?;
        let lock = lab.run_in(&cell, &["leak-07-flock", "/usr/bin/env"]).await?;
        let socket = lab.run_in(&cell, &["leak-07-abstract", "neighbour"]).await?;
        for cell in [holder, cell] {
            cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
        }
        let text = format!("{}; {}", lock.summary(), socket.summary());
        looks.push(if lock.held() && socket.held() { held(text) } else { broke(text) });
    }
    let control = looks.pop().unwrap_or(Seen::Error(String::new()));
    Ok((looks.remove(0), control))
}

const SIGSEGV: i32 = 11;

/// Where the test VM's collector of crashes leaves a line for each.
const CAUGHT: &str = "/run/cores/caught";

/// A crash where core_pattern is a pipe: the kernel starts a program of the host with the sandbox's memory as its
/// input, whatever the sandbox is limited to, unless the limit is exactly one byte.
pub(crate) async fn piped_core(lab: &mut Lab) -> Result<Looks, String> {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").map_err(|e| e.to_string())?;
    if !pattern.starts_with("|/run/catch-core") {
        return Err(format!("not the VM's collector: {pattern}"));
    }
    let mut looks = Vec::new();
    for wish in [Wish::default(), Wish::without(&[Control::CoreDumpsOff])] {
        let before = fs::read_to_string(CAUGHT).unwrap_or_default();
        let cell = lab.bare(&wish).await.map_err(|e| e.to_string())?;
        let argv = ["/bin/sh", "-c", "kill -SEGV $$"].map(str::to_owned).to_vec();
        let crashed = cell.sandbox.start(process(argv)).await.map_err(|e| e.to_string())?;
        let status = crashed.wait().await.map_err(|e| e.to_string())?;
        // The kernel waits for the collector before it lets the process go, so that what is caught is there by now.
        cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
        let after = fs::read_to_string(CAUGHT).unwrap_or_default();
        looks.push(match after.strip_prefix(&before) {
            _ if status != ExitStatus::Signaled(SIGSEGV) => Seen::Error(format!("no crash: {status:?}")),
            Some("") => held("the collector was not called"),
            _ => broke(format!("the collector was handed the memory of a process: {}", after.trim_end())),
        });
    }
    let control = looks.pop().unwrap_or(Seen::Error(String::new()));
    Ok((looks.remove(0), control))
}
