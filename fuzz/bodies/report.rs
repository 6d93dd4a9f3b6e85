//! Reports of tests and builds, as a sandbox left them, and files that are compared.

use cofferdam_core::{JobKind, Outcome, ReportState, Verdict};
use cofferdam_reports::{Format, Judged, difference, judge, parse};

/// The first byte says what the rest is taken for: a report of one form, or two files.
pub(crate) fn run(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else { return };
    let Some(&format) = Format::ALL.get(usize::from(*first)) else {
        let (old, new) = bytes.split_at(bytes.len() / 2);
        let differs = difference("f", old, new);
        assert_eq!(differs.is_none(), old == new);
        assert!(differs.is_none_or(|differs| differs.diff.len() < 64 << 10));
        return;
    };
    let parsed = parse(format, bytes, true);
    assert!(parsed.tests.len() <= 2000 && parsed.diagnostics.len() <= 1000);
    assert_eq!(parsed.reason.is_none(), parsed.state == ReportState::Complete);
    // What is known to be cut is never complete.
    assert_ne!(parse(format, bytes, false).state, ReportState::Complete);
    let is_whole = parsed.state == ReportState::Complete && parsed.counts.not_passed() == 0;
    let judged =
        Judged { kind: JobKind::Test, tool: None, detected_by: None, parsed: Some(parsed), expected: vec![] };
    let report = judge(judged, &Outcome::Exited { code: 0 });
    assert!(is_whole || report.verdict != Verdict::Passed);
}
