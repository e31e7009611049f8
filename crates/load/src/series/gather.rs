//! The study of an application that writes small records: the gain of threads, order and gathering several records into
//! one I/O. After "Optimizing Disk Subsystems for Random I/O" (G.-P. D. Musumeci, 2002), with a disk of 80 random
//! records of 512 bytes a second, 409 in sequence, and 3,488 with 16 at once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::{Area, Rate, Run, RunPart, Series};
use crate::job_file::FileLine;

/// The combinations to try: all of the lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// Bytes of a record.
    pub record_bytes: u64,
    /// Threads that have one I/O each.
    pub threads: Vec<u32>,
    /// Records in an I/O.
    pub records: Vec<u32>,
    /// Whether records are written; read else.
    pub writes: bool,
    /// Time of each run.
    pub elapsed: Duration,
    /// Time before each run is measured.
    pub warmup: Duration,
    /// Interval of reports.
    pub interval: Duration,
}

/// One combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Combination {
    /// Threads that have one I/O each.
    pub threads: u32,
    /// Whether starts are random; in sequence else.
    #[serde(rename = "order", serialize_with = "serialize_order")]
    pub is_random: bool,
    /// Records in an I/O.
    pub records: u32,
}

impl Combination {
    /// The word for the order of starts.
    #[must_use]
    pub const fn order(self) -> &'static str {
        order_word(self.is_random)
    }
}

const fn order_word(is_random: bool) -> &'static str {
    if is_random { "random" } else { "sequential" }
}

fn serialize_order<S: Serializer>(is_random: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(order_word(*is_random))
}

/// The gain of a combination.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The combination.
    #[serde(flatten)]
    pub combination: Combination,
    /// I/O a second.
    pub ios_per_second: f64,
    /// Records a second.
    pub records_per_second: f64,
    /// Records a second by those of single random records with as many threads; `None` where these were not measured.
    pub gain: Option<f64>,
}

impl Gather {
    /// The combinations, in the order of the runs.
    #[must_use]
    pub fn combinations(&self) -> Vec<Combination> {
        let mut all = Vec::new();
        for &threads in &self.threads {
            for is_random in [true, false] {
                let each = self.records.iter().map(|&records| Combination {
                    threads,
                    is_random,
                    records,
                });
                all.extend(each);
            }
        }
        all
    }

    /// Runs for all combinations, on one target.
    #[must_use]
    pub fn series(&self, target: &Path) -> Series {
        let runs = self
            .combinations()
            .into_iter()
            .map(|combination| self.run(combination, target));
        Series {
            runs: runs.collect(),
            notes: Vec::new(),
        }
    }

    fn run(&self, combination: Combination, target: &Path) -> Run {
        let Combination {
            threads,
            is_random,
            records,
        } = combination;
        let order = combination.order();
        let bytes = self.record_bytes * u64::from(records);
        let part = RunPart {
            workload: order.to_owned(),
            storage: target.display().to_string(),
            path: PathBuf::from(target),
            place: FileLine {
                file: "--study gather".into(),
                line: 0,
            },
            streams: 1,
            depth: threads,
            lengths: vec![(bytes, 1.0)],
            read_percent: if self.writes { 0 } else { 100 },
            random_percent: if is_random { 100 } else { 0 },
            from_anywhere: false,
            zipf: None,
            stride: None,
            area: Area::default(),
            offset: 0,
            align: None,
            hits: None,
            share: 1.0,
        };
        Run {
            name: order.to_owned(),
            overrides: vec![
                ("threads", threads.to_string()),
                ("records", records.to_string()),
            ],
            parts: vec![part],
            rate: Rate::Max,
            arrivals: None,
            elapsed: Some(self.elapsed),
            is_one_pass: false,
            interval: self.interval,
            warmup: self.warmup,
            pause: Duration::ZERO,
            seed: None,
        }
    }

    /// The meaning of the rates of the runs, in their order. Runs that were not made have no rate.
    #[must_use]
    pub fn gains(&self, ios_per_second: &[f64]) -> Vec<Gain> {
        let measured: Vec<(Combination, f64)> = self
            .combinations()
            .into_iter()
            .zip(ios_per_second.iter().copied())
            .collect();
        let base = |threads: u32| {
            let single = Combination {
                threads,
                is_random: true,
                records: 1,
            };
            measured
                .iter()
                .find(|(other, rate)| *other == single && *rate > 0.0)
                .map(|(_, rate)| *rate)
        };
        let gain = |&(combination, rate): &(Combination, f64)| {
            let records_per_second = rate * f64::from(combination.records);
            let gain = base(combination.threads).map(|base| records_per_second / base);
            Gain {
                combination,
                ios_per_second: rate,
                records_per_second,
                gain,
            }
        };
        measured.iter().map(gain).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study() -> Gather {
        Gather {
            record_bytes: 512,
            threads: vec![4],
            records: vec![1, 16],
            writes: false,
            elapsed: Duration::from_secs(2),
            warmup: Duration::ZERO,
            interval: Duration::from_secs(1),
        }
    }

    /// The rates of the paper: 80 and 70 random I/O a second, 409 and 218 in sequence.
    #[test]
    fn the_paper() {
        let gains = study().gains(&[80.0, 70.0, 409.0, 218.0]);
        let seen: Vec<(bool, u32, f64)> = gains
            .iter()
            .map(|gain| {
                (
                    gain.combination.is_random,
                    gain.combination.records,
                    gain.records_per_second,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (true, 1, 80.0),
                (true, 16, 1_120.0),
                (false, 1, 409.0),
                (false, 16, 3_488.0)
            ]
        );
        assert_eq!(gains[3].gain, Some(43.6));
        assert_eq!(
            study().gains(&[0.0, 70.0])[1].gain,
            None,
            "nothing to compare with"
        );
    }

    #[test]
    fn runs_are_in_the_order_of_the_combinations() {
        let study = Gather {
            threads: vec![1, 4],
            ..study()
        };
        let series = study.series(Path::new("/dev/x"));
        assert_eq!(series.runs.len(), 8);
        for (run, combination) in series.runs.iter().zip(study.combinations()) {
            let part = &run.parts[0];
            assert_eq!(
                (part.depth, part.lengths[0].0),
                (combination.threads, 512 * u64::from(combination.records))
            );
            assert_eq!(part.random_percent == 100, combination.is_random);
        }
    }
}
