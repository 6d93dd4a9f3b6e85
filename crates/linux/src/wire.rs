//! The encoding of messages between the host, the launcher and init: little-endian numbers and strings that
//! keep their NUL, so that init can hand them to the kernel where they lie.

use crate::sys::{Errno, Result};
use std::ffi::CStr;

/// What a message that does not parse is answered with.
pub(crate) const MALFORMED: Errno = Errno(libc::EBADMSG);

/// Writes a message into a buffer of the caller's; nothing allocates.
#[derive(Debug)]
pub(crate) struct Encoder<'b> {
    buffer: &'b mut [u8],
    len: usize,
    overflow: bool,
}

impl<'b> Encoder<'b> {
    pub(crate) fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, len: 0, overflow: false }
    }

    fn put(&mut self, bytes: &[u8]) {
        match self.buffer.get_mut(self.len..self.len + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => self.overflow = true,
        }
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_le_bytes());
        self
    }

    pub(crate) fn i32(&mut self, value: i32) -> &mut Self {
        self.put(&value.to_le_bytes());
        self
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.put(&value.to_le_bytes());
        self
    }

    /// A string with its NUL. One that holds a NUL of its own makes the message malformed.
    pub(crate) fn text(&mut self, text: &[u8]) -> &mut Self {
        if text.contains(&0) {
            self.overflow = true;
        }
        self.u32(text.len() as u32 + 1);
        self.put(text);
        self.put(&[0]);
        self
    }

    /// The finished message, or `EMSGSIZE` where it did not fit.
    pub(crate) fn finish(self) -> Result<&'b [u8]> {
        if self.overflow { Err(Errno(libc::EMSGSIZE)) } else { Ok(&self.buffer[..self.len]) }
    }
}

/// Reads a message. Every read is checked: the bytes may be anything.
#[derive(Debug)]
pub(crate) struct Decoder<'m> {
    rest: &'m [u8],
}

impl<'m> Decoder<'m> {
    pub(crate) fn new(message: &'m [u8]) -> Self {
        Self { rest: message }
    }

    fn get(&mut self, n: usize) -> Result<&'m [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(MALFORMED)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.get(N)?.try_into().map_err(|_| MALFORMED)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn text(&mut self) -> Result<&'m CStr> {
        let len = self.u32()? as usize;
        CStr::from_bytes_with_nul(self.get(len)?).map_err(|_| MALFORMED)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Refuses a message with something behind its last field.
    pub(crate) fn end(self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(MALFORMED) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(a: u32, b: i32, c: u64, text in "[^\\x00]{0,40}") {
            let mut buffer = [0; 256];
            let mut encoder = Encoder::new(&mut buffer);
            encoder.u32(a).i32(b).u64(c).text(text.as_bytes());
            let message = encoder.finish().unwrap();
            let mut decoder = Decoder::new(message);
            prop_assert_eq!(decoder.u32(), Ok(a));
            prop_assert_eq!(decoder.i32(), Ok(b));
            prop_assert_eq!(decoder.u64(), Ok(c));
            prop_assert_eq!(decoder.text().unwrap().to_bytes(), text.as_bytes());
            prop_assert_eq!(decoder.end(), Ok(()));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut decoder = Decoder::new(&bytes);
            while decoder.text().is_ok() {}
            let _ = decoder.u64();
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut buffer = [0; 8];
        let mut encoder = Encoder::new(&mut buffer);
        encoder.u64(1).u32(2);
        assert_eq!(encoder.finish().unwrap_err(), Errno(libc::EMSGSIZE));
        let mut buffer = [0; 32];
        let mut encoder = Encoder::new(&mut buffer);
        encoder.text(b"a\0b");
        assert!(encoder.finish().is_err());
    }
}
