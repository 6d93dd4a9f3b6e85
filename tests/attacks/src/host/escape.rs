//! Attacks on how a process is started and on what it is started from.

use super::{Looks, broke, held, own_code};
use crate::lab::{Lab, PROBE, Wish, guest, process};
use crate::probe;
use crate::row::{Seen, judge};
use cofferdam_backend::{BackendError, ExitStatus, ProcessSpec};
use cofferdam_core::{Control, GuestPath};
use std::fs;
use std::io::Cursor;
use std::os::unix::fs::symlink;

/// More descriptors than init ever has.
pub(crate) const DESCRIPTORS: u32 = 64;

/// A working folder that is a descriptor, by request and by a link in the image.
pub(crate) async fn cwd_matrix(lab: &mut Lab) -> Result<Looks, String> {
    let wish = Wish { image: Some(lab.plants.image.clone()), ..Wish::default() };
    for n in 0..DESCRIPTORS {
        let link = lab.plants.image.join(format!("fd{n}"));
        if !link.is_symlink() {
            symlink(format!("/proc/self/fd/{n}"), link).map_err(|e| e.to_string())?;
        }
    }
    let cell = lab.cell(&wish).await.map_err(|e| e.to_string())?;
    let (mut refused, mut harmless) = (0, 0);
    for n in 0..DESCRIPTORS {
        if GuestPath::parse("workdir", &format!("/proc/self/fd/{n}")).is_ok() {
            return Ok((broke(format!("/proc/self/fd/{n} is taken as a working folder")), own_code()));
        }
        let fill = |text| lab.plants.fill(text, Some(&cell.parent_ids)).map_err(|e| e.to_string());
        let argv = [
            PROBE.to_owned(),
            "escape-06-cwd".to_owned(),
            fill("{host_cmdline}")?,
            fill("{nonce_a}")?,
            fill("{nonce_b}")?,
        ];
        let spec = ProcessSpec { cwd: guest(&format!("/fd{n}")), ..process(argv.to_vec()) };
        match cell.sandbox.start(spec).await {
            Err(_) => refused += 1,
            Ok(started) => {
                let output = probe::finish(&*started, &cell).await?;
                if !output.held() {
                    return Ok((broke(format!("/fd{n}: {}", output.summary())), own_code()));
                }
                harmless += 1;
            }
        }
    }
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    Ok((held(format!("{refused} refused, {harmless} harmless")), own_code()))
}

/// The launcher's own program must not be what a process becomes.
pub(crate) async fn exec_self(lab: &mut Lab) -> Result<Looks, String> {
    let wall = exec_self_in(lab, &Wish::default()).await?;
    let control = exec_self_in(lab, &Wish::without(&[Control::Landlock])).await?;
    Ok((wall, control))
}

async fn exec_self_in(lab: &mut Lab, wish: &Wish) -> Result<Seen, String> {
    let cell = lab.cell(wish).await.map_err(|e| e.to_string())?;
    let script = Box::new(Cursor::new(b"#!/proc/self/exe\n".to_vec()));
    cell.sandbox.write_file(&guest("/workspace/script"), 0o755, script).await.map_err(|e| e.to_string())?;
    let mut said = Vec::new();
    for program in ["/proc/self/exe", "/proc/thread-self/exe", "/workspace/script"] {
        match cell.sandbox.start(process(vec![program.to_owned(), "0".to_owned()])).await {
            Err(error) => said.push(error.to_string()),
            Ok(started) => {
                let output = probe::finish(&*started, &cell).await?;
                return Ok(broke(format!("{program} was executed: {:?}", output.status)));
            }
        }
    }
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    Ok(held(said.join("; ")))
}

/// Images in which a place that is mounted over is a link out.
pub(crate) async fn hostile_image(lab: &mut Lab) -> Result<Looks, String> {
    let mut said = Vec::new();
    for (i, name) in
        ["dev", "proc", "dev/null", "dev/console", "tmp", "workspace", "run", "etc"].iter().enumerate()
    {
        let image = lab.plants.folder.join(format!("hostile-{i}"));
        fs::create_dir_all(image.join(name).parent().unwrap_or(&image)).map_err(|e| e.to_string())?;
        symlink(&lab.plants.folder, image.join(name)).map_err(|e| e.to_string())?;
        let wish = Wish { image: Some(image), ..Wish::default() };
        match lab.bare(&wish).await {
            Err(BackendError::Invalid(error)) => said.push(error.to_string()),
            Err(error) => return Ok((Seen::Error(format!("/{name}: {error}")), own_code())),
            Ok(_) => return Ok((broke(format!("an image with /{name} as a link was taken")), own_code())),
        }
    }
    Ok((held(format!("{} images refused: {}", said.len(), said[0])), own_code()))
}

/// Files of the host that are bound into sandboxes are the same after the page cache was attacked.
pub(crate) async fn hashes(lab: &mut Lab) -> Result<Looks, String> {
    let files = match &lab.works {
        None => ["/usr/bin/true".into(), "/usr/bin/env".into(), lab.plants.image.join("sacrifice")],
        Some(works) => ["usr/bin/true", "usr/bin/env", "sacrifice"].map(|name| works.root.join(name)),
    };
    let read = || -> Result<Vec<Vec<u8>>, String> {
        files.iter().map(|file| fs::read(file).map_err(|e| e.to_string())).collect()
    };
    let before = read()?;
    let mut said = Vec::new();
    for (image, target) in [(Some(lab.plants.image.clone()), "/sacrifice"), (None, "/usr/bin/true")] {
        let output = lab.run(&Wish { image, ..Wish::default() }, &["escape-15", target]).await?;
        if !output.held() {
            return Ok((broke(output.summary()), Seen::Without("needs a kernel with the bug".to_owned())));
        }
        said.push(output.summary());
    }
    let same = read()? == before;
    let wall = if same { held(said.join("; ")) } else { broke("a file of the host has changed") };
    Ok((wall, Seen::Without("needs a kernel with the bug".to_owned())))
}

/// Random calls leave no trace in the kernel's log.
pub(crate) async fn log(lab: &mut Lab) -> Result<Looks, String> {
    let seconds = if lab.quick { "5" } else { "60" };
    let seed = (std::process::id() + 1).to_string();
    let before = kernel_log()?;
    let output = lab.run(&Wish::default(), &["escape-21", &seed, seconds]).await?;
    let after = kernel_log()?;
    let new: Vec<&String> = after.iter().filter(|line| !before.contains(line)).collect();
    let bad =
        ["WARNING", "BUG", "Oops", "general protection", "KASAN", "soft lockup", "hung task", "Call Trace"];
    let found = new.iter().find(|line| bad.iter().any(|word| line.contains(word)));
    let wall = match found {
        Some(line) => broke(format!("seed {seed}: {line}")),
        None if output.held() => {
            held(format!("seed {seed}: {}; {} new lines in the log", output.summary(), new.len()))
        }
        None => Seen::Error(format!("seed {seed}: {}", output.summary())),
    };
    Ok((wall, Seen::Without("the probe refuses to run without a filter".to_owned())))
}

fn kernel_log() -> Result<Vec<String>, String> {
    let output = std::process::Command::new("dmesg").output().map_err(|e| format!("dmesg: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// What a process exits with is what is reported, whatever it did before.
pub(crate) async fn status(lab: &mut Lab) -> Result<Looks, String> {
    let cell = lab.cell(&Wish::default()).await.map_err(|e| e.to_string())?;
    let script = format!("{PROBE} priv-04; for n in 3 4 5 6 7 8 9; do echo 0 >&$n; done 2>/dev/null; exit 7");
    let argv = ["/bin/sh", "-c", &script].map(str::to_owned).to_vec();
    let started = cell.sandbox.start(process(argv)).await.map_err(|e| e.to_string())?;
    let output = probe::finish(&*started, &cell).await?;
    cell.sandbox.destroy().await.map_err(|e| e.to_string())?;
    let checked = if output.status == ExitStatus::Exited(7) {
        Ok("reported as 7".to_owned())
    } else {
        Err(output.summary())
    };
    Ok((judge(checked), Seen::Without("leaving out closed_fds is priv-04".to_owned())))
}
