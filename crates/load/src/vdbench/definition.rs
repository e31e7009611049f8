//! The content of a file: storage, workloads and runs as they are defined, with Vdbench's defaults.

use std::time::Duration;

use super::value::Number;
use crate::job_file::FileLine;
use crate::plan::Arrivals;
use crate::series::Edge;

/// Most threads of one storage.
pub(super) const THREADS_MAX: u64 = 4_096;
/// Most storages that one `count=` makes.
pub(super) const COUNT_MAX: u64 = 4_096;

/// The content of a file, before runs are made of it.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    pub storages: Vec<Storage>,
    pub workloads: Vec<Workload>,
    /// `wd=default`, which a run without `wd=` has.
    pub workload_default: Workload,
    pub runs: Vec<RunDefinition>,
    pub notes: Vec<String>,
}

/// `sd=`
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub name: String,
    pub place: FileLine,
    pub lun: Option<String>,
    pub count: Option<(u64, u64)>,
    pub size: Option<u64>,
    pub threads: u32,
    pub hit_area: u64,
    pub offset: u64,
    pub align: Option<u64>,
    pub range: Option<(Edge, Edge)>,
}

/// `wd=`
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub name: String,
    pub place: FileLine,
    pub storages: Vec<String>,
    pub skew: Option<u8>,
    pub lengths: Vec<(u64, f64)>,
    pub read_percent: u8,
    pub order: Order,
    pub stride: Option<u64>,
    pub range: Option<(Edge, Edge)>,
    pub read_hits: u8,
    pub write_hits: u8,
}

/// `seekpct=`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The percentage of I/O at random starts; at 0 all are in sequence.
    Random(u8),
    /// In sequence, from a random place on.
    FromAnywhere,
    /// In sequence, to the end and no further.
    ToEnd,
}

/// `rd=`
#[derive(Clone, Debug)]
pub(super) struct RunDefinition {
    pub name: String,
    pub place: FileLine,
    pub workloads: Vec<String>,
    pub storages: Option<Vec<String>>,
    pub rate: Option<RateAsked>,
    pub curve: Vec<f64>,
    pub arrivals: Arrivals,
    pub elapsed: u64,
    pub interval: u64,
    pub warmup: u64,
    pub pause: u64,
    /// Lists over which it is repeated, the first outermost.
    pub loops: Vec<RunLoop>,
}

/// `iorate=`
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RateAsked {
    Max,
    Curve,
    /// One, or several to be run one after the other.
    Each(Vec<Number>),
}

/// `iorate=max` as a number, within a list.
pub(super) const MAX: Number = Number {
    value: f64::INFINITY,
    is_percent: false,
};

/// The loop of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunLoop {
    pub what: Varied,
    pub values: Vec<f64>,
}

/// The parameter that differs between repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Varied {
    Length,
    Threads,
    ReadPercent,
    ReadHits,
    WriteHits,
    RandomPercent,
    HitArea,
    Rate,
}

fn nowhere() -> FileLine {
    FileLine {
        file: "".into(),
        line: 0,
    }
}

impl Default for Storage {
    fn default() -> Storage {
        Storage {
            name: "default".to_owned(),
            place: nowhere(),
            lun: None,
            count: None,
            size: None,
            threads: 8,
            hit_area: 1 << 20,
            offset: 0,
            align: None,
            range: None,
        }
    }
}

impl Default for Workload {
    fn default() -> Workload {
        Workload {
            name: "default".to_owned(),
            place: nowhere(),
            storages: Vec::new(),
            skew: None,
            lengths: vec![(4096, 1.0)],
            read_percent: 100,
            order: Order::Random(100),
            stride: None,
            range: None,
            read_hits: 0,
            write_hits: 0,
        }
    }
}

impl Default for RunDefinition {
    fn default() -> RunDefinition {
        RunDefinition {
            name: "default".to_owned(),
            place: nowhere(),
            workloads: Vec::new(),
            storages: None,
            rate: None,
            curve: vec![10.0, 50.0, 70.0, 80.0, 90.0, 100.0],
            arrivals: Arrivals::Exponential,
            elapsed: 30,
            interval: 1,
            warmup: 0,
            pause: 0,
            loops: Vec::new(),
        }
    }
}

impl RunDefinition {
    /// Seconds as a duration.
    pub fn times(&self) -> [Duration; 4] {
        [self.elapsed, self.interval, self.warmup, self.pause].map(Duration::from_secs)
    }
}
