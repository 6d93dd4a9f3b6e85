//! The archive of an image's layer: anybody may have made it, and it becomes the root of sandboxes.

use cofferdam_images::tar::{Entry, Kind, Source, Streamed, TarReader};
use std::io::Read;

pub(crate) fn run(data: &[u8]) {
    let whole = read(Streamed(data), data.len());
    // How the bytes come must not change what they say.
    let slow = read(Streamed(OneByOne(data)), data.len());
    assert_eq!(whole, slow);
}

type Found = (Vec<(Entry, Vec<u8>)>, bool);

fn read(source: impl Source, length: usize) -> Found {
    let mut archive = TarReader::new(source);
    let mut found = Vec::new();
    let mut total = 0;
    while let Ok(entry) = archive.next_entry() {
        let Some(entry) = entry else { return (found, true) };
        assert!(entry.path.len() <= 4095 && entry.link.len() <= 4095);
        assert!(entry.kind == Kind::File || entry.size == 0);
        let mut bytes = Vec::new();
        let is_whole = archive.data().read_to_end(&mut bytes).is_ok();
        assert!(!is_whole || bytes.len() as u64 == entry.size);
        total += bytes.len();
        assert!(total <= length && archive.position() <= length as u64);
        found.push((entry, bytes));
    }
    (found, false)
}

struct OneByOne<'d>(&'d [u8]);

impl Read for OneByOne<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let one = buffer.len().min(1);
        self.0.read(&mut buffer[..one])
    }
}
