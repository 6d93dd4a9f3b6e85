//! A large image into an empty store, beside `tar -x` of its only layer and a sync of what that wrote, as an import is on
//! the disk when it ends; and what a second image with the same layer adds to the store's disk.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::rows::import;
use super::{BackendPlan, Row, Shared};
use crate::beside::Beside;
use crate::contestants::quiet;
use crate::failure::{Doing, Failure, Result};
use crate::progress::Progress;
use crate::workplace::Workplace;

/// The new layer of the second image.
const NEW_BYTES: u64 = 8 << 20;

pub(super) fn measure(
    program: &Path,
    place: &Workplace,
    plan: BackendPlan,
    progress: &mut Progress,
) -> Result<(Beside<Row>, Shared)> {
    let folder = place.cache("import");
    clear(&folder)?;
    fs::create_dir_all(&folder).doing(format_args!("creating {}", folder.display()))?;
    let measured = within(&folder, program, plan, progress);
    clear(&folder)?;
    measured
}

fn within(
    folder: &Path,
    program: &Path,
    plan: BackendPlan,
    progress: &mut Progress,
) -> Result<(Beside<Row>, Shared)> {
    progress.show("making an image");
    let (base, upper) = (folder.join("base.tar"), folder.join("upper.tar"));
    make(folder, &base, plan.image_files, plan.image_mib << 20)?;
    make(folder, &upper, 1, NEW_BYTES)?;
    let (first, second) = (folder.join("first"), folder.join("second"));
    layout(&first, &[&base])?;
    layout(&second, &[&base, &upper])?;
    let (store, tree) = (folder.join("store"), folder.join("tree"));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // What is removed has to be written as well; nobody's time is to have another's in it.
    let fresh = |path: &Path| clear(path).and_then(|()| synced(folder));
    for round in 0..plan.imports {
        progress.at("import", round, plan.imports);
        fresh(&tree)?;
        fresh(&store)?;
        theirs.push(extract(&base, &tree)?);
        fresh(&tree)?;
        let start = Instant::now();
        import(program, &store, &first, "first")?;
        ours.push(start.elapsed());
    }
    let before = used(&store)?;
    import(program, &store, &second, "second")?;
    let shared = Shared {
        first_bytes: before,
        second_bytes: used(&store)?.saturating_sub(before),
        new_bytes: NEW_BYTES,
    };
    Ok((Beside::new(Row::Import, Row::Import.command(), &ours, &theirs)?, shared))
}

fn clear(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).doing(format_args!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Makes an archive of so many files, together so many bytes that no disk can make fewer of.
fn make(folder: &Path, archive: &Path, files: u64, bytes: u64) -> Result<()> {
    let root = folder.join("root");
    let mut random = File::open("/dev/urandom").doing("opening /dev/urandom")?;
    let mut piece = vec![0; (bytes / files.max(1)) as usize];
    for i in 0..files {
        let place = root.join(format!("opt/{files}/{}", i / 100));
        fs::create_dir_all(&place).doing(format_args!("creating {}", place.display()))?;
        random.read_exact(&mut piece).doing("reading /dev/urandom")?;
        let path = place.join(i.to_string());
        fs::write(&path, &piece).doing(format_args!("writing {}", path.display()))?;
    }
    let mut tar = quiet("/usr/bin/tar");
    tar.arg("-C").arg(&root).arg("-cf").arg(archive).arg(".");
    succeed(tar)?;
    clear(&root)
}

/// An OCI layout with these layers. The archives are linked, not copied.
fn layout(folder: &Path, layers: &[&Path]) -> Result<()> {
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs).doing(format_args!("creating {}", blobs.display()))?;
    let (mut digests, mut descriptors) = (Vec::new(), Vec::new());
    for layer in layers {
        let (digest, size) = digest(layer)?;
        fs::hard_link(layer, blobs.join(&digest)).doing("linking a layer")?;
        digests.push(format!("sha256:{digest}"));
        descriptors.push(descriptor("application/vnd.oci.image.layer.v1.tar", &digest, size));
    }
    let put = |value: &Value| -> Result<(String, u64)> {
        let text = value.to_string();
        let digest = hex(&Sha256::digest(text.as_bytes()));
        fs::write(blobs.join(&digest), &text).doing("writing a blob")?;
        Ok((digest, text.len() as u64))
    };
    let rootfs = json!({"type": "layers", "diff_ids": digests});
    let (config, size) =
        put(&json!({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": rootfs}))?;
    let config = descriptor("application/vnd.oci.image.config.v1+json", &config, size);
    let (manifest, size) = put(&json!({"schemaVersion": 2, "config": config, "layers": descriptors}))?;
    let manifest = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest, size);
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    let write =
        |name: &str, value: &Value| fs::write(folder.join(name), value.to_string()).doing("writing a layout");
    write("index.json", &index)?;
    write("oci-layout", &json!({"imageLayoutVersion": "1.0.0"}))
}

fn descriptor(media_type: &str, digest: &str, size: u64) -> Value {
    json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size})
}

fn digest(path: &Path) -> Result<(String, u64)> {
    let mut file = File::open(path).doing(format_args!("opening {}", path.display()))?;
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer).doing("reading a layer")? {
            0 => return Ok((hex(&hash.finalize()), size)),
            n => {
                hash.update(&buffer[..n]);
                size += n as u64;
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn extract(archive: &Path, tree: &Path) -> Result<Duration> {
    fs::create_dir(tree).doing(format_args!("creating {}", tree.display()))?;
    let mut tar = quiet("/usr/bin/tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(tree);
    let start = Instant::now();
    succeed(tar)?;
    synced(tree)?;
    Ok(start.elapsed())
}

/// The whole filesystem of a folder, as an import does it.
fn synced(folder: &Path) -> Result<()> {
    let mut sync = quiet("/usr/bin/sync");
    sync.arg("-f").arg(folder);
    succeed(sync)
}

/// What a folder takes on its disk.
fn used(folder: &Path) -> Result<u64> {
    synced(folder)?;
    let output =
        Command::new("/usr/bin/du").args(["-s", "--block-size=1"]).arg(folder).output().doing("du")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let bytes = text.split_whitespace().next().and_then(|word| word.parse().ok());
    bytes.ok_or_else(|| Failure::new(format!("du of {} says nothing", folder.display())))
}

fn succeed(mut command: Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().doing(format_args!("starting {name}"))?;
    if status.success() { Ok(()) } else { Err(Failure::new(format!("{name} ended with {status}"))) }
}
