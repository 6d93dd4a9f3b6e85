//! What the disk takes to keep a few bytes: a promise of durability cannot be quicker.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::failure::{Doing, Result};
use crate::stats::Summary;

const SAMPLES: usize = 200;
/// About what a small commit writes.
const BYTES: [u8; 4096] = [7; 4096];

pub(super) fn fsync(folder: &Path) -> Result<Option<Summary>> {
    fs::create_dir_all(folder).doing(format_args!("making {}", folder.display()))?;
    let path = folder.join("fsync");
    let mut file =
        OpenOptions::new().create(true).append(true).open(&path).doing("making a file to be synced")?;
    let mut samples: Vec<Duration> = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let start = Instant::now();
        file.write_all(&BYTES).and_then(|()| file.sync_data()).doing("syncing a file")?;
        samples.push(start.elapsed());
    }
    fs::remove_file(&path).doing("removing the synced file")?;
    Ok(Summary::of(&samples))
}
