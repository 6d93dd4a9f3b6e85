//! Numbers that nobody can guess.

use cofferdam_backend::{BackendError, Result};
use rustix::rand::{GetRandomFlags, getrandom};

pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    // So few bytes always come whole.
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(n) if n == N => Ok(bytes),
        Ok(_) => Err(BackendError::failed("reading random bytes", std::io::ErrorKind::UnexpectedEof.into())),
        Err(error) => Err(BackendError::failed("reading random bytes", error.into())),
    }
}

/// 128 bits, as text.
pub(crate) fn token() -> Result<String> {
    Ok(bytes::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}
