//! What `jest --json` prints: one object, after whatever else was printed.

use crate::collect::{Case, Collector};
use crate::{End, broken, complete, missing, truncated};
use cofferdam_core::TestStatus;
use serde::Deserialize;

/// Each becomes some memory here, however small it is.
const MAX_OBJECTS: usize = 200_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Jest {
    num_total_tests: u64,
    num_failed_tests: u64,
    #[serde(default)]
    num_runtime_error_test_suites: u64,
    #[serde(default)]
    was_interrupted: bool,
    test_results: Vec<Suite>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Suite {
    #[serde(default)]
    name: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    message: String,
    assertion_results: Vec<Assertion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Assertion {
    full_name: String,
    status: String,
    #[serde(default)]
    duration: Option<f64>,
    #[serde(default)]
    failure_messages: Vec<String>,
}

pub(crate) fn parse(text: &str, found: &mut Collector) -> End {
    let begin = if text.starts_with('{') { Some(0) } else { text.find("\n{").map(|at| at + 1) };
    let Some(begin) = begin else { return missing("there is no JSON in the output") };
    let text = &text[begin..];
    if text.bytes().filter(|byte| *byte == b'{').count() > MAX_OBJECTS {
        return broken(format!("it has more than {MAX_OBJECTS} objects"));
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Jest>();
    let jest = match values.next() {
        Some(Ok(jest)) => jest,
        Some(Err(error)) if error.is_eof() => return truncated("the JSON ends in the middle"),
        Some(Err(error)) => return broken(format!("it is not what jest writes: {error}")),
        None => return missing("there is no JSON in the output"),
    };
    for suite in &jest.test_results {
        suite.add_to(found);
    }
    let counts = *found.counts();
    if jest.was_interrupted {
        return truncated("the run was interrupted");
    }
    let errored = jest.num_runtime_error_test_suites;
    match counts.total < jest.num_total_tests || counts.not_passed() < jest.num_failed_tests + errored {
        true => broken(format!(
            "it declares {} tests and {} failures, and lists {} and {}",
            jest.num_total_tests,
            jest.num_failed_tests.saturating_add(errored),
            counts.total,
            counts.not_passed()
        )),
        false => complete(),
    }
}

impl Suite {
    fn add_to(&self, found: &mut Collector) {
        let file = Some(self.name.as_str()).filter(|name| !name.is_empty());
        let mut has_failed = false;
        for test in &self.assertion_results {
            let status = match test.status.as_str() {
                "passed" => TestStatus::Passed,
                "failed" => TestStatus::Failed,
                "pending" | "skipped" | "todo" | "disabled" => TestStatus::Skipped,
                _ => TestStatus::Errored,
            };
            has_failed |= matches!(status, TestStatus::Failed | TestStatus::Errored);
            let message = test.failure_messages.first().map(String::as_str);
            found.test(Case { time_ms: test.duration, message, file, ..Case::new(&test.full_name, status) });
        }
        // A file that could not be read has no tests, and is no file without failures.
        if self.status == "failed" && !has_failed {
            let case = Case::new(file.unwrap_or("a file of tests"), TestStatus::Errored);
            found.test(Case { message: Some(&self.message), file, ..case });
        }
    }
}
