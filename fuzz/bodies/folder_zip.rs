//! The archive of a folder that is sent to a session: anybody may have made it.

use cofferdam_images::zip::{ZipItem, ZipReader};
use std::io::Read;

/// More than this is not read of one entry: what small archives unpack to is for whoever unpacks them to bound.
const MOST: u64 = 1 << 20;

pub(crate) fn run(data: &[u8]) {
    let whole = read(data);
    // How the bytes come must not change what they say.
    assert_eq!(whole, read(OneByOne(data)));
}

type Found = Vec<(Vec<u8>, Vec<u8>)>;

/// The entries, and whether the archive was whole.
pub(crate) fn read(source: impl Read) -> (Found, bool) {
    let mut archive = ZipReader::new(source);
    let (mut found, mut modes) = (Found::new(), 0);
    while let Ok(item) = archive.next_item() {
        match item {
            None => {
                assert_eq!(modes, found.len(), "every entry was named at the end, once");
                return (found, true);
            }
            Some(ZipItem::Mode { path, .. }) => {
                assert!(found.iter().any(|(known, _)| *known == path));
                modes += 1;
            }
            Some(ZipItem::Entry(entry)) => {
                assert!(entry.path.len() <= 4095 && modes == 0);
                let mut bytes = Vec::new();
                let is_read = archive.data().take(MOST).read_to_end(&mut bytes).is_ok();
                assert!(!entry.is_folder || bytes.is_empty() || !is_read);
                found.push((entry.path, if is_read { bytes } else { Vec::new() }));
            }
        }
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
