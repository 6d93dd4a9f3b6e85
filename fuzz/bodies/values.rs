//! Values that people and programs write: sizes, CPUs, durations, paths inside.

use cofferdam_core::{ByteSize, Cpus, GuestPath, parse_duration};
use std::time::Duration;

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    size(text);
    cpus(text);
    duration(text);
    path(text);
}

fn size(text: &str) {
    match ByteSize::parse("memory", text) {
        Ok(size) => {
            assert!(size.0 > 0 && i64::try_from(size.0).is_ok());
            assert_eq!(ByteSize::parse("memory", &size.0.to_string()), Ok(size));
            // Shown with a space that is not accepted back; the rest of it is.
            let shown = size.to_string().replace(' ', "").replace("bytes", "b");
            assert_eq!(ByteSize::parse("memory", &shown), Ok(size), "{shown}");
        }
        Err(error) => assert!(error.to_string().starts_with("memory: ")),
    }
}

fn cpus(text: &str) {
    match Cpus::parse("cpus", text) {
        Ok(cpus) => {
            assert!((10..=4_096_000).contains(&cpus.millis()));
            assert_eq!(Cpus::parse("cpus", &cpus.to_string()), Ok(cpus), "{cpus}");
        }
        Err(error) => assert!(error.to_string().starts_with("cpus: ")),
    }
}

fn duration(text: &str) {
    match parse_duration("timeout", text) {
        Ok(duration) => {
            assert!(!duration.is_zero() && duration <= Duration::from_secs(7 * 24 * 3600));
            assert_eq!(parse_duration("timeout", &format!("{}ms", duration.as_millis())), Ok(duration));
        }
        Err(error) => assert!(error.to_string().starts_with("timeout: ")),
    }
}

fn path(text: &str) {
    for parsed in [GuestPath::parse("workdir", text), GuestPath::parse_in_workspace("workdir", text)] {
        let Ok(path) = parsed else { continue };
        let clean = path.as_str();
        assert!(clean.starts_with('/') && !clean.contains("//") && !clean.contains('\0'));
        assert!(clean.split('/').all(|name| name != ".." && name != "." && name.len() <= 255));
        assert!(clean == "/" || !clean.ends_with('/'));
        for special in ["/proc", "/dev", "/sys"] {
            assert!(clean != special && !clean.starts_with(&format!("{special}/")), "{clean}");
        }
        assert!(!path.relative().starts_with('/') && !path.relative().is_empty());
        assert_eq!(GuestPath::parse("workdir", clean).as_ref(), Ok(&path));
    }
}
