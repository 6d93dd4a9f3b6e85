//! The fuzzer's committed corpus of archives, replayed on stable; see fuzz/README.md.

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
