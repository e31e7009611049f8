//! The gain of writing in sequence, or of gathering records into larger writes, compared with buying disks.
//!
//! The user measures all rates: this module only computes the records, and the number of disks for the same demand.
//! Without a measured rate for gathered writes their number is bounded, not guessed.

use plumb_geometry::{Bytes, group_digits};
use plumb_quoting::Command;

use crate::error::PlanError;
use crate::plan::{Harm, Plan, Remedy, Step, Table, Unit, Value};

/// Records to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct WritesRequest {
    /// Length of a record.
    pub record: Bytes,
    /// Records that one write can hold.
    pub gather: u64,
    /// Records a second that are demanded, if known.
    pub demand: Option<f64>,
    /// Rate of one disk for random writes of a record, I/O a second.
    pub random: f64,
    /// The same in sequence.
    pub sequential: Option<f64>,
    /// Random writes of that number of records each.
    pub gathered: Option<f64>,
    /// The same in sequence.
    pub gathered_sequential: Option<f64>,
}

/// One way of writing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteWay {
    /// Its name.
    pub words: &'static str,
    /// Whether it is sequential.
    pub is_sequential: bool,
    /// Records in a write.
    pub records: u64,
    /// Writes a second; `None` when not measured.
    pub ios: Option<f64>,
}

impl WriteWay {
    /// Records a second.
    #[must_use]
    pub fn records_per_second(&self) -> Option<f64> {
        self.ios.map(|ios| ios * self.records as f64)
    }

    /// Disks that a demand takes.
    #[must_use]
    pub fn disks(&self, demand: Option<f64>) -> Option<u64> {
        let disks = (demand? / self.records_per_second()? - 1e-9)
            .ceil()
            .max(1.0);
        (disks < u64::MAX as f64).then_some(disks as u64)
    }
}

/// The four ways, as they are measured.
#[must_use]
pub fn ways(request: &WritesRequest) -> [WriteWay; 4] {
    let way = |words, is_sequential, records, ios| WriteWay {
        words,
        is_sequential,
        records,
        ios,
    };
    [
        way("random", false, 1, Some(request.random)),
        way("sequential", true, 1, request.sequential),
        way("gathered", false, request.gather, request.gathered),
        way("both", true, request.gather, request.gathered_sequential),
    ]
}

/// Works out the plan.
///
/// # Errors
/// When a rate or a length is no positive number.
pub fn plan(request: &WritesRequest) -> Result<Plan, PlanError> {
    check(request)?;
    let ways = ways(request);
    let best = ways
        .iter()
        .filter_map(WriteWay::records_per_second)
        .fold(0.0, f64::max);
    let mut plan = Plan::new(
        "writes",
        format!(
            "writes of {} records: one by one, or better",
            request.record
        ),
    );
    plan.figure("record_bytes", request.record, Unit::Bytes, "a record");
    plan.figure(
        "gather",
        request.gather,
        Unit::Count,
        "records that one write can hold",
    );
    let write = request
        .record
        .checked_mul(request.gather)
        .ok_or(PlanError::TooLarge {
            what: "a gathered write",
        })?;
    plan.figure("write_bytes", write, Unit::Bytes, "length of such a write");
    plan.figure(
        "demand_per_second",
        request.demand,
        Unit::PerSecond,
        "records demanded",
    );
    plan.figure(
        "best_per_second",
        best,
        Unit::PerSecond,
        "records, the best way that was measured",
    );
    plan.figure(
        "gain",
        best / request.random,
        Unit::Ratio,
        "times the rate of random writes of one record",
    );
    let bound = request.random * request.gather as f64;
    plan.figure(
        "gathered_bound_per_second",
        bound,
        Unit::PerSecond,
        "records, gathered and random, at most: a longer write is never faster",
    );
    plan.tables.push(table(request, &ways));
    plan.add([measure(request, write), sequence(), gather(request, write)]);
    plan.note("rates are those given; lines without one were not measured, and are not guessed");
    plan.note("this changes the requests: only a measurement of the changed application proves it");
    Ok(plan)
}

fn check(request: &WritesRequest) -> Result<(), PlanError> {
    let rates = [
        Some(request.random),
        request.sequential,
        request.gathered,
        request.gathered_sequential,
        request.demand,
    ];
    if let Some(bad) = rates
        .into_iter()
        .flatten()
        .find(|rate| !rate.is_finite() || *rate <= 0.0)
    {
        let expected = "a number above 0";
        return Err(PlanError::OutOfRange {
            what: "a rate",
            found: bad.to_string(),
            expected,
        });
    }
    if request.record.0 == 0 || request.gather == 0 {
        let expected = "at least 1";
        return Err(PlanError::OutOfRange {
            what: "a record or their number",
            found: "0".to_owned(),
            expected,
        });
    }
    Ok(())
}

fn table(request: &WritesRequest, ways: &[WriteWay]) -> Table {
    let mut table = Table::new(
        "Figures of one disk",
        &[
            ("way", "way", Unit::Words),
            ("ios_per_second", "I/O a second", Unit::PerSecond),
            ("records", "records each", Unit::Count),
            ("records_per_second", "records a second", Unit::PerSecond),
            ("disks", "disks", Unit::Count),
        ],
    );
    for way in ways {
        table.row(vec![
            way.words.into(),
            way.ios.into(),
            way.records.into(),
            way.records_per_second().into(),
            way.disks(request.demand).map_or(Value::None, Value::Count),
        ]);
    }
    table
}

/// Longest record, and most of them in a write, that `plumb bench --study gather` takes.
const STUDY_RECORD_MAX: Bytes = Bytes(16 << 10);
const STUDY_GATHER_MAX: u64 = 4096;

/// The rates have to come from somewhere: one study measures all four ways, where it takes such records.
fn measure(request: &WritesRequest, write: Bytes) -> Remedy {
    if request.record > STUDY_RECORD_MAX || request.gather > STUDY_GATHER_MAX {
        return measure_with_fio(request, write);
    }
    let file = Command::new("dd").flags("if=/dev/zero of=SCRATCH bs=1M count=1024 conv=fsync");
    let gather = match request.gather {
        1 => "1".to_owned(),
        gather => format!("1,{gather}"),
    };
    let study = Command::new("plumb bench SCRATCH --study gather")
        .arg(format!("--record={}", request.record.0))
        .arg(format!("--gather={gather}"))
        .flags("--write --yes SCRATCH");
    Remedy::new(Harm::Tune, "measure the four ways", "rates to put in here")
        .step(Step::new(
            file,
            "takes 1 GiB: SCRATCH is a new file on that disk",
            "remove the file",
        ))
        .step(Step::new(study, "writes over SCRATCH", "remove the file"))
        .constraint("`--at-threads` sets the number of writers: give that of the application")
}

fn measure_with_fio(request: &WritesRequest, write: Bytes) -> Remedy {
    let fio = |name: &str, rw: &str, bytes: u64| {
        Step::new(
            Command::new("fio")
                .arg(format!("--name={name}"))
                .flags("--filename=SCRATCH --size=1g")
                .arg(format!("--rw={rw}"))
                .arg(format!("--bs={bytes}"))
                .flags(
                    "--direct=1 --numjobs=4 --offset_increment=256m --time_based --runtime=30 --group_reporting",
                ),
            "writes over SCRATCH: a file on that disk that nobody needs",
            "remove the file",
        )
    };
    Remedy::new(Harm::Tune, "measure the four ways", "rates to put in here")
        .step(fio("random", "randwrite", request.record.0))
        .step(fio("sequential", "write", request.record.0))
        .step(fio("gathered", "randwrite", write.0))
        .step(fio("both", "write", write.0))
        .constraint(
            "as many jobs as the application has writers; a record below the logical block cannot be direct",
        )
}

fn sequence() -> Remedy {
    Remedy::new(
        Harm::Tune,
        "write in sequence",
        "no seeks: append to a log, sort it in later",
    )
    .constraint(
        "a change of the application: it finds records by an index instead of by their place",
    )
    .constraint("one log a disk: two on one disk seek between them")
}

fn gather(request: &WritesRequest, write: Bytes) -> Remedy {
    Remedy::new(
        Harm::Tune,
        "gather records",
        format!("{} records in one write of {write}", group_digits(request.gather)),
    )
    .constraint("a change of the application: a record is safe only once its group is written, so the first one waits")
    .constraint("the group should be on the grid of the layer below: a whole block, or read-modify-write eats the gain")
}
