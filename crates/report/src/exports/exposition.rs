//! The formats of Prometheus: families of series with labels.

use std::fmt::{self, Display, Write};

use plumb_profile::histogram::{Counts, log_linear_bounds};
use plumb_profile::profile::OpTotals;

use super::protobuf::Message;

/// A format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricsFormat {
    /// The text format 0.0.4, which every version of Prometheus reads.
    #[default]
    Classic,
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Protobuf with native histograms.
    Protobuf,
}

impl MetricsFormat {
    /// All formats.
    pub const ALL: [MetricsFormat; 3] = [
        MetricsFormat::Classic,
        MetricsFormat::OpenMetrics,
        MetricsFormat::Protobuf,
    ];

    /// The media type for HTTP.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::Classic => "text/plain; version=0.0.4; charset=utf-8",
            MetricsFormat::OpenMetrics => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            MetricsFormat::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// The format that a client prefers, by its header `Accept`; the classic one if it names none.
    #[must_use]
    pub fn accepted(accept: &str) -> MetricsFormat {
        let formats = accept.split(',').filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let media_type = parts.next()?.to_ascii_lowercase();
            let parts: Vec<String> = parts.map(str::to_ascii_lowercase).collect();
            let has = |part: &str| parts.iter().any(|one| one == part);
            let format = match media_type.as_str() {
                "application/openmetrics-text" => MetricsFormat::OpenMetrics,
                "application/vnd.google.protobuf" if has("encoding=delimited") => {
                    MetricsFormat::Protobuf
                }
                "text/plain" | "text/*" | "*/*" => MetricsFormat::Classic,
                _ => return None,
            };
            let weight = parts.iter().find_map(|part| part.strip_prefix("q="));
            let weight: f64 = weight.map_or(Some(1.0), |weight| weight.parse().ok())?;
            (weight > 0.0).then_some((weight, format))
        });
        // Of equal ones the first.
        let best = formats.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map_or(MetricsFormat::Classic, |(_, format)| format)
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

    /// The number of the type in protobuf, and the field of its value in a metric.
    const fn numbers(self) -> (u64, u64) {
        match self {
            Kind::Counter => (0, 3),
            Kind::Gauge | Kind::Info => (1, 2),
            Kind::Histogram => (4, 7),
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

/// A histogram of latencies.
pub(crate) struct Latencies<'a> {
    /// By bucket of the log-linear histogram of ns.
    pub(crate) counts: &'a Counts,
    /// Sum of the latencies, ns.
    pub(crate) sum_ns: u128,
    /// Ends of the classic buckets, ns; a latency of exactly the end counts in the next bucket.
    pub(crate) ends_ns: &'a [u64],
}

impl Latencies<'_> {
    /// The classic buckets: the end, and the I/O below it.
    fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut counts = self.counts.iter().peekable();
        let mut below = 0u64;
        self.ends_ns.iter().map(move |end_ns| {
            while let Some((_, ios)) =
                counts.next_if(|(bucket, _)| log_linear_bounds(*bucket).1 < *end_ns)
            {
                below = below.saturating_add(ios);
            }
            (*end_ns, below)
        })
    }
}

/// Metrics in the making.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    format: MetricsFormat,
    text: String,
    family: &'static str,
    kind: Kind,
    /// The family and the families before it, in protobuf.
    message: Message,
    messages: Message,
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
            // The other formats have no information.
            (_, Kind::Info) => (kind.suffix(), Kind::Gauge.word()),
            (_, _) => (kind.suffix(), kind.word()),
        };
        if self.format == MetricsFormat::Protobuf {
            self.end_family();
            self.message
                .bytes(1, format!("{family}{suffix}").as_bytes());
            self.message.bytes(2, help.as_bytes());
            self.message.unsigned(3, kind.numbers().0);
            return;
        }
        // Writing to a string does not fail.
        let _ = writeln!(
            self.text,
            "# HELP {family}{suffix} {help}\n# TYPE {family}{suffix} {word}"
        );
    }

    /// A series of the family.
    pub(crate) fn series(&mut self, labels: &[(&str, &str)], value: impl Display) {
        if self.format == MetricsFormat::Protobuf {
            // A double is all that Prometheus stores.
            let value = value.to_string().parse().unwrap_or(f64::NAN);
            return self.metric(labels, |message| message.double(1, value));
        }
        self.part(self.kind.suffix(), labels, value);
    }

    /// A histogram of the family.
    pub(crate) fn histogram(&mut self, labels: &[(&str, &str)], latencies: &Latencies<'_>) {
        let all = latencies.counts.total();
        let sum = Seconds(latencies.sum_ns);
        if self.format == MetricsFormat::Protobuf {
            return self.metric(labels, |message| {
                message.unsigned(1, all);
                message.double(2, sum.as_f64());
                for (end_ns, below) in latencies.buckets() {
                    message.message(3, |bucket| {
                        bucket.unsigned(1, below);
                        bucket.double(2, Seconds(end_ns.into()).as_f64());
                    });
                }
                // The middle of a bucket: its width is at most a sixteenth of its values.
                message.native_buckets(
                    3,
                    latencies.counts.iter().map(|(bucket, ios)| {
                        let (low, high) = log_linear_bounds(bucket);
                        let twice = u128::from(low) + u128::from(high);
                        (Seconds(twice).as_f64() / 2.0, ios)
                    }),
                );
            });
        }
        for (end_ns, below) in latencies.buckets() {
            let end = Seconds(end_ns.into()).to_string();
            self.part("_bucket", &[labels, &[("le", &end)]].concat(), below);
        }
        self.part("_bucket", &[labels, &[("le", "+Inf")]].concat(), all);
        self.part("_sum", labels, sum);
        self.part("_count", labels, all);
    }

    /// Whether a histogram costs one series.
    pub(crate) fn is_native(&self) -> bool {
        self.format == MetricsFormat::Protobuf
    }

    /// A native histogram of lengths, exact: a bucket is a power of two.
    pub(crate) fn lengths(&mut self, labels: &[(&str, &str)], op: &OpTotals) {
        self.metric(labels, |message| {
            message.unsigned(1, op.sizes.total());
            message.double(2, as_f64(op.bytes.into()));
            let power = |(index, ios)| (f64::from(index as u32).exp2(), ios);
            message.native_buckets(0, op.sizes.iter().map(power));
        });
    }

    /// A series in protobuf.
    fn metric(&mut self, labels: &[(&str, &str)], value: impl FnOnce(&mut Message)) {
        let field = self.kind.numbers().1;
        self.message.message(4, |metric| {
            for (label, word) in labels {
                metric.message(1, |pair| {
                    pair.bytes(1, label.as_bytes());
                    pair.bytes(2, word.as_bytes());
                });
            }
            metric.message(field, value);
        });
    }

    fn end_family(&mut self) {
        let message = std::mem::take(&mut self.message);
        if !message.is_empty() {
            self.messages.delimited(&message);
        }
    }

    /// A line of a series, with a suffix to the name of the family.
    fn part(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
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

    /// The metrics in their format.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        if self.format == MetricsFormat::Protobuf {
            self.end_family();
            return self.messages.into_bytes();
        }
        self.into_text().into_bytes()
    }

    /// The metrics as text; empty in protobuf.
    pub(crate) fn into_text(mut self) -> String {
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

/// Nanoseconds, written as seconds without a loss.
struct Seconds(u128);

impl Seconds {
    fn as_f64(&self) -> f64 {
        as_f64(self.0) / 1e9
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a double is all that Prometheus stores"
)]
fn as_f64(value: u128) -> f64 {
    value as f64
}

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ns) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        let digits = format!("{ns:09}");
        let digits = digits.trim_end_matches('0');
        let digits = if digits.is_empty() { "0" } else { digits };
        write!(f, "{seconds}.{digits}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_lose_nothing() {
        for (ns, words) in [
            (0, "0.0"),
            (1, "0.000000001"),
            (16_384, "0.000016384"),
            (1_000_000_000, "1.0"),
            (17_179_869_184, "17.179869184"),
        ] {
            assert_eq!(Seconds(ns).to_string(), words);
        }
    }

    #[test]
    fn a_client_chooses_the_format() {
        use MetricsFormat::{Classic, OpenMetrics, Protobuf};
        let protobuf = Protobuf.content_type();
        for (accept, format) in [
            ("", Classic),
            ("*/*", Classic),
            ("text/html", Classic),
            (
                "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
                OpenMetrics,
            ),
            (
                "text/plain;version=0.0.4;q=0.5, application/openmetrics-text;q=0.7",
                OpenMetrics,
            ),
            ("application/openmetrics-text;q=0, */*;q=0.1", Classic),
            // Protobuf with text between the families, or whole.
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
                Classic,
            ),
            (protobuf, Protobuf),
            (
                &format!("{protobuf},application/openmetrics-text;version=1.0.0;q=0.8"),
                Protobuf,
            ),
            (
                &format!("{protobuf};q=0.3,application/openmetrics-text;q=0.8"),
                OpenMetrics,
            ),
            ("application/openmetrics-text;q=nonsense", Classic),
        ] {
            assert_eq!(MetricsFormat::accepted(accept), format, "{accept}");
        }
    }
}
