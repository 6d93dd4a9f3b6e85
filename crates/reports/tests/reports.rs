//! Reports that real tools wrote (see fixtures/make.sh), whole, cut at every byte, and hostile ones.

use cofferdam_core::{ReportState, Severity, TestCounts, TestStatus};
use cofferdam_reports::{Format, MAX_BYTES, Parsed, parse, with_diagnostics};
use std::path::Path;

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read(format: Format, name: &str) -> Parsed {
    parse(format, &fixture(name), true)
}

/// What a report comes to: its state, and how many passed, failed, were skipped and errored.
fn sums(parsed: &Parsed) -> (ReportState, [u64; 4]) {
    let TestCounts { passed, failed, skipped, errored, total } = parsed.counts;
    assert_eq!(total, passed + failed + skipped + errored, "{parsed:?}");
    (parsed.state, [passed, failed, skipped, errored])
}

use Format::{CargoBuild, CargoTest, Compiler, GoTest, Jest, JunitXml, Pytest, Tap, Unittest};
use ReportState::{Broken, Complete, Missing, Truncated};

/// Every fixture of tests, and what it comes to.
const TESTS: [(Format, &str, ReportState, [u64; 4]); 33] = [
    (JunitXml, "junit-pytest-pass.xml", Complete, [2, 0, 0, 0]),
    (JunitXml, "junit-pytest-mixed.xml", Complete, [3, 1, 2, 1]),
    (JunitXml, "junit-node-mixed.xml", Complete, [2, 2, 2, 0]),
    (Tap, "tap-mixed.tap", Complete, [1, 1, 2, 0]),
    (Tap, "perl-pass.tap", Complete, [2, 0, 0, 0]),
    (Tap, "prove-pass.tap", Complete, [2, 0, 0, 0]),
    (Tap, "node-pass.tap", Complete, [2, 0, 0, 0]),
    (Tap, "node-mixed.tap", Complete, [2, 2, 2, 0]),
    (Tap, "node-crash.tap", Complete, [0, 1, 0, 0]),
    (CargoTest, "cargo-pass.txt", Complete, [1, 0, 0, 0]),
    (CargoTest, "cargo-mixed.txt", Complete, [1, 2, 1, 0]),
    (CargoTest, "cargo-crash.txt", Truncated, [1, 0, 0, 1]),
    (CargoTest, "cargo-old-mixed.txt", Complete, [2, 2, 1, 0]),
    (CargoTest, "cargo-old-crash.txt", Truncated, [2, 0, 0, 1]),
    (GoTest, "go-pass.json", Complete, [1, 0, 0, 0]),
    (GoTest, "go-pass.txt", Complete, [1, 0, 0, 0]),
    (GoTest, "go-mixed.json", Complete, [2, 3, 1, 0]),
    (GoTest, "go-mixed.txt", Complete, [2, 3, 1, 0]),
    (GoTest, "go-crash.json", Complete, [1, 0, 0, 1]),
    (GoTest, "go-crash.txt", Complete, [1, 0, 0, 1]),
    (GoTest, "go-panics.json", Complete, [1, 1, 0, 0]),
    (GoTest, "go-panics.txt", Complete, [1, 1, 0, 0]),
    (GoTest, "go-exits.json", Complete, [1, 0, 0, 1]),
    (GoTest, "go-killed.json", Complete, [1, 0, 0, 1]),
    (GoTest, "go-lacks.json", Complete, [1, 0, 0, 1]),
    (GoTest, "go-none.json", Complete, [0, 0, 0, 0]),
    (GoTest, "go-unbuilt.json", Complete, [0, 0, 0, 1]),
    (Pytest, "pytest-pass.txt", Complete, [2, 0, 0, 0]),
    (Pytest, "pytest-mixed.txt", Complete, [3, 1, 2, 1]),
    (Pytest, "pytest-crash.txt", Truncated, [1, 0, 0, 0]),
    (Unittest, "unittest-pass.txt", Complete, [1, 0, 0, 0]),
    (Unittest, "unittest-mixed.txt", Complete, [1, 2, 2, 1]),
    (Unittest, "unittest-crash.txt", Truncated, [1, 0, 0, 0]),
];

const JEST: [(&str, [u64; 4]); 3] =
    [("jest-pass.json", [1, 0, 0, 0]), ("jest-mixed.json", [1, 1, 2, 0]), ("jest-broken.json", [0, 0, 0, 1])];

#[test]
fn what_real_tools_wrote_is_read() {
    let jest = JEST.map(|(name, counts)| (Jest, name, Complete, counts));
    for (format, name, state, counts) in TESTS.into_iter().chain(jest) {
        let parsed = read(format, name);
        assert_eq!(sums(&parsed), (state, counts), "{name}: {parsed:#?}");
        assert_eq!(parsed.reason.is_some(), state != Complete, "{name}: {parsed:?}");
    }
}

/// The states of one and the same report, from its first byte to its last: what is cut is never complete with fewer
/// failures than the whole has.
#[test]
fn a_report_that_is_cut_never_reads_better_than_it_is() {
    let jest = JEST.map(|(name, counts)| (Jest, name, Complete, counts));
    for (format, name, _, counts) in TESTS.into_iter().chain(jest) {
        let whole = fixture(name);
        let bad = counts[1] + counts[3];
        for end in 0..whole.len() {
            let parsed = parse(format, &whole[..end], true);
            let not_passed = parsed.counts.not_passed();
            let all = parsed.counts.total == counts.iter().sum::<u64>();
            // `none` and `pass` of go's text end early where nothing but their last words are missing.
            let is_sound = parsed.state != Complete || (not_passed >= bad && all) || not_passed > 0;
            assert!(is_sound || parsed.counts.total == 0, "{name} cut at {end}: {parsed:?}");
        }
        let cut = parse(format, &whole, false);
        assert_ne!(cut.state, Complete, "{name}");
        assert_ne!(cut.state, Missing, "{name}");
    }
}

fn test<'p>(parsed: &'p Parsed, name: &str) -> &'p cofferdam_core::TestCase {
    parsed.tests.iter().find(|test| test.name == name).unwrap_or_else(|| panic!("{name}: {parsed:#?}"))
}

#[test]
fn names_messages_times_and_files_are_told() {
    let junit = read(JunitXml, "junit-pytest-mixed.xml");
    let bad = test(&junit, "test_mixed::test_bad");
    assert_eq!((bad.status, bad.time_ms), (TestStatus::Failed, Some(1.0)));
    assert!(bad.message.as_deref().unwrap().starts_with("AssertionError: they <differ> & more\n"), "{bad:?}");
    assert_eq!(test(&junit, "test_mixed::test_later").message.as_deref(), Some("not today"));

    let node = read(Tap, "node-mixed.tap");
    let inner = test(&node, "group > inner bad");
    assert_eq!(inner.message.as_deref(), Some("line one\nline two"));
    assert_eq!(inner.file.as_deref(), Some("/work/nd/a.test.js:7:53"));
    assert_eq!(test(&node, "differs # not").message.as_deref(), Some("1 == 2"));
    assert_eq!(test(&node, "later").status, TestStatus::Skipped);
    assert_eq!(test(&read(JunitXml, "junit-node-mixed.xml"), "group > inner bad").status, TestStatus::Failed);

    let cargo = read(CargoTest, "cargo-mixed.txt");
    let other = test(&cargo, "tests::other");
    assert_eq!(other.file.as_deref(), Some("src/lib.rs"));
    assert!(other.message.as_deref().unwrap().contains("why"), "{other:?}");
    assert_eq!(test(&cargo, "tests::later").message.as_deref(), Some("not today"));
    assert!(cargo.tests.iter().all(|test| test.name != "tests::forged"), "{cargo:?}");
    let old = read(CargoTest, "cargo-old-mixed.txt");
    for name in ["bad", "other"] {
        assert_eq!(test(&old, name).file.as_deref(), Some("a/src/lib.rs"), "{old:?}");
    }
    assert_eq!(test(&old, "src/lib.rs - one (line 1)").file.as_deref(), Some("src/lib.rs"));
    let died = read(CargoTest, "cargo-old-crash.txt");
    assert_eq!(test(&died, "dies").message.as_deref(), Some("it did not come to an end"));
    assert_eq!(died.reason.as_deref(), Some("2 tests were announced and 1 have ended"));

    let go = read(GoTest, "go-mixed.json");
    let bad = test(&go, "example.com/m.TestBad");
    assert_eq!(bad.message.as_deref(), Some("a_test.go:4: they differ"));
    assert_eq!(bad.file.as_deref(), Some("a_test.go"));
    let panics = read(GoTest, "go-panics.json");
    assert_eq!(
        test(&panics, "example.com/m/panics.TestB").file.as_deref(),
        Some("/work/go/panics/c_test.go")
    );
    let exits = read(GoTest, "go-exits.json");
    assert_eq!(
        test(&exits, "example.com/m/exits.TestB").message.as_deref(),
        Some("it did not come to an end")
    );
    let lacks = read(GoTest, "go-lacks.json");
    assert_eq!(test(&lacks, "example.com/m/lacks").status, TestStatus::Errored);
    let pytest = read(Pytest, "pytest-mixed.txt");
    let bad = test(&pytest, "test_mixed.py::test_bad");
    assert_eq!(bad.message.as_deref(), Some("AssertionError: they <differ> & more"));
    assert_eq!(bad.file.as_deref(), Some("test_mixed.py"));
    let unittest = read(Unittest, "unittest-mixed.txt");
    let bad = test(&unittest, "test_bad (test_unit.T.test_bad)");
    assert!(bad.message.as_deref().unwrap().contains("1 != 2 : they differ"), "{bad:?}");
    let jest = read(Jest, "jest-mixed.json");
    assert_eq!(test(&jest, "group differs").file.as_deref(), Some("/work/js/a.test.js"));
    let broken = &read(Jest, "jest-broken.json").tests[0];
    assert!(broken.message.as_deref().unwrap().contains("Test suite failed to run"), "{broken:?}");
}

type Said<'s> = (Option<&'s str>, Option<u64>, Option<u64>, Severity, &'s str);

fn said(parsed: &Parsed) -> Vec<Said<'_>> {
    let one = |d: &'_ cofferdam_core::Diagnostic| (d.line, d.column, d.severity);
    parsed
        .diagnostics
        .iter()
        .map(|d| {
            let (line, column, severity) = one(d);
            (d.file.as_deref(), line, column, severity, d.message.as_str())
        })
        .collect()
}

#[test]
fn what_real_compilers_wrote_is_read() {
    use Severity::{Error, Note, Warning};
    let gcc = read(Compiler, "gcc-errors.txt");
    let told: Vec<_> = gcc.diagnostics.iter().map(|d| (d.severity, d.column)).collect();
    let expected =
        [(Warning, Some(26)), (Warning, Some(31)), (Error, Some(52)), (Note, Some(52)), (Warning, Some(22))];
    assert_eq!(told, expected, "{gcc:#?}");
    let undeclared = "'missing' undeclared (first use in this function)";
    assert_eq!(said(&gcc)[2], (Some("a.c"), Some(2), Some(52), Error, undeclared));
    assert_eq!(said(&read(Compiler, "gcc-header.txt"))[0].0, Some("a.h"));
    assert_eq!(read(Compiler, "gcc-link.txt").diagnostic_counts.errors, 2);

    let tsc = read(Compiler, "tsc-errors.txt");
    let message = "TS2322: Type 'string' is not assignable to type 'number'.";
    assert_eq!(said(&tsc)[0], (Some("bad.ts"), Some(1), Some(5), Error, message));
    assert_eq!(tsc.diagnostic_counts.errors, 2);

    let javac = read(Compiler, "javac-errors.txt");
    let message = "incompatible types: String cannot be converted to int";
    assert_eq!(said(&javac)[0], (Some("A.java"), Some(1), None, Error, message));
    assert_eq!(javac.diagnostic_counts.errors, 2);

    let go = read(Compiler, "go-build-errors.txt");
    assert_eq!(said(&go)[1], (Some("bad/b.go"), Some(3), Some(9), Error, "undefined: g"));

    let cargo = read(CargoBuild, "cargo-build-errors.json");
    assert_eq!(cargo.state, Complete);
    assert_eq!(said(&cargo), [(Some("src/lib.rs"), Some(1), Some(39), Error, "mismatched types")]);
    let warning = read(CargoBuild, "cargo-build-warning.json");
    assert_eq!((warning.state, warning.diagnostic_counts.warnings), (Complete, 1));
    let text = b"error[E0308]: mismatched types\n --> src/lib.rs:1:39\n  |\nerror: could not compile `rs`\n";
    assert_eq!(said(&parse(Compiler, text, true)), said(&cargo));
}

/// What the compilers of a tool for tests say goes beside its tests, and what only counts is left out.
#[test]
fn what_was_not_built_is_told_beside_the_tests() {
    let tests = read(GoTest, "go-lacks.json");
    let told = with_diagnostics(tests.clone(), &fixture("go-build-errors.txt"));
    assert_eq!((&told.tests, told.state), (&tests.tests, Complete));
    assert_eq!(said(&told)[1], (Some("bad/b.go"), Some(3), Some(9), Severity::Error, "undefined: g"));
    let counted = with_diagnostics(tests, &fixture("cargo-old-stderr.txt"));
    assert!(counted.diagnostics.is_empty(), "{counted:?}");
    // Both share what there is for text.
    let long: String = (0..2000)
        .map(|i| format!("not ok {i} {}\n  ---\n  message: '{}'\n  ...\n", "n".repeat(500), "m".repeat(2000)))
        .collect();
    let full = parse(Tap, format!("1..2000\n{long}").as_bytes(), true);
    let errors = "a.c:1:1: error: e\n".repeat(10);
    let told = with_diagnostics(full, errors.as_bytes());
    assert_eq!(
        (told.diagnostic_counts.errors, told.diagnostics_left_out),
        (10, 10),
        "{:?}",
        told.diagnostics
    );
}

#[test]
fn a_build_of_cargo_that_is_cut_is_not_complete() {
    let whole = fixture("cargo-build-warning.json");
    for end in 0..whole.len() - 2 {
        assert_ne!(parse(CargoBuild, &whole[..end], true).state, Complete, "cut at {end}");
    }
}

#[test]
fn nothing_is_never_a_report_of_tests() {
    for format in Format::ALL {
        for nothing in ["", "\n\n", "Segmentation fault\n", "\0\0\0"] {
            let parsed = parse(format, nothing.as_bytes(), true);
            let is_compiler = format == Compiler;
            assert_eq!(parsed.state == Complete, is_compiler, "{format:?} of {nothing:?}: {parsed:?}");
        }
    }
}

/// Each is what it is, for a reason, and takes no more memory and time than its size allows.
#[test]
fn hostile_reports_are_refused() {
    let deep = "<testsuite>".repeat(100_000);
    let laughs = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><testsuites>&b;</testsuites>";
    let fewer = r#"<testsuite tests="3" failures="0"><testcase name="a"/></testsuite>"#;
    let hidden = r#"<testsuite tests="1" failures="1"><testcase name="a"/></testsuite>"#;
    let after = "<testsuite><testcase name='a'/></testsuite><testsuite/>";
    let nested = "[".repeat(200_000);
    let objects =
        format!("{{\"numTotalTests\":0,\"numFailedTests\":0,\"testResults\":[{}]}}", "{},".repeat(300_000));
    let subtests: String = (0..200).map(|i| format!("{}# Subtest: s\n", " ".repeat(4 * i))).collect();
    let levels: String = (0..200).map(|i| format!("{}ok 1\n", " ".repeat(4 * i))).collect();
    let jest = format!("{{\"numTotalTests\":{nested}");
    let less = r#"{"numTotalTests":5,"numFailedTests":2,"testResults":[]}"#;
    let exits = String::from_utf8(fixture("go-exits.json")).unwrap();
    let forged = "running 2 tests\ntest a ... ok\ntest a ... ok\ntest b ... FAILED\n\ntest result: ok. 2 passed; 0 failed; 0 ignored\n";
    for (format, text, state) in [
        (JunitXml, deep.as_str(), Broken),
        (JunitXml, laughs, Broken),
        (JunitXml, fewer, Truncated),
        (JunitXml, hidden, Broken),
        (JunitXml, after, Broken),
        (JunitXml, "<html><body/></html>", Broken),
        (JunitXml, "<testsuite></testcase>", Broken),
        (Jest, objects.as_str(), Broken),
        (Jest, jest.as_str(), Broken),
        (Jest, less, Broken),
        (Tap, subtests.as_str(), Broken),
        (Tap, levels.as_str(), Broken),
        (Tap, "1..3\nok 1\nok 2\n", Truncated),
        (Tap, "1..1\nok 1\nok 2\n", Broken),
        (Tap, "ok 1\nok 2\n", Truncated),
        (Tap, "1..2\nok 1\nBail out! no disk\n", Truncated),
        (CargoTest, forged, Broken),
        (GoTest, "{\"Action\":\"pass\",\"Package\":\"p\"}\n{\"Action\":\n", Broken),
        (GoTest, "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"T\"}\n", Truncated),
        (GoTest, &exits.replace("TestB\",\"Output\":\"ok", "TestB\",\"Output\":\"--"), Truncated),
        (GoTest, "=== RUN   TestA\n--- PASS: TestA (0.00s)\n", Truncated),
    ] {
        let parsed = parse(format, text.as_bytes(), true);
        assert_eq!(parsed.state, state, "{format:?} of {:.60}: {:?}", text, parsed.reason);
        assert!(parsed.reason.is_some());
    }
}

/// A test that starts a go of its own has the end of another run in its output.
#[test]
fn a_test_that_runs_the_same_tests_has_ended() {
    let line = |action: &str, output: &str| {
        format!("{{\"Action\":\"{action}\",\"Package\":\"p\",\"Test\":\"T\",\"Output\":\"{output}\"}}\n")
    };
    let inner = line("run", "") + &line("output", "ok  \\tp\\t0.1s\\n");
    let end = "{\"Action\":\"pass\",\"Package\":\"p\"}\n";
    let whole = inner.clone() + &line("output", "--- PASS: T (0.00s)\\n") + &line("pass", "") + end;
    assert_eq!(sums(&parse(GoTest, whole.as_bytes(), true)), (Complete, [1, 0, 0, 0]));
    let exits = inner + &line("pass", "") + end;
    assert_eq!(sums(&parse(GoTest, exits.as_bytes(), true)), (Complete, [0, 0, 0, 1]));
}

#[test]
fn a_point_without_a_number_or_a_name_still_fails() {
    let parsed = parse(Tap, b"1..2\nnot ok\nok - b\n", true);
    assert_eq!(sums(&parsed), (Complete, [1, 1, 0, 0]), "{parsed:?}");
}

/// What is listed is bounded, and what fails is not pushed out by what passes.
#[test]
fn lists_are_bounded_and_failures_come_first() {
    let mut text: String = (1..=50_000).map(|i| format!("ok {i} - passes\n")).collect();
    text.push_str("not ok 50001 - \x1b[31mthe last\x1b[0m \u{7}\n1..50001\n");
    let parsed = parse(Tap, text.as_bytes(), true);
    assert_eq!(sums(&parsed), (Complete, [50_000, 1, 0, 0]));
    assert!(parsed.tests.len() < 3000 && parsed.tests_left_out > 47_000);
    assert!(parsed.tests.iter().any(|test| test.name == "the last \u{fffd}"), "{:?}", parsed.tests.last());
    let long = format!("1..1\nnot ok 1 - {}\n", "n".repeat(1 << 20));
    assert!(parse(Tap, long.as_bytes(), true).tests[0].name.len() <= 512);
    let errors = "a.c:1:1: error: e\n".repeat(10_000);
    let parsed = parse(Compiler, errors.as_bytes(), true);
    assert_eq!((parsed.diagnostic_counts.errors, parsed.diagnostics.len()), (10_000, 1000));
    let huge = "a.c:1:1: error: e\n".repeat(MAX_BYTES / 16);
    assert_eq!(parse(Compiler, huge.as_bytes(), true).state, Truncated);
}

#[test]
fn a_diff_is_readable_and_bounded() {
    use cofferdam_reports::difference;
    assert_eq!(difference("a", b"same\n", b"same\n"), None);
    let old: String = (1..=20).map(|i| format!("line {i}\n")).collect();
    let new = old.replace("line 10\n", "line ten\r\n").replace("line 20\n", "line 20");
    let diff = difference("d/f.txt", old.as_bytes(), new.as_bytes()).unwrap().diff;
    let expected = "--- expected/d/f.txt\n+++ found/d/f.txt\n@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n\
                    +line ten\\r\n line 11\n line 12\n line 13\n@@ -17,4 +17,4 @@\n line 17\n line 18\n line 19\n\
                    -line 20\n+line 20\n\\ No newline at end of file\n";
    assert_eq!(diff, expected);
    let bytes = difference("b", b"a\xff", b"ab").unwrap().diff;
    assert!(bytes.contains("2 bytes were expected, 2 are there, and byte 1 is the first"), "{bytes}");
    let (a, b): (String, String) =
        ((0..40_000).map(|i| format!("a{i}\n")).collect(), (0..40_000).map(|i| format!("b{i}\n")).collect());
    let differs = difference("c", a.as_bytes(), b.as_bytes()).unwrap();
    assert!(differs.is_truncated && differs.diff.len() < 40 << 10);
    let hostile = difference("\u{1b}[2J", b"", b"\x1b[2J\n").unwrap().diff;
    assert!(!hostile.contains('\u{1b}'), "{hostile}");
}
