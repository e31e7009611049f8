//! The output of `plumb probe --json`.

use std::path::Path;

use serde_json::Value;

use super::Ran;

/// A probe that has ended.
pub struct ProbeDocument {
    pub code: i32,
    pub document: Value,
    pub result: Value,
}

/// `plumb probe TARGET --json` and flags, parted by spaces.
pub fn probe(target: &Path, flags: &str) -> ProbeDocument {
    ProbeDocument::from_run(&probe_text(target, &format!("--json {flags}")))
}

/// The same with its output.
pub fn probe_text(target: &Path, flags: &str) -> Ran {
    super::plumb(
        ["probe".as_ref(), target.as_os_str()]
            .into_iter()
            .chain(flags.split_whitespace().map(str::as_ref)),
    )
}

/// Probes until one is decided, three times at most: a machine that is busy with other tests may leave it open.
pub fn probe_until_decided(target: &Path, flags: &str) -> ProbeDocument {
    let first = probe(target, flags);
    (1..3).fold(first, |probed, _| {
        if probed.is_open() {
            probe(target, flags)
        } else {
            probed
        }
    })
}

/// Leaves a test whose probe stayed open while other load took the processors; the test is repeated alone later.
#[macro_export]
macro_rules! undecided_on_a_busy_machine {
    ($machine:expr, $probed:expr) => {
        if $probed.is_open()
            && let Some(why) = $machine.was_busy()
        {
            plumb_testkit::undecided!(why);
        }
    };
}

impl ProbeDocument {
    pub fn from_run(ran: &Ran) -> Self {
        let document = ran.json();
        Self {
            code: ran.code,
            result: document["result"].clone(),
            document,
        }
    }

    pub fn verdict(&self) -> &str {
        self.result["verdict"].as_str().expect("a verdict")
    }

    /// Granularity and offset.
    pub fn grid(&self) -> Option<(u64, u64)> {
        let grid = &self.result["grid"];
        grid["granularity_bytes"]
            .as_u64()
            .zip(grid["offset_bytes"].as_u64())
    }

    /// No verdict, reported as such. A grid may be known then, with an open question about a coarser one.
    pub fn is_open(&self) -> bool {
        (self.verdict(), self.code) == ("inconclusive", 3)
    }

    /// No verdict, and no grid.
    pub fn is_blank(&self) -> bool {
        self.is_open() && self.grid().is_none()
    }

    /// The facts about a grid, as far as decided.
    pub fn is_right(&self, granularity: u64, offset: u64) -> bool {
        let expected = if offset == 0 {
            ("aligned", 0)
        } else {
            ("misaligned", 1)
        };
        (self.verdict(), self.code) == expected && self.grid() == Some((granularity, offset))
    }

    pub fn seconds(&self) -> f64 {
        self.result["seconds"].as_f64().expect("a time")
    }

    pub fn reason(&self) -> &str {
        self.result["reason"].as_str().unwrap_or_default()
    }

    /// Nothing is measured, since no medium answers the reads.
    pub fn is_without_media(&self) -> bool {
        self.is_blank() && self.reason().starts_with("not backed by media")
    }

    pub fn notes(&self) -> String {
        self.result["notes"].to_string()
    }

    /// Ends of the interval of the cost.
    pub fn penalty(&self) -> (f64, f64) {
        let end = |name: &str| self.result["penalty"][name].as_f64().expect("a penalty");
        (end("low"), end("high"))
    }

    /// The interval holds that ratio.
    pub fn holds(&self, ratio: f64) -> bool {
        self.holds_nearly(ratio, 0.0)
    }

    /// The same with room for the load of other tests. It slows aligned and misaligned reads by as much, and an
    /// interval may be as short as a thousandth.
    pub fn is_near(&self, ratio: f64) -> bool {
        self.holds_nearly(ratio, 0.02)
    }

    fn holds_nearly(&self, ratio: f64, room: f64) -> bool {
        let (low, high) = self.penalty();
        low <= ratio * (1.0 + room) && ratio * (1.0 - room) <= high
    }
}
