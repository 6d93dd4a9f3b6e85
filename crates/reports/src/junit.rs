//! JUnit XML, as pytest, node, jest-junit, gradle, surefire and many others write it.
//!
//! No document type is accepted, so there are no entities but the five that XML has, and nothing to expand.

use crate::collect::{Case, Collector};
use crate::lines::{MAX_MESSAGE, Message};
use crate::{End, broken, complete, missing, truncated};
use cofferdam_core::TestStatus;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Suites are nested for a few levels, if at all.
const MAX_DEPTH: usize = 64;

/// A suite that is open: what it says of itself, and what was seen in it.
#[derive(Default)]
struct Suite {
    name: String,
    file: Option<String>,
    declared: [Option<u64>; 3],
    seen: [u64; 3],
}

/// A test case that is open.
struct Open {
    name: String,
    time_ms: Option<f64>,
    file: Option<String>,
    status: TestStatus,
    is_todo: bool,
    message: String,
}

#[derive(Default)]
struct State {
    path: Vec<String>,
    suites: Vec<Suite>,
    case: Option<Open>,
    /// The text of the failure, error or skip that is open.
    text: Option<Message>,
    has_root: bool,
    is_closed: bool,
}

pub(crate) fn parse(text: &str, found: &mut Collector) -> End {
    if text.trim().is_empty() {
        return missing("the report is empty");
    }
    let mut reader = Reader::from_str(text);
    let mut state = State::default();
    loop {
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) if is_cut(&error) => return truncated("the XML ends in the middle"),
            Err(error) => return broken(format!("it is not XML: {error}")),
        };
        let step = match event {
            Event::Eof => break,
            Event::Start(tag) => state.open(&tag),
            Event::Empty(tag) => state.open(&tag).and_then(|()| state.close(found)),
            Event::End(_) => state.close(found),
            Event::Text(text) => state.text(&text.decode().unwrap_or_default()),
            Event::CData(text) => state.text(&text.decode().unwrap_or_default()),
            Event::GeneralRef(entity) => match entity.resolve_char_ref() {
                Ok(Some(c)) => state.text(c.encode_utf8(&mut [0; 4])),
                Ok(None) => state.text(predefined(&entity.decode().unwrap_or_default())),
                Err(error) => Err(broken(format!("it is not XML: {error}"))),
            },
            Event::DocType(_) => Err(broken("it has a document type, which is not taken")),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => Ok(()),
        };
        if let Err(end) = step {
            return end;
        }
    }
    match (state.has_root, state.is_closed) {
        (_, true) => complete(),
        (true, false) => truncated("the XML ends in the middle"),
        (false, false) => broken("it has no element"),
    }
}

fn is_cut(error: &quick_xml::Error) -> bool {
    use quick_xml::errors::{IllFormedError, SyntaxError};
    match error {
        quick_xml::Error::Syntax(SyntaxError::InvalidBangMarkup) => false,
        quick_xml::Error::Syntax(_) => true,
        quick_xml::Error::IllFormed(IllFormedError::MissingEndTag(_)) => true,
        _ => false,
    }
}

fn predefined(name: &str) -> &'static str {
    match name {
        "lt" => "<",
        "gt" => ">",
        "amp" => "&",
        "quot" => "\"",
        "apos" => "'",
        _ => "\u{fffd}",
    }
}

/// An attribute's value, for people: what cannot be decoded is shown as it is.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag.attributes().with_checks(false).flatten().find(|a| a.key.as_ref() == name.as_bytes())?;
    let raw = String::from_utf8_lossy(&found.value).into_owned();
    Some(quick_xml::escape::unescape(&raw).map_or_else(|_| raw.clone(), |text| text.into_owned()))
}

fn number(tag: &BytesStart<'_>, name: &str) -> Option<u64> {
    attribute(tag, name)?.trim().parse().ok()
}

impl State {
    fn open(&mut self, tag: &BytesStart<'_>) -> Result<(), End> {
        let name = String::from_utf8_lossy(tag.local_name().as_ref()).into_owned();
        if self.path.is_empty() {
            if self.is_closed {
                return Err(broken("it goes on after its end"));
            }
            if name != "testsuites" && name != "testsuite" {
                return Err(broken(format!("it is no JUnit report: it begins with <{name}>")));
            }
            self.has_root = true;
        }
        if self.path.len() >= MAX_DEPTH {
            return Err(broken(format!("it is more than {MAX_DEPTH} elements deep")));
        }
        match name.as_str() {
            "testsuites" | "testsuite" if self.case.is_none() => self.suites.push(Suite {
                name: attribute(tag, "name").unwrap_or_default(),
                file: attribute(tag, "file").or_else(|| attribute(tag, "filepath")),
                declared: [number(tag, "tests"), number(tag, "failures"), number(tag, "errors")],
                seen: [0; 3],
            }),
            "testcase" if self.case.is_none() => self.case = Some(self.open_case(tag)),
            "failure" | "error" | "skipped" => self.open_result(&name, tag),
            _ => {}
        }
        self.path.push(name);
        Ok(())
    }

    fn open_case(&self, tag: &BytesStart<'_>) -> Open {
        let name = attribute(tag, "name").unwrap_or_default();
        // Node has the same word for each.
        let class = attribute(tag, "classname").filter(|class| !class.is_empty() && class != "test");
        let suite = self.suites.get(1..).unwrap_or_default().last();
        let name = match (class, suite.map(|suite| suite.name.as_str())) {
            (Some(class), _) => format!("{class}::{name}"),
            (None, Some(suite)) if !suite.is_empty() => format!("{suite} > {name}"),
            _ => name,
        };
        let seconds: Option<f64> = attribute(tag, "time").and_then(|time| time.trim().parse().ok());
        Open {
            name,
            time_ms: seconds.map(|seconds| seconds * 1000.0),
            file: attribute(tag, "file").or_else(|| suite.and_then(|suite| suite.file.clone())),
            status: TestStatus::Passed,
            is_todo: false,
            message: String::new(),
        }
    }

    /// The worst of several counts, unless a failure was expected.
    fn open_result(&mut self, kind: &str, tag: &BytesStart<'_>) {
        let Some(case) = &mut self.case else { return };
        let status = match kind {
            "failure" => TestStatus::Failed,
            "error" => TestStatus::Errored,
            _ => TestStatus::Skipped,
        };
        case.is_todo |= kind == "skipped" && attribute(tag, "type").as_deref() == Some("todo");
        let is_worse = matches!(
            (case.status, status),
            (TestStatus::Passed, _) | (TestStatus::Skipped, TestStatus::Failed | TestStatus::Errored)
        );
        if is_worse {
            case.status = if case.is_todo { TestStatus::Skipped } else { status };
            case.message = attribute(tag, "message").unwrap_or_default();
            self.text = Some(Message::default());
        }
    }

    fn text(&mut self, text: &str) -> Result<(), End> {
        if let Some(message) = &mut self.text {
            message.piece(text);
        }
        Ok(())
    }

    fn close(&mut self, found: &mut Collector) -> Result<(), End> {
        let Some(name) = self.path.pop() else { return Err(broken("an element ends that never began")) };
        match name.as_str() {
            "failure" | "error" | "skipped" => {
                let text = self.text.take().and_then(|mut text| text.take());
                if let (Some(case), Some(text)) = (&mut self.case, text)
                    && case.message.trim().is_empty()
                {
                    case.message = text;
                }
            }
            "testcase" => {
                if let Some(case) = self.case.take() {
                    self.count(case.status);
                    case.add_to(found);
                }
            }
            "testsuites" | "testsuite" if self.case.is_none() => {
                if let Some(suite) = self.suites.pop() {
                    suite.check()?;
                }
            }
            _ => {}
        }
        self.is_closed = self.path.is_empty();
        Ok(())
    }

    fn count(&mut self, status: TestStatus) {
        for suite in &mut self.suites {
            suite.seen[0] += 1;
            suite.seen[1] += u64::from(status == TestStatus::Failed);
            suite.seen[2] += u64::from(status == TestStatus::Errored);
        }
    }
}

impl Suite {
    /// A suite that has less than it says is no whole suite. A test that passes and then cannot clean up is counted
    /// twice by some.
    fn check(&self) -> Result<(), End> {
        let [tests, failures, errors] = self.declared;
        let [cases, failed, errored] = self.seen;
        match (tests, failures.unwrap_or(0).saturating_add(errors.unwrap_or(0))) {
            (Some(tests), _) if tests > cases + errored => {
                let reason = format!("the suite {:?} declares {tests} tests and has {cases}", self.name);
                Err(truncated(reason))
            }
            (_, bad) if bad > failed + errored => Err(broken(format!(
                "the suite {:?} declares {bad} failures and errors and lists {}",
                self.name,
                failed + errored
            ))),
            _ => Ok(()),
        }
    }
}

impl Open {
    fn add_to(self, found: &mut Collector) {
        let message = crate::lines::cut(&self.message, 2 * MAX_MESSAGE);
        found.test(Case {
            name: &self.name,
            status: self.status,
            time_ms: self.time_ms,
            message: (self.status != TestStatus::Passed).then_some(message),
            file: self.file.as_deref(),
        });
    }
}
