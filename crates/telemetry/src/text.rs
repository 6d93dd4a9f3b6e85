//! The text form of Prometheus, version 0.0.4.

use crate::Histogram;
use std::fmt::{Display, Write};

/// What the numbers of a name are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// A text that is being written.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins the numbers of a name.
    pub fn name(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub fn number(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        self.labels(labels, None);
        let _ = writeln!(self.0, " {value}");
    }

    /// A histogram of microseconds is shown in seconds, as is the custom; one of counts as it is.
    pub fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram, is_time: bool) {
        let shown = |value: u64| if is_time { value as f64 / 1e6 } else { value as f64 };
        let (steps, total, sum) = histogram.read();
        for (bound, count) in steps {
            let _ = write!(self.0, "{name}_bucket");
            self.labels(labels, Some(&shown(bound).to_string()));
            let _ = writeln!(self.0, " {count}");
        }
        let _ = write!(self.0, "{name}_bucket");
        self.labels(labels, Some("+Inf"));
        let _ = writeln!(self.0, " {total}");
        self.number(&format!("{name}_sum"), labels, shown(sum));
        self.number(&format!("{name}_count"), labels, total);
    }

    fn labels(&mut self, labels: &[(&str, &str)], bound: Option<&str>) {
        let mut all = labels.to_vec();
        all.extend(bound.map(|bound| ("le", bound)));
        if all.is_empty() {
            return;
        }
        for (i, (name, value)) in all.into_iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{name}=\"{value}\"", if i == 0 { '{' } else { ',' });
        }
        self.0.push('}');
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_as_prometheus_reads_it() {
        let mut text = Text::new();
        text.name("a_total", Kind::Counter, "All of a.");
        text.number("a_total", &[("why", "x\"y\\z\n")], 3);
        text.number("a_total", &[], 4);
        let histogram = Histogram::new(&[1_000, 2_500_000]);
        histogram.add(500);
        histogram.add(5_000_000);
        text.name("b_seconds", Kind::Histogram, "Time of b.");
        text.histogram("b_seconds", &[("phase", "run")], &histogram, true);
        let expected = "# HELP a_total All of a.\n# TYPE a_total counter\na_total{why=\"x\\\"y\\\\z\\n\"} 3\na_total 4\n\
                        # HELP b_seconds Time of b.\n# TYPE b_seconds histogram\n\
                        b_seconds_bucket{phase=\"run\",le=\"0.001\"} 1\nb_seconds_bucket{phase=\"run\",le=\"2.5\"} 1\n\
                        b_seconds_bucket{phase=\"run\",le=\"+Inf\"} 2\nb_seconds_sum{phase=\"run\"} 5.0005\n\
                        b_seconds_count{phase=\"run\"} 2\n";
        assert_eq!(text.into_string(), expected);
    }
}
