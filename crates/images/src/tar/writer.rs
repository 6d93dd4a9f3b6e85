//! The headers of an archive of our own.

use super::BLOCK;
use super::reader::Kind;

/// What ends an archive.
pub const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// What is known of an entry that is to be written.
#[derive(Debug)]
pub struct Written<'e> {
    pub path: &'e [u8],
    pub link: &'e [u8],
    pub kind: Kind,
    pub mode: u32,
    pub uid: u64,
    pub seconds: u64,
    pub size: u64,
}

/// An entry's header, with GNU's long names before it where it needs them.
pub fn header(entry: &Written<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BLOCK);
    for (kind, name) in [(b'L', entry.path), (b'K', entry.link)] {
        if name.len() > 100 {
            let size = name.len() as u64 + 1;
            bytes.extend(block(
                b"././@LongLink",
                b"",
                kind,
                &Written { mode: 0o644, uid: 0, seconds: 0, size, ..*entry },
            ));
            bytes.extend(name);
            bytes.resize(bytes.len() + 1, 0);
            bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        }
    }
    let kind = match entry.kind {
        Kind::File => b'0',
        Kind::HardLink => b'1',
        Kind::Symlink => b'2',
        Kind::Folder => b'5',
        Kind::Special => b'6',
    };
    bytes.extend(block(entry.path, entry.link, kind, entry));
    bytes
}

fn block(path: &[u8], link: &[u8], kind: u8, entry: &Written<'_>) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &path[..path.len().min(100)]);
    put(100, format!("{:07o}", entry.mode & 0o7777).as_bytes());
    put(108, &number(entry.uid, 8));
    put(116, b"0000000");
    put(124, &number(entry.size, 12));
    put(136, &number(entry.seconds, 12));
    put(148, b"        ");
    put(156, &[kind]);
    put(157, &link[..link.len().min(100)]);
    put(257, b"ustar  \0");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// Octal where it fits, else GNU's form.
fn number(value: u64, width: usize) -> Vec<u8> {
    let octal = format!("{value:0digits$o}\0", digits = width - 1);
    if octal.len() == width {
        return octal.into_bytes();
    }
    let mut bytes = vec![0; width];
    bytes[0] = 0x80;
    let big = value.to_be_bytes();
    let from = big.len().saturating_sub(width - 1);
    let at = width - (big.len() - from);
    bytes[at..].copy_from_slice(&big[from..]);
    bytes
}
