//! The fuzzer's committed corpus of archives, replayed on stable; see fuzz/README.md.

#[path = "../../../fuzz/bodies/folder_zip.rs"]
mod folder_zip;
#[path = "../../../fuzz/bodies/image_tar.rs"]
mod image_tar;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use cofferdam_images::tar::{Kind, Streamed, TarReader};

#[test]
fn image_tar() {
    replay::replay("image_tar", image_tar::run);
}

/// Every kind of entry, and both a whole and a refused archive, are among the seeds.
#[test]
fn the_corpus_still_has_every_kind() {
    let mut kinds = Vec::new();
    let (mut whole, mut refused) = (0, 0);
    for (_, input) in replay::corpus("image_tar") {
        let mut archive = TarReader::new(Streamed(&input[..]));
        loop {
            match archive.next_entry() {
                Ok(Some(entry)) => kinds.push(entry.kind),
                Ok(None) => break whole += 1,
                Err(_) => break refused += 1,
            }
        }
    }
    for kind in [Kind::File, Kind::Folder, Kind::Symlink, Kind::HardLink, Kind::Special] {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
    assert!(whole > 0 && refused > 0, "{whole} whole, {refused} refused");
}

#[test]
fn folder_zip() {
    replay::replay("folder_zip", folder_zip::run);
}

/// Whole archives of each form are among the seeds, and refused ones.
#[test]
fn the_corpus_of_zips_has_whole_and_refused_ones() {
    let whole = |name: &str| {
        let (_, input) =
            replay::corpus("folder_zip").into_iter().find(|(path, _)| path.ends_with(name)).unwrap();
        folder_zip::read(&input[..]).1
    };
    for name in ["nothing", "deflated", "stored", "streamed", "dot-dot"] {
        assert!(whole(name), "{name}");
    }
    for name in ["empty", "cut", "no-end", "renamed-at-the-end", "encrypted", "unknown-method", "before"] {
        assert!(!whole(name), "{name}");
    }
}
