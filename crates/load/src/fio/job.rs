//! Options of a job: their meaning, and bounds of their values.

use std::time::Duration;

use super::asked::{SIZE, SectionOption};
use super::refused::REFUSED;
use crate::job_file::{FileLine, JobFileError, listed};
use crate::series::Edge;

const DEPTH_MAX: u64 = 4_096;
const JOBS_MAX: u64 = 1_024;

/// A section that is run.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub name: String,
    pub place: FileLine,
    pub file: Option<(String, FileLine)>,
    pub pattern: Pattern,
    /// Lengths of reads and of writes, with percentages.
    pub lengths: [Vec<(u64, f64)>; 2],
    pub depth: u32,
    pub jobs: u32,
    /// Whether the engine named waits for each I/O.
    pub is_sync: bool,
    pub engine: Option<(String, FileLine)>,
    pub is_direct: bool,
    pub runtime: Option<Duration>,
    pub is_time_based: bool,
    pub ramp: Duration,
    pub size: Option<Edge>,
    pub offset: Option<Edge>,
    pub align: Option<u64>,
    pub rate: Option<f64>,
    pub mix_read_percent: u8,
    pub random_percent: u8,
    pub zipf: Option<f64>,
    pub has_map: bool,
    pub is_repeatable: bool,
    pub seed: u64,
    pub waits: bool,
}

/// `rw=`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub is_random: bool,
    pub reads: bool,
    pub writes: bool,
}

const PATTERNS: [(&str, Pattern); 7] = [
    (
        "read",
        Pattern {
            is_random: false,
            reads: true,
            writes: false,
        },
    ),
    (
        "write",
        Pattern {
            is_random: false,
            reads: false,
            writes: true,
        },
    ),
    (
        "rw",
        Pattern {
            is_random: false,
            reads: true,
            writes: true,
        },
    ),
    (
        "readwrite",
        Pattern {
            is_random: false,
            reads: true,
            writes: true,
        },
    ),
    (
        "randread",
        Pattern {
            is_random: true,
            reads: true,
            writes: false,
        },
    ),
    (
        "randwrite",
        Pattern {
            is_random: true,
            reads: false,
            writes: true,
        },
    ),
    (
        "randrw",
        Pattern {
            is_random: true,
            reads: true,
            writes: true,
        },
    ),
];

impl Job {
    /// A job without any option: fio's defaults.
    pub fn new(name: &str, place: FileLine) -> Job {
        Job {
            name: name.to_owned(),
            place,
            file: None,
            pattern: PATTERNS[0].1,
            lengths: [vec![(4096, 1.0)], vec![(4096, 1.0)]],
            depth: 1,
            jobs: 1,
            is_sync: true,
            engine: None,
            is_direct: false,
            runtime: None,
            is_time_based: false,
            ramp: Duration::ZERO,
            size: None,
            offset: None,
            align: None,
            rate: None,
            mix_read_percent: 50,
            random_percent: 100,
            zipf: None,
            has_map: true,
            is_repeatable: true,
            seed: 1,
            waits: false,
        }
    }
}

type Taker = fn(&mut Job, &SectionOption<'_>) -> Result<(), JobFileError>;

/// The supported options. Synonyms are beside each other.
const TAKEN: &[(&str, Taker)] = &[
    ("filename", |job, asked| {
        let name = asked.text()?;
        if name.contains(':') {
            return Err(asked.wrong("one device or file a job, without `:`"));
        }
        job.file = Some((name.to_owned(), asked.setting.place.clone()));
        Ok(())
    }),
    ("rw", take_pattern),
    ("readwrite", take_pattern),
    ("bs", take_lengths),
    ("blocksize", take_lengths),
    ("bssplit", take_split),
    ("ba", take_align),
    ("blockalign", take_align),
    ("iodepth", |job, asked| {
        asked
            .whole(1, DEPTH_MAX)
            .map(|depth| job.depth = depth as u32)
    }),
    ("numjobs", |job, asked| {
        asked.whole(1, JOBS_MAX).map(|jobs| job.jobs = jobs as u32)
    }),
    ("ioengine", take_engine),
    ("direct", |job, asked| match asked.is_on()? {
        true => {
            job.is_direct = true;
            Ok(())
        }
        false => Err(asked.wrong("1: a measurement of a device goes past the page cache")),
    }),
    ("buffered", |job, asked| match asked.is_on()? {
        false => {
            job.is_direct = true;
            Ok(())
        }
        true => Err(asked.wrong("0: a measurement of a device goes past the page cache")),
    }),
    ("runtime", |job, asked| {
        asked.time().map(|time| job.runtime = Some(time))
    }),
    ("time_based", |job, asked| {
        asked.is_on().map(|is_on| job.is_time_based = is_on)
    }),
    ("ramp_time", |job, asked| {
        asked.time().map(|time| job.ramp = time)
    }),
    ("size", |job, asked| {
        asked.edge(true).map(|edge| job.size = Some(edge))
    }),
    ("offset", |job, asked| {
        asked.edge(false).map(|edge| job.offset = Some(edge))
    }),
    ("rate_iops", |job, asked| {
        asked
            .whole(1, 1 << 40)
            .map(|rate| job.rate = Some(rate as f64))
    }),
    ("rwmixread", |job, asked| {
        asked
            .whole(0, 100)
            .map(|percent| job.mix_read_percent = percent as u8)
    }),
    ("rwmixwrite", |job, asked| {
        asked
            .whole(0, 100)
            .map(|percent| job.mix_read_percent = 100 - percent as u8)
    }),
    ("percentage_random", |job, asked| {
        asked
            .whole(0, 100)
            .map(|percent| job.random_percent = percent as u8)
    }),
    ("random_distribution", take_distribution),
    ("norandommap", |job, asked| {
        asked.is_on().map(|is_on| job.has_map = !is_on)
    }),
    ("randrepeat", |job, asked| {
        asked.is_on().map(|is_on| job.is_repeatable = is_on)
    }),
    ("allrandrepeat", |job, asked| {
        asked.is_on().map(|is_on| job.is_repeatable = is_on)
    }),
    ("randseed", |job, asked| {
        asked.whole(0, 1 << 52).map(|seed| job.seed = seed)
    }),
    ("stonewall", |job, asked| {
        asked.is_on().map(|is_on| job.waits = is_on)
    }),
    ("wait_for_previous", |job, asked| {
        asked.is_on().map(|is_on| job.waits = is_on)
    }),
    // Options that always apply, or do not affect the load.
    ("description", |_, asked| asked.text().map(drop)),
    ("fixedbufs", |_, asked| asked.is_on().map(drop)),
    ("group_reporting", |_, asked| asked.is_on().map(drop)),
    ("invalidate", |_, asked| asked.is_on().map(drop)),
    ("registerfiles", |_, asked| asked.is_on().map(drop)),
    ("thread", |_, asked| asked.is_on().map(drop)),
];

impl Job {
    /// Takes an option.
    pub fn take(&mut self, asked: &SectionOption<'_>) -> Result<(), JobFileError> {
        let name = asked.setting.name.as_str();
        if let Some((_, take)) = TAKEN.iter().find(|(known, _)| *known == name) {
            return take(self, asked);
        }
        let (place, found) = (asked.setting.place.clone(), asked.setting.name.clone());
        let owner = format!("[{}]", asked.section);
        match REFUSED.iter().find(|(known, _)| *known == name) {
            Some((_, why)) => Err(JobFileError::Refused {
                place,
                found,
                owner,
                why,
            }),
            None => {
                let expected = listed(TAKEN.iter().map(|(name, _)| *name));
                Err(JobFileError::UnknownParameter {
                    place,
                    found,
                    owner,
                    expected,
                })
            }
        }
    }
}

fn take_pattern(job: &mut Job, asked: &SectionOption<'_>) -> Result<(), JobFileError> {
    let word = asked.text().unwrap_or_default();
    let known = PATTERNS.iter().find(|(name, _)| *name == word);
    let (_, pattern) = known.ok_or_else(|| {
        asked.wrong(format!(
            "one of: {}",
            listed(PATTERNS.iter().map(|(name, _)| *name))
        ))
    })?;
    job.pattern = *pattern;
    Ok(())
}

/// One length, or one for reads and one for writes.
fn take_lengths(job: &mut Job, asked: &SectionOption<'_>) -> Result<(), JobFileError> {
    let lengths: Vec<&str> = asked.text().unwrap_or_default().split(',').collect();
    let [reads, others @ ..] = &lengths[..] else {
        return Err(asked.wrong(SIZE));
    };
    let reads = asked.length(reads)?;
    // One for trims may follow, which no pattern here has.
    let writes = match others {
        [] => reads,
        [writes] | [writes, _] => asked.length(writes)?,
        _ => return Err(asked.wrong("a length, or one for reads and one for writes: 4k,8k")),
    };
    job.lengths = [vec![(reads, 1.0)], vec![(writes, 1.0)]];
    Ok(())
}

/// `4k/10:64k/90`; lengths without a percentage share the rest.
fn take_split(job: &mut Job, asked: &SectionOption<'_>) -> Result<(), JobFileError> {
    let expected = "lengths with percentages that add up to 100, as in 4k/10:64k/90";
    let mut lengths = Vec::new();
    for piece in asked.text()?.split(':') {
        let (length, percent) = piece.split_once('/').unwrap_or((piece, ""));
        let percent = match percent {
            "" => None,
            percent => Some(percent.parse::<u8>().map_err(|_| asked.wrong(expected))?),
        };
        lengths.push((asked.length(length)?, percent));
    }
    let given: f64 = lengths
        .iter()
        .filter_map(|(_, percent)| *percent)
        .map(f64::from)
        .sum();
    let open = lengths
        .iter()
        .filter(|(_, percent)| percent.is_none())
        .count();
    if given > 100.0 || (open == 0 && given != 100.0) {
        return Err(asked.wrong(expected));
    }
    let even = (100.0 - given) / open.max(1) as f64;
    let weighed = lengths
        .into_iter()
        .map(|(length, percent)| (length, percent.map_or(even, f64::from)));
    let weighed: Vec<(u64, f64)> = weighed.filter(|(_, percent)| *percent > 0.0).collect();
    job.lengths = [weighed.clone(), weighed];
    Ok(())
}

fn take_align(job: &mut Job, asked: &SectionOption<'_>) -> Result<(), JobFileError> {
    job.align = Some(asked.length(asked.setting.value.as_deref().unwrap_or_default())?);
    Ok(())
}

/// Engines that a device or file can be read by; whether each waits for every I/O.
fn take_engine(job: &mut Job, asked: &SectionOption<'_>) -> Result<(), JobFileError> {
    const ENGINES: [(&str, bool); 8] = [
        ("io_uring", false),
        ("libaio", false),
        ("posixaio", false),
        ("sync", true),
        ("psync", true),
        ("vsync", true),
        ("pvsync", true),
        ("pvsync2", true),
    ];
    let word = asked.text().unwrap_or_default();
    let known = ENGINES.iter().find(|(name, _)| *name == word);
    let (_, is_sync) = known.ok_or_else(|| {
        asked.wrong(format!(
            "one of: {}",
            listed(ENGINES.iter().map(|(name, _)| *name))
        ))
    })?;
    job.is_sync = *is_sync;
    job.engine = Some((word.to_owned(), asked.setting.place.clone()));
    Ok(())
}

fn take_distribution(job: &mut Job, asked: &SectionOption<'_>) -> Result<(), JobFileError> {
    let expected = "random, or zipf with an exponent above 0 and up to 5, as in zipf:1.1";
    job.zipf = match asked.text().unwrap_or_default() {
        "random" => None,
        word => {
            let theta = word
                .strip_prefix("zipf:")
                .and_then(|theta| theta.parse::<f64>().ok());
            let theta = theta.filter(|theta| *theta > 0.0 && *theta <= 5.0);
            Some(theta.ok_or_else(|| asked.wrong(expected))?)
        }
    };
    Ok(())
}
