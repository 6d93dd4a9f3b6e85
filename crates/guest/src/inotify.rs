//! What an instance of inotify tells, as bytes that come from a helper.

use cofferdam_backend::watching::Told;
use std::io;

/// The watch, what happened, the cookie, and how long the name is.
const HEADER: usize = 16;

/// A name has at most 255 bytes; the kernel fills up to a multiple of its header.
const MAX_NAME: usize = 512;

/// Takes the whole events off the front. Bytes that are none are an error for good.
pub fn take(buffer: &mut Vec<u8>) -> io::Result<Vec<Told>> {
    let mut told = Vec::new();
    let mut rest = &buffer[..];
    while let Some((header, after)) = rest.split_first_chunk::<HEADER>() {
        let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
        let length = u32::from_le_bytes(word(12)) as usize;
        if length > MAX_NAME {
            return Err(none_of_ours());
        }
        let Some((name, after)) = after.split_at_checked(length) else { break };
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        if name.contains(&b'/') || [&b"."[..], b".."].contains(&name) {
            return Err(none_of_ours());
        }
        told.push(Told {
            watch: i32::from_le_bytes(word(0)),
            what: u32::from_le_bytes(word(4)),
            cookie: u32::from_le_bytes(word(8)),
            name: name.to_vec(),
        });
        rest = after;
    }
    let taken = buffer.len() - rest.len();
    buffer.drain(..taken);
    Ok(told)
}

fn none_of_ours() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "what the helper says of changes is none of the kernel's words",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(watch: i32, what: u32, name: &[u8], filled: usize) -> Vec<u8> {
        let mut bytes = watch.to_le_bytes().to_vec();
        for word in [what, 7, filled as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(name);
        bytes.resize(HEADER + filled, 0);
        bytes
    }

    #[test]
    fn events_come_back_whole_however_they_are_cut() {
        let mut stream = event(1, 0x100, b"a", 16);
        stream.extend(event(-1, 0x4000, b"", 0));
        stream.extend(event(2, 0x200, &[b'x'; 255], 256));
        for size in [1, 7, 16, stream.len()] {
            let (mut buffer, mut seen) = (Vec::new(), Vec::new());
            for piece in stream.chunks(size) {
                buffer.extend(piece);
                seen.extend(take(&mut buffer).unwrap());
            }
            assert!(buffer.is_empty() && seen.len() == 3, "pieces of {size}: {seen:?}");
            assert_eq!(seen[0], Told { watch: 1, what: 0x100, cookie: 7, name: b"a".to_vec() });
            assert_eq!((seen[1].watch, seen[1].name.len(), seen[2].name.len()), (-1, 0, 255));
        }
    }

    #[test]
    fn what_is_no_event_is_an_error() {
        for name in [&b"a/b"[..], b"..", b".", b"/"] {
            assert!(take(&mut event(1, 0x100, name, 16)).is_err(), "{name:?}");
        }
        assert!(take(&mut event(1, 0x100, b"", 513)).is_err());
        assert!(take(&mut vec![0xff; 16]).is_err());
    }
}
