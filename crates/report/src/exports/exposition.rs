//! The text formats of Prometheus: families of series with labels.

use std::fmt::{Display, Write};

/// A text format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricsFormat {
    /// The text format 0.0.4, which every version of Prometheus reads.
    #[default]
    Classic,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl MetricsFormat {
    /// The media type for HTTP.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::Classic => "text/plain; version=0.0.4; charset=utf-8",
            MetricsFormat::OpenMetrics => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
        }
    }
}

/// The type of a family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Gauge,
    Counter,
    Histogram,
    /// Always 1: the labels are the information.
    Info,
}

impl Kind {
    /// Ends the names of all series of the family; those of a histogram differ.
    const fn suffix(self) -> &'static str {
        match self {
            Kind::Gauge | Kind::Histogram => "",
            Kind::Counter => "_total",
            Kind::Info => "_info",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        }
    }
}

/// A text in the making.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    format: MetricsFormat,
    text: String,
    family: &'static str,
    kind: Kind,
}

impl Exposition {
    pub(crate) fn new(format: MetricsFormat) -> Exposition {
        Exposition {
            format,
            ..Exposition::default()
        }
    }

    /// Begins a family; the suffix of its type is no part of its name.
    pub(crate) fn begin(&mut self, family: &'static str, kind: Kind, help: &str) {
        self.family = family;
        self.kind = kind;
        let (suffix, word) = match (self.format, kind) {
            (MetricsFormat::OpenMetrics, _) => ("", kind.word()),
            // The classic format has no information.
            (MetricsFormat::Classic, Kind::Info) => (kind.suffix(), Kind::Gauge.word()),
            (MetricsFormat::Classic, _) => (kind.suffix(), kind.word()),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            self.text,
            "# HELP {family}{suffix} {help}\n# TYPE {family}{suffix} {word}"
        );
    }

    /// A series of the family.
    pub(crate) fn series(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.part(self.kind.suffix(), labels, value);
    }

    /// A series of a histogram, with its own suffix.
    pub(crate) fn part(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text += self.family;
        self.text += suffix;
        for (at, (label, word)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escaped(word));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    pub(crate) fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.text += "# EOF\n";
        }
        self.text
    }
}

/// The three signs that the formats escape.
fn escaped(word: &str) -> String {
    word.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
