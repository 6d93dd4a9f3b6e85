//! The page of the documentation that says the table.

use super::{Gate, cell};
use cofferdam_api::ErrorCode;
use cofferdam_policy::Action;
use std::fmt::Write;

const HEAD: &str = "# When something is wrong

While something keeps new work from being done, it is refused at once, with the status 503, the code `unavailable`, \
`retryable: true`, a `Retry-After`, and in `details` the gate that is closed and since when. What can still be done \
is done. Nothing is accepted that cannot be kept.

A gate is closed by a failure, not by a look at each request, and opened by a probe that succeeds. While one is \
closed there is a probe each second, so that the end of the trouble is noticed within seconds. `GET /readyz` lists \
the closed gates, `cofferdam_gate_closed` in the metrics has them, and the log has what the database or the kernel \
said.

| gate | what is wrong |
| --- | --- |
";

const MIDDLE: &str = "
The gates and the verbs: the status, the code, and after how many seconds to come again; `served` where nothing is \
different. `GET /healthz` always answers, `GET /readyz` is 503 while any gate is closed.

";

const TAIL: &str = "
A request that is the first to meet the trouble is refused as well, with the same status and code, and may take \
longer: a database that does not answer is waited for up to 5 seconds. What runs goes on: how a job ended \
is kept in memory until the store takes it, or the server stops.
";

/// The whole page.
pub fn degradation_page() -> String {
    let mut page = HEAD.to_owned();
    for gate in Gate::ALL {
        let _ = writeln!(page, "| `{}` | {} |", gate.as_str(), gate.reason());
    }
    page.push_str(MIDDLE);
    page.push_str("| verb |");
    for gate in Gate::ALL {
        let _ = write!(page, " `{}` |", gate.as_str());
    }
    let _ = writeln!(page, "\n| --- |{}", " --- |".repeat(Gate::ALL.len()));
    for action in Action::ALL {
        let _ = write!(page, "| `{}` |", action.as_str());
        for gate in Gate::ALL {
            let _ = match cell(gate, action) {
                None => write!(page, " served |"),
                Some(refusal) => {
                    let (status, seconds) = (ErrorCode::Unavailable.status(), refusal.retry_after_seconds);
                    write!(page, " {status} `unavailable`, {seconds} |")
                }
            };
        }
        page.push('\n');
    }
    page.push_str(TAIL);
    page
}

#[cfg(test)]
mod tests {
    /// To write the page anew: `COFFERDAM_BLESS=1 cargo test -p cofferdam-control the_page`.
    #[test]
    fn the_page_says_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/degradation.md");
        let page = super::degradation_page();
        if std::env::var_os("COFFERDAM_BLESS").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap(),
            page,
            "docs/degradation.md is not what the table says"
        );
    }
}
