//! Zip archives, in one pass: a reader for hostile ones as they come in, and a writer for what goes out.
//!
//! What a zip says of an entry is in two places, before its bytes and at the end. The reader takes the bytes from the
//! first and the modes from the second, and refuses an archive in which the two do not agree: other readers would see
//! other files than this one. It knows what is stored or deflated, and zip64 sizes; nothing is decrypted.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{ZipEntry, ZipError, ZipItem, ZipReader};
pub use writer::{ZipKind, ZipTooLarge, ZipWriter};

const LOCAL: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// The sizes and the sum stand behind the bytes.
const HAS_DESCRIPTOR: u16 = 1 << 3;
const IS_ENCRYPTED: u16 = 1;
const IS_UTF8: u16 = 1 << 11;

/// The system whose modes the upper half of an entry's attributes is.
const UNIX: u8 = 3;

/// A size that stands in the zip64 field instead.
const ELSEWHERE: u32 = u32::MAX;
