//! Whether the first report of a series is an average since boot, which says nothing about the measured time.

use serde::Serialize;

use super::{Series, SeriesTool, Tool};

/// The others' rates may be so far beyond their own range and the first still be one of them, as a share of their mean:
/// short runs vary by this much.
const SLACK: f64 = 0.10;

/// The treatment of the first report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstReport {
    /// Leave it out where it is an average since boot.
    #[default]
    Auto,
    /// Keep it.
    Keep,
    /// Leave it out.
    Drop,
}

/// Why a first report is taken for an average since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SinceBoot {
    /// The tool begins so, and its beginning is there.
    ByTheTool,
    /// Its rate is far from those of all others.
    ByItsRate,
    /// The user said so.
    Asked,
}

impl SinceBoot {
    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            SinceBoot::ByTheTool => "sysstat begins with an average since boot",
            SinceBoot::ByItsRate => {
                "its rate is far from that of all others: an average since boot"
            }
            SinceBoot::Asked => "as was asked",
        }
    }
}

impl Series {
    /// Whether the first report is to be left out for a device, and why.
    ///
    /// Of sysstat it is where its banner is seen: without `-y` it always begins so. Solaris has no banner, and an excerpt may
    /// begin anywhere: there the first report is left out where its rate is not like that of the others.
    #[must_use]
    pub fn since_boot(&self, device: &str, first: FirstReport) -> Option<SinceBoot> {
        match first {
            FirstReport::Keep => None,
            FirstReport::Drop => Some(SinceBoot::Asked),
            FirstReport::Auto => match self.tool {
                SeriesTool::Iostat(Tool::Sysstat) => {
                    (self.has_banner && !self.left_out_first).then_some(SinceBoot::ByTheTool)
                }
                SeriesTool::Iostat(Tool::Solaris) => self
                    .is_unlike_the_others(device)
                    .then_some(SinceBoot::ByItsRate),
                SeriesTool::Iostat(Tool::Sar) | SeriesTool::Fio | SeriesTool::Vdbench => None,
            },
        }
    }

    fn is_unlike_the_others(&self, device: &str) -> bool {
        let mut rates = self
            .rows_of(device)
            .map(|row| row.map_or(0.0, super::DeviceRow::per_second));
        let Some(first) = rates.next() else {
            return false;
        };
        let others: Vec<f64> = rates.collect();
        if others.is_empty() {
            return false;
        }
        let low = others.iter().copied().fold(f64::INFINITY, f64::min);
        let high = others.iter().copied().fold(0.0, f64::max);
        let mean = others.iter().sum::<f64>() / others.len() as f64;
        let reach = (high - low).max(SLACK * mean);
        first < low - reach || first > high + reach
    }
}
