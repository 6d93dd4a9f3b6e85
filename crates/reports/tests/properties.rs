//! What holds of any bytes: nothing panics, everything is bounded, and counts are sums.

use cofferdam_core::{JobKind, Outcome, ReportState, Verdict};
use cofferdam_reports::{Format, Judged, difference, judge, parse};
use proptest::prelude::*;

fn format() -> impl Strategy<Value = Format> {
    (0..Format::ALL.len()).prop_map(|i| Format::ALL[i])
}

/// Pieces of which reports are made, in any order.
fn report() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "1..2\n",
        "ok 1 - a\n",
        "not ok 2 - b # TODO c\n",
        "    ok 1\n",
        "    1..1\n",
        "  ---\n",
        "  error: |-\n",
        "  ...\n",
        "# Subtest: s\n",
        "running 2 tests\n",
        "test a ... ok\n",
        "test b ... FAILED\n",
        "\n",
        "failures:\n",
        "---- b stdout ----\n",
        "test result: FAILED. 1 passed; 1 failed; 0 ignored\n",
        "=== RUN   TestA\n",
        "--- PASS: TestA (0.00s)\n",
        "--- FAIL: TestB (0.10s)\n",
        "ok  \tp\t0.1s\n",
        "FAIL\tp [build failed]\n",
        "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"T\"}\n",
        "{\"Action\":\"fail\",\"Package\":\"p\"}\n",
        "<testsuites>",
        "<testsuite tests=\"2\">",
        "<testcase name=\"a\"/>",
        "<testcase name=\"b\"><failure>&lt;x",
        "</failure></testcase>",
        "</testsuite>",
        "</testsuites>",
        "<![CDATA[",
        "]]>",
        "&#10;",
        "=== test session starts ===\n",
        "a.py::t PASSED [ 1%]\n",
        "== 1 failed, 2 passed in 0.1s ==\n",
        "test_a (m.T.test_a) ... ok\n",
        "FAIL: test_a (m.T.test_a)\n",
        "Ran 2 tests in 0.1s\n",
        "FAILED (failures=1)\n",
        "OK\n",
        "a.c:1:2: error: e\n",
        "a.ts(1,2): error TS1: e\n",
        "error[E1]: e\n",
        " --> a.rs:1:2\n",
        "\u{1b}[31m",
        "é\u{0}",
        "{\"reason\":\"build-finished\",\"success\":false}\n",
        "{\"numTotalTests\":1,\"numFailedTests\":0,\"testResults\":[]}",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn check(format: Format, bytes: &[u8]) -> Result<(), TestCaseError> {
    let parsed = parse(format, bytes, true);
    let counts = parsed.counts;
    prop_assert_eq!(counts.total, counts.passed + counts.failed + counts.skipped + counts.errored);
    prop_assert_eq!(parsed.reason.is_none(), parsed.state == ReportState::Complete);
    prop_assert!(parsed.tests.len() <= 2000 && parsed.diagnostics.len() <= 1000);
    for test in &parsed.tests {
        prop_assert!(test.name.len() <= 600 && test.message.as_ref().is_none_or(|m| m.len() <= 2200));
        prop_assert!(!test.name.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{:?}", test.name);
    }
    // A tool that ends well passes only by a complete report of tests, none of which failed.
    let whole = parsed.state == ReportState::Complete && counts.total > 0 && counts.not_passed() == 0;
    let judged = Judged {
        kind: JobKind::Test,
        tool: None,
        detected_by: None,
        parsed: Some(parsed.clone()),
        expected: vec![],
    };
    let report = judge(judged, &Outcome::Exited { code: 0 });
    prop_assert_eq!(report.verdict == Verdict::Passed, whole);
    for outcome in
        [Outcome::Exited { code: 1 }, Outcome::TimedOut, Outcome::OomKilled, Outcome::Signaled { signal: 11 }]
    {
        let parsed = Some(parsed.clone());
        let judged = Judged { kind: JobKind::Test, tool: None, detected_by: None, parsed, expected: vec![] };
        prop_assert_ne!(judge(judged, &outcome).verdict, Verdict::Passed);
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_read_within_bounds(format in format(), bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        check(format, &bytes)?;
    }

    #[test]
    fn any_mix_of_reports_is_read_within_bounds(format in format(), text in report()) {
        check(format, text.as_bytes())?;
    }

    /// A diff can be undone and done: what it removes and keeps is the one side, what it keeps and adds the other.
    #[test]
    fn a_diff_has_both_sides(old in prop::collection::vec("[ab]{0,2}", 0..12), new in prop::collection::vec("[ab]{0,2}", 0..12)) {
        let (old, new) = (old.join("\n"), new.join("\n"));
        match difference("f", old.as_bytes(), new.as_bytes()) {
            None => prop_assert_eq!(old, new),
            Some(differs) => {
                prop_assert_ne!(&old, &new);
                prop_assert_eq!(applied(&old, &differs.diff), new);
            }
        }
    }
}

/// Applies a unified diff, and holds what it says against the text.
fn applied(old: &str, diff: &str) -> String {
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut out, mut at) = (String::new(), 0);
    let mut rows = diff.lines().skip(2).peekable();
    while let Some(row) = rows.next() {
        if let Some(hunk) = row.strip_prefix("@@ -") {
            let (first, count) =
                hunk.split(' ').next().and_then(|range| range.split_once(',')).expect("a range");
            let (first, count): (usize, usize) =
                (first.parse().expect("a number"), count.parse().expect("a number"));
            let begin = if count == 0 { first } else { first - 1 };
            out.push_str(&lines[at..begin].concat());
            at = begin;
            continue;
        }
        if row.starts_with('\\') {
            continue;
        }
        let end = if rows.peek().is_some_and(|next| next.starts_with('\\')) { "" } else { "\n" };
        let line = format!("{}{end}", &row[1..]);
        match row.as_bytes()[0] {
            b'+' => out.push_str(&line),
            mark => {
                assert_eq!(lines[at], line);
                at += 1;
                if mark == b' ' {
                    out.push_str(&line);
                }
            }
        }
    }
    out + &lines[at..].concat()
}
