//! Fresh ids. The core crate names them and draws nothing; this is where the randomness comes from.

use cofferdam_core::{JobId, SandboxId};
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

pub fn draw_job_id() -> io::Result<JobId> {
    draw().map(JobId::from_random)
}

pub fn draw_sandbox_id() -> io::Result<SandboxId> {
    draw().map(SandboxId::from_random)
}

/// Ten bytes from the kernel. Requests this small are never cut short once the kernel's pool is ready.
fn draw() -> io::Result<[u8; 10]> {
    let mut bytes = [0; 10];
    match getrandom(&mut bytes, GetRandomFlags::empty())? {
        10 => Ok(bytes),
        _ => Err(io::Error::other("the kernel gave too few random bytes")),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn ids_differ() {
        assert_ne!(super::draw_job_id().unwrap(), super::draw_job_id().unwrap());
        assert!(super::draw_sandbox_id().unwrap().as_str().starts_with("sbx-"));
    }
}
