//! Answers of the HTTP API to questions about the history. The parts that `plumb history --json` prints as well have the same
//! shape here.

use plumb_profile::listing::{ListedRow, OpHistograms};
use serde::Serialize;

use crate::result::history::{HistoryCourse, HistoryDevice, HistoryFinding, HistorySenders};

/// The document of an answer.
#[derive(Debug, Serialize)]
pub struct ApiDocument {
    schema: &'static str,
    version: &'static str,
    /// Begin of the time of the answer, widened to whole windows; absent if no window is in it.
    pub from: Option<String>,
    /// Its end, excluded.
    pub to: Option<String>,
    /// Link to the rest of an answer that was cut at its limit.
    pub next: Option<String>,
    result: ApiAnswer,
}

/// The answer.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", content = "is", rename_all = "kebab-case")]
pub enum ApiAnswer {
    /// The devices.
    Devices(Vec<HistoryDevice>),
    /// The I/O of a device over time, a course for each layer.
    Courses(Vec<HistoryCourse>),
    /// The findings, in the order in which they appeared.
    Findings(Vec<HistoryFinding>),
    /// The histograms of a device, one entry for each layer.
    Histograms(Vec<ApiHistograms>),
    /// The senders and the residue table of a device, one entry for each layer.
    Tables(Vec<ApiTables>),
}

/// The histograms of a device over a time.
#[derive(Debug, Serialize)]
pub struct ApiHistograms {
    /// Its last name.
    pub device: String,
    /// WWN, serial number or UUID; a name without them.
    pub identity: String,
    /// Layer at which its I/O were counted.
    pub layer: &'static str,
    /// Begin of the time, widened to whole windows.
    pub from: String,
    /// Its end, excluded.
    pub to: String,
    /// Operations with I/O.
    pub ops: Vec<OpHistograms>,
    /// Damaged records in this time, whose I/O are in no figure.
    pub damaged: u64,
}

/// The senders and the places of a device's I/O.
#[derive(Debug, Serialize)]
pub struct ApiTables {
    /// The senders, as `plumb history senders` has them.
    pub senders: HistorySenders,
    /// I/O of windows without a residue table.
    pub untabled_ios: u64,
    /// The modulus of the residues, bytes.
    pub modulus_bytes: u64,
    /// Whether `device_ns_sum` of a row may be its share of that of all rows of its operation, length and stream bit.
    pub are_latencies_shared: bool,
    /// Rows of the whole table.
    pub rows_total: u64,
    /// Rows of this answer, most I/O first.
    pub rows: Vec<ListedRow>,
}

impl ApiDocument {
    /// An answer without a time and whole.
    #[must_use]
    pub fn new(version: &'static str, result: ApiAnswer) -> ApiDocument {
        ApiDocument {
            schema: "plumb.api/1",
            version,
            from: None,
            to: None,
            next: None,
            result,
        }
    }
}
