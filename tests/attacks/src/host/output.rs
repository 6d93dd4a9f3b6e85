//! Output that is too much, or not text.

use super::{Looks, broke, held, own_code};
use crate::job;
use crate::lab::Lab;
use cofferdam_core::{JobResult, OUTPUT_KEPT_BYTES, Outcome};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(120);
const GRACE: Duration = Duration::from_millis(500);

/// What the server may grow by: twice what it keeps, and room for buffers.
const GROWTH_KIB: u64 = 48 << 10;

pub(crate) async fn endless(lab: &mut Lab) -> Result<Looks, String> {
    let seconds = if lab.quick { "1" } else { "5" };
    let before = memory_kib("VmRSS")?;
    let result = job::probe(lab, &["exhaust-07", seconds], TIMEOUT, GRACE, None).await?;
    let wall = match bounded(&result, before) {
        Err(wrong) => broke(wrong),
        Ok(()) if !result.stdout.truncated() => broke("not marked as cut"),
        Ok(()) => held(format!(
            "{} MiB kept, {} MiB dropped and counted",
            result.stdout.bytes.len() >> 20,
            result.stdout.dropped_bytes >> 20
        )),
    };
    Ok((wall, own_code()))
}

/// One huge line, tiny writes, NULs, bad UTF-8.
pub(crate) async fn odd(lab: &mut Lab) -> Result<Looks, String> {
    let (line, tiny) = if lab.quick { ("67108864", "200000") } else { ("2147483648", "10000000") };
    let mut said = Vec::new();
    for (argv, is_cut) in [
        (["exhaust-08-line", line], true),
        (["exhaust-08-tiny", tiny], !lab.quick),
        (["exhaust-08-nul", "1048576"], false),
        (["exhaust-08-utf8", "1048576"], false),
    ] {
        let before = memory_kib("VmRSS")?;
        let result = job::probe(lab, &argv, TIMEOUT, GRACE, None).await?;
        if let Err(wrong) = bounded(&result, before) {
            return Ok((broke(format!("{}: {wrong}", argv[0])), own_code()));
        }
        if result.stdout.truncated() != is_cut {
            return Ok((
                broke(format!("{}: {} bytes dropped", argv[0], result.stdout.dropped_bytes)),
                own_code(),
            ));
        }
        said.push(format!("{} {} ms", argv[0], result.duration_ms));
    }
    Ok((held(said.join(", ")), own_code()))
}

/// Kept within the limit, the server's memory too, and the result is JSON that can be read again.
fn bounded(result: &JobResult, before_kib: u64) -> Result<(), String> {
    if result.outcome != (Outcome::Exited { code: 0 }) {
        return Err(format!("{:?}", result.outcome));
    }
    if result.stdout.bytes.len() > OUTPUT_KEPT_BYTES {
        return Err(format!("{} bytes kept", result.stdout.bytes.len()));
    }
    let grown = memory_kib("VmRSS")?.saturating_sub(before_kib);
    if grown > GROWTH_KIB {
        return Err(format!("the server grew by {} MiB", grown >> 10));
    }
    let json = serde_json::to_string(result).map_err(|e| e.to_string())?;
    serde_json::from_str::<serde_json::Value>(&json).map(drop).map_err(|e| e.to_string())
}

fn memory_kib(field: &str) -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("no {field}"))
}
