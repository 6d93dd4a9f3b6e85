//! How an operator sees what the server does: lines on stderr, and traces for a collector.

mod lines;
mod traces;

use crate::config::ObserveConfig;
use crate::exit::Failure;
use lines::Lines;
use std::io::IsTerminal;
use traces::Traces;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Everything that is ours begins so. What libraries say stays out: some of it quotes URLs and headers.
const OURS: &str = "cofferdam";

/// Dropping it sends what is left.
pub(super) struct Observing {
    traces: Option<Traces>,
    lines: Lines,
}

/// How lines look.
enum Form {
    Json,
    Human,
}

impl Observing {
    /// Begins to log, and to trace where that is asked for. Once for a process, which is in one of the roles.
    pub(super) fn begin(config: &ObserveConfig, role: &'static str) -> Result<Self, Failure> {
        let level = level(&config.log_level)?;
        let (writer, lines) = lines::start();
        let ours = filter_fn(move |metadata| {
            metadata.is_event() && metadata.target().starts_with(OURS) && *metadata.level() <= level
        });
        let form = tracing_subscriber::fmt::layer().with_writer(writer);
        let form = match form_of(&config.log_format)? {
            Form::Json => {
                form.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
            }
            Form::Human => form.with_target(false).boxed(),
        };
        let (traces, tracing) = {
            let otlp = config.otlp.as_deref();
            otlp.map(|address| Traces::begin(address, role)).transpose()?.unzip()
        };
        let registry = tracing_subscriber::registry().with(form.with_filter(ours)).with(tracing);
        registry.try_init().map_err(|error| Failure::new(format!("logging cannot begin: {error}")))?;
        Ok(Self { traces, lines })
    }

    /// Sends what is left, and waits for that.
    pub(super) fn end(self) {
        if let Some(traces) = self.traces {
            traces.end();
        }
        self.lines.end();
    }
}

fn level(text: &str) -> Result<LevelFilter, Failure> {
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    match text.parse() {
        Ok(level) if levels.contains(&text) => Ok(level),
        _ => Err(Failure::new(format!(
            "--log-level: {text:?} is not valid: it must be one of {}",
            levels.join(", ")
        ))),
    }
}

fn form_of(text: &str) -> Result<Form, Failure> {
    match text {
        "json" => Ok(Form::Json),
        "human" => Ok(Form::Human),
        "auto" if std::io::stderr().is_terminal() => Ok(Form::Human),
        "auto" => Ok(Form::Json),
        _ => {
            Err(Failure::new(format!("--log-format: {text:?} is not valid: it must be auto, human or json")))
        }
    }
}
