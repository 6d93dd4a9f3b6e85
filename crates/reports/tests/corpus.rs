//! The fuzzers' committed corpus of reports, replayed on stable; see fuzz/README.md.

use cofferdam_core::ReportState;
use cofferdam_reports::{Format, parse};

#[path = "../../../fuzz/replay.rs"]
mod replay;
#[path = "../../../fuzz/bodies/report.rs"]
mod report;

#[test]
fn report() {
    replay::replay("report", report::run);
}

#[test]
fn the_corpus_still_has_whole_reports_of_every_form() {
    let whole = |(_, input): &(_, Vec<u8>)| {
        let (first, bytes) = input.split_first()?;
        let format = *Format::ALL.get(usize::from(*first))?;
        (parse(format, bytes, true).state == ReportState::Complete).then_some(usize::from(*first))
    };
    let found: std::collections::BTreeSet<usize> =
        replay::corpus("report").iter().filter_map(whole).collect();
    assert_eq!(found.len(), Format::ALL.len(), "{found:?}");
}
