//! How many disks a demanded rate takes.
//!
//! Reads cost one I/O. A random small write costs the I/O of its redundancy: 1 without, 2 on mirrors, 4 on RAID 5 (read
//! data and parity, write both), 6 on RAID 6. Response time models each disk as a separate queue with random arrivals
//! and service times (M/M/1): service / (1 − utilisation). Real disks do better with a deep queue and worse with
//! bursts; it shows the utilisation at which response becomes expensive, and is no forecast.

use plumb_geometry::group_digits;
use plumb_quoting::Command;

use crate::error::PlanError;
use crate::plan::{Harm, Plan, Remedy, Step, Table, Unit, Value};

/// Most disks that are tried.
pub const DISKS_MAX: u64 = 1 << 20;

/// Rounding error of a number of disks, or of a utilisation.
const HAIR: f64 = 1e-9;

/// Redundancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raid {
    /// Stripe.
    Raid0,
    /// Mirror of two.
    Raid1,
    /// Stripe of mirrors of two.
    Raid10,
    /// One parity.
    Raid5,
    /// Two parities.
    Raid6,
}

impl Raid {
    /// I/O of disks that a small write takes.
    #[must_use]
    pub const fn write_cost(self) -> u64 {
        match self {
            Raid::Raid0 => 1,
            Raid::Raid1 | Raid::Raid10 => 2,
            Raid::Raid5 => 4,
            Raid::Raid6 => 6,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Raid::Raid0 => "RAID 0",
            Raid::Raid1 => "RAID 1",
            Raid::Raid10 => "RAID 10",
            Raid::Raid5 => "RAID 5",
            Raid::Raid6 => "RAID 6",
        }
    }

    const fn level(self) -> u64 {
        match self {
            Raid::Raid0 => 0,
            Raid::Raid1 => 1,
            Raid::Raid10 => 10,
            Raid::Raid5 => 5,
            Raid::Raid6 => 6,
        }
    }

    /// The next number of disks from which such an array can be built.
    const fn up(self, disks: u64) -> u64 {
        match self {
            Raid::Raid0 => {
                if disks < 1 {
                    1
                } else {
                    disks
                }
            }
            Raid::Raid1 | Raid::Raid10 => {
                if disks < 2 {
                    2
                } else {
                    disks.next_multiple_of(2)
                }
            }
            Raid::Raid5 => {
                if disks < 3 {
                    3
                } else {
                    disks
                }
            }
            Raid::Raid6 => {
                if disks < 4 {
                    4
                } else {
                    disks
                }
            }
        }
    }
}

/// Disks to be bought.
#[derive(Clone, Debug, PartialEq)]
pub struct DisksRequest {
    /// Reads a second.
    pub reads: f64,
    /// Writes a second.
    pub writes: f64,
    /// How many times that is wanted.
    pub growth: f64,
    /// Rate of one disk, I/O a second, measured with such I/O.
    pub disk_rate: f64,
    /// Redundancy.
    pub raid: Raid,
    /// Share of the load that must be left over: 0.2.
    pub margin: f64,
    /// Largest mean response, ms.
    pub response_ms: Option<f64>,
    /// Chunk for the commands.
    pub chunk_kib: u64,
}

/// The result with a number of disks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DisksOutcome {
    /// How many.
    pub disks: u64,
    /// I/O of disks a second that they give.
    pub capacity: f64,
    /// Share of it that the load takes; 1 and more is overload.
    pub utilisation: f64,
    /// Capacity beyond the load, as a share of the load; below 0 in overload.
    pub margin: f64,
    /// Mean response of an I/O of a disk, ms; `None` in overload, where it grows without end.
    pub response_ms: Option<f64>,
}

impl DisksRequest {
    /// I/O of disks a second.
    #[must_use]
    pub fn load(&self) -> f64 {
        (self.reads + self.writes * self.raid.write_cost() as f64) * self.growth
    }

    /// Mean service time of a disk, ms.
    #[must_use]
    pub fn service_ms(&self) -> f64 {
        1000.0 / self.disk_rate
    }

    /// The result with a number of disks.
    #[must_use]
    pub fn outcome(&self, disks: u64) -> DisksOutcome {
        let capacity = disks as f64 * self.disk_rate;
        let load = self.load();
        let utilisation = load / capacity;
        let response_ms = (utilisation < 1.0).then(|| self.service_ms() / (1.0 - utilisation));
        DisksOutcome {
            disks,
            capacity,
            utilisation,
            margin: capacity / load - 1.0,
            response_ms,
        }
    }

    /// The fewest disks that such an array can have and that give `capacity` a second.
    fn fewest(&self, capacity: f64) -> Option<u64> {
        // A hair above a whole number is one: 318 / 79.5 must not become 5 by the last bit.
        let disks = (capacity / self.disk_rate - HAIR).ceil().max(1.0);
        (disks <= DISKS_MAX as f64).then(|| self.raid.up(disks as u64))
    }
}

/// Numbers of disks, each the fewest for its demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskCounts {
    /// Enough for the load at all: if they are busy all the time, the queue grows without end.
    pub load: u64,
    /// That leave the margin as well.
    pub margin: u64,
    /// That answer in time as well; `None` when no limit was given.
    pub response: Option<u64>,
}

impl DiskCounts {
    /// The number that meets all of it.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.load.max(self.margin).max(self.response.unwrap_or(0))
    }
}

/// Works out the numbers.
///
/// # Errors
/// If a rate is no positive number, a response is below that of the disk alone, or too many disks are needed.
pub fn counts(request: &DisksRequest) -> Result<DiskCounts, PlanError> {
    check(request)?;
    let load = request.load();
    let fewest = |capacity: f64| {
        request.fewest(capacity).ok_or(PlanError::Unreachable {
            what: "the number of disks",
            found: format!("more than {}", group_digits(DISKS_MAX)),
            expected: "a smaller load or faster disks",
        })
    };
    let response = request.response_ms.map(|limit| {
        // service / (1 - u) <= limit, so u <= 1 - service / limit.
        let utilisation = 1.0 - request.service_ms() / limit;
        fewest(load / utilisation)
    });
    let just = fewest(load)?;
    let is_busy = request.outcome(just).utilisation >= 1.0 - HAIR;
    Ok(DiskCounts {
        load: if is_busy {
            request.raid.up(just + 1)
        } else {
            just
        },
        margin: fewest(load * (1.0 + request.margin))?,
        response: response.transpose()?,
    })
}

fn check(request: &DisksRequest) -> Result<(), PlanError> {
    let positive = |what, value: f64| {
        if value.is_finite() && value > 0.0 {
            return Ok(());
        }
        Err(PlanError::OutOfRange {
            what,
            found: value.to_string(),
            expected: "a number above 0",
        })
    };
    positive("the rate of a disk", request.disk_rate)?;
    positive("the growth", request.growth)?;
    positive("the load", request.load())?;
    for (what, value) in [
        ("reads", request.reads),
        ("writes", request.writes),
        ("the margin", request.margin),
    ] {
        if !value.is_finite() || value < 0.0 {
            return Err(PlanError::OutOfRange {
                what,
                found: value.to_string(),
                expected: "0 or more",
            });
        }
    }
    if let Some(limit) = request.response_ms {
        positive("the response", limit)?;
        if limit <= request.service_ms() {
            return Err(PlanError::ResponseBelowService {
                limit_ms: format!("{limit}"),
                service_ms: format!("{:.2}", request.service_ms()),
                disk_per_second: request.disk_rate as u64,
            });
        }
    }
    Ok(())
}

/// Works out the plan.
///
/// # Errors
/// As [`counts`].
pub fn plan(request: &DisksRequest) -> Result<Plan, PlanError> {
    let counts = counts(request)?;
    let disks = counts.all();
    let chosen = request.outcome(disks);
    let mut plan = Plan::new(
        "disks",
        format!("{} disks as {}", group_digits(disks), request.raid.word()),
    );
    figures(&mut plan, request, &counts, &chosen);
    plan.tables.push(table(request, &counts));
    plan.add(
        [md(request, disks), svm(request, disks)]
            .into_iter()
            .flatten(),
    );
    plan.note(
        "response: each disk as a queue of its own with random arrivals and service times (M/M/1); a write on RAID 5 \
         or 6 waits for two rounds of it, a read and a write",
    );
    plan.note(
        "the rate of a disk has to be measured with such I/O: their size, their randomness, as many at once",
    );
    if request.raid == Raid::Raid0 {
        plan.note("RAID 0 loses everything with the first disk: it needs copies elsewhere");
    }
    Ok(plan)
}

fn figures(plan: &mut Plan, request: &DisksRequest, counts: &DiskCounts, chosen: &DisksOutcome) {
    let cost = request.raid.write_cost();
    plan.figure(
        "load_per_second",
        request.load(),
        Unit::PerSecond,
        "I/O of disks: reads, and writes times their cost",
    );
    plan.figure(
        "write_cost",
        cost,
        Unit::Count,
        format!("I/O of disks for a small write on {}", request.raid.word()),
    );
    plan.figure(
        "disks_load",
        counts.load,
        Unit::Count,
        "disks that carry the load",
    );
    plan.figure(
        "margin_wanted",
        request.margin,
        Unit::Share,
        "of the load wanted as a margin",
    );
    plan.figure(
        "disks_margin",
        counts.margin,
        Unit::Count,
        "disks that leave the margin",
    );
    if let (Some(limit), Some(disks)) = (request.response_ms, counts.response) {
        let words = format!("disks that answer within {limit} ms on average");
        plan.figure("disks_response", disks, Unit::Count, words);
    }
    plan.figure("disks", chosen.disks, Unit::Count, "disks for all of it");
    plan.figure(
        "capacity_per_second",
        chosen.capacity,
        Unit::PerSecond,
        "I/O that they give",
    );
    plan.figure(
        "utilisation",
        chosen.utilisation,
        Unit::Share,
        "of each disk's time is taken",
    );
    plan.figure(
        "margin",
        chosen.margin,
        Unit::Share,
        "of the load is left over",
    );
    plan.figure(
        "service_ms",
        request.service_ms(),
        Unit::Ms,
        "a disk takes for an I/O when nothing waits",
    );
    plan.figure(
        "response_ms",
        chosen.response_ms,
        Unit::Ms,
        "average response time, with the wait in the queue",
    );
}

/// The numbers around the chosen one.
fn table(request: &DisksRequest, counts: &DiskCounts) -> Table {
    let mut table = Table::new(
        "Figures per number of disks",
        &[
            ("disks", "disks", Unit::Count),
            ("capacity_per_second", "I/O a second", Unit::PerSecond),
            ("utilisation", "utilisation", Unit::Share),
            ("margin", "margin", Unit::Share),
            ("response_ms", "response", Unit::Ms),
        ],
    );
    let step = if matches!(request.raid, Raid::Raid1 | Raid::Raid10) {
        2
    } else {
        1
    };
    let (first, last) = (counts.load.saturating_sub(step), counts.all() + 3 * step);
    let mut disks = request.raid.up(first);
    let mut rows = 0;
    // A response limit close to the service time asks for many: only the ends of the list are shown then.
    while disks <= last && rows < 12 {
        if disks == counts.all() {
            table.chosen = Some(table.rows.len());
        }
        let one = request.outcome(disks);
        let margin = if one.margin < 0.0 {
            Value::None
        } else {
            one.margin.into()
        };
        table.row(vec![
            disks.into(),
            one.capacity.into(),
            one.utilisation.into(),
            margin,
            one.response_ms.into(),
        ]);
        rows += 1;
        disks = if rows == 6 && last > disks + 6 * step {
            request.raid.up(last - 5 * step)
        } else {
            disks + step
        };
    }
    table
}

fn over(request: &DisksRequest, disks: u64) -> String {
    format!("{} over {} disks", request.raid.word(), group_digits(disks))
}

const ALL_LOST: &str = "all data of the disks are lost";

fn md(request: &DisksRequest, disks: u64) -> Option<Remedy> {
    // Mirrors of two: over more disks md calls that 10, because its 1 has a copy on every disk.
    let is_pair = request.raid == Raid::Raid1 && disks == 2;
    let level = if request.raid == Raid::Raid1 && !is_pair {
        Raid::Raid10.level()
    } else {
        request.raid.level()
    };
    let create = Command::new("mdadm --create /dev/md/NEW")
        .arg(format!("--level={level}"))
        .arg(format!("--raid-devices={disks}"));
    let create = if is_pair {
        create
    } else {
        create.arg(format!("--chunk={}K", request.chunk_kib))
    };
    Some(
        Remedy::new(Harm::Recreate, "with mdadm", over(request, disks))
            .step(Step::new(
                create.flags("DISK..."),
                ALL_LOST,
                Command::new("mdadm --stop /dev/md/NEW && mdadm --zero-superblock DISK..."),
            ))
            .constraint(format!(
                "DISK... are {} partitions that start on the grid of their disks",
                group_digits(disks)
            )),
    )
}

fn svm(request: &DisksRequest, disks: u64) -> Option<Remedy> {
    let chunk = format!("{}k", request.chunk_kib);
    let remedy = Remedy::new(Harm::Recreate, "with metainit", over(request, disks)).constraint(
        "state database replicas first: metadb -c 2 -a -f SLICE..., on slices of their own",
    );
    let stripe = |volume: &'static str, members: u64| {
        Command::new("metainit")
            .flags(volume)
            .arg(1)
            .arg(members)
            .flags("SLICE... -i")
            .arg(&chunk)
    };
    let clear = |volume: &'static str| Command::new("metaclear").flags(volume);
    Some(match request.raid {
        Raid::Raid0 => remedy.step(Step::new(stripe("d0", disks), ALL_LOST, clear("d0"))),
        Raid::Raid1 | Raid::Raid10 => remedy
            .step(Step::new(stripe("d1", disks / 2), ALL_LOST, clear("d1")))
            .step(Step::new(stripe("d2", disks / 2), ALL_LOST, clear("d2")))
            .step(Step::new(
                Command::new("metainit d0 -m d1 && metattach d0 d2"),
                ALL_LOST,
                clear("d0"),
            )),
        Raid::Raid5 => remedy
            .step(Step::new(
                Command::new("metainit d0 -r SLICE... -i").arg(&chunk),
                ALL_LOST,
                clear("d0"),
            ))
            .constraint(
                "its columns begin behind a pre-write area, off 4 KiB: hardware or mirrors do better",
            ),
        Raid::Raid6 => return None,
    })
}
