//! From synthetic I/O to the results of the rules, by the same way as traces.

#![allow(dead_code, reason = "each test file uses its part of it")]

pub mod host;
pub mod lab;
pub mod problems;
pub mod read_ahead;
pub mod stripes;

use std::sync::Arc;

use plumb_diagnose::{Analysis, Diagnosis, Finding, Questions, Reason, RuleId, analyze, diagnose};
use plumb_geometry::{Bytes, Grid, GridKind};
use plumb_profile::{Collector, Profile, Settings};
use plumb_testkit::event::{SynthEvent, SynthOp};
use plumb_trace::{Batch, Event, Layer, Names, Op, SourceInfo};

/// An I/O by hand: operation, start and length in sectors.
#[derive(Clone, Copy, Debug)]
pub struct Io(pub Op, pub u64, pub u64);

/// One device's I/O on their way to the rules.
pub struct RuleBench {
    pub layer: Layer,
    /// Partitions that the source reveals: (name, first sector).
    pub partitions: Vec<(&'static str, u64)>,
    pub info: SourceInfo,
    pub questions: Questions,
    /// Changes the questions to profiles.
    pub change_settings: fn(&mut Settings),
}

impl Default for RuleBench {
    fn default() -> RuleBench {
        RuleBench {
            layer: Layer::Request,
            partitions: Vec::new(),
            info: SourceInfo::default(),
            questions: Questions::default(),
            change_settings: |_| {},
        }
    }
}

/// The result.
pub struct Judged {
    pub profile: Profile,
    pub analysis: Analysis,
    pub diagnosis: Diagnosis,
}

impl RuleBench {
    pub fn grid(text: &str) -> RuleBench {
        let grids = vec![plumb_geometry::parse_grid(text).expect("a grid")];
        RuleBench {
            questions: Questions {
                grids,
                ..Questions::default()
            },
            ..RuleBench::default()
        }
    }

    pub fn chunk(bytes: u64, members: Option<u32>) -> RuleBench {
        let chunk = Some(Grid::boundary(Bytes(bytes)).expect("a grid"));
        RuleBench {
            questions: Questions {
                chunk,
                members,
                ..Questions::default()
            },
            ..RuleBench::default()
        }
    }

    pub fn record(bytes: u64) -> RuleBench {
        let record = Some(Grid::new(Bytes(bytes), Bytes(0), GridKind::Unit).expect("a grid"));
        let questions = Questions {
            record,
            ..Questions::default()
        };
        RuleBench {
            layer: Layer::Vfs,
            questions,
            ..RuleBench::default()
        }
    }

    fn names(&self) -> Arc<Names> {
        let mut names = Names::default();
        let device = names.device("8,0");
        names.device_mut(device).expect("just made").partitions = self
            .partitions
            .iter()
            .map(|(name, first)| ((*name).to_owned(), first * 512))
            .collect();
        Arc::new(names)
    }

    pub fn judge_events(&self, events: impl Iterator<Item = Event>) -> Judged {
        let mut settings = self.questions.settings();
        (self.change_settings)(&mut settings);
        let mut collector = Collector::new(&settings).expect("a modulus for these questions");
        let mut batch = Batch {
            names: self.names(),
            ..Batch::default()
        };
        for event in events {
            batch.push(&event);
            if batch.len() == 4096 {
                collector.fold(&batch);
                batch.clear();
            }
        }
        collector.fold(&batch);
        let set = collector.finish(&self.info);
        let profile = set.iter().next().cloned().unwrap_or_else(|| {
            Profile::new("8,0", self.layer, plumb_profile::table::Table::default())
        });
        self.judge(profile)
    }

    pub fn judge(&self, profile: Profile) -> Judged {
        let analysis = analyze(&profile, None, &self.questions);
        let diagnosis = diagnose(&profile, &analysis, &self.questions);
        Judged {
            profile,
            analysis,
            diagnosis,
        }
    }

    pub fn judge_synthetic(&self, events: impl Iterator<Item = SynthEvent>) -> Judged {
        self.judge_events(events.map(|event| {
            let op = match event.op {
                SynthOp::Read => Op::Read,
                SynthOp::Write => Op::Write,
                SynthOp::Discard => Op::Discard,
                SynthOp::Flush => Op::Flush,
            };
            let (start, len) = (event.start_bytes, event.len_bytes);
            let mut to = Event::new(event.time_ns, 0, self.layer, op, start, len);
            to.device_ns = event.device_ns;
            to
        }))
    }

    pub fn judge_ios(&self, ios: impl IntoIterator<Item = Io>) -> Judged {
        self.judge_events(
            ios.into_iter()
                .enumerate()
                .map(|(at, Io(op, start, sectors))| {
                    Event::new(
                        at as i64 * 1_000_000,
                        0,
                        self.layer,
                        op,
                        start * 512,
                        sectors * 512,
                    )
                }),
        )
    }
}

impl Judged {
    pub fn findings<'a>(&'a self, rule: &str) -> impl Iterator<Item = &'a Finding> + use<'a> {
        let rule = id(rule);
        self.diagnosis
            .findings
            .iter()
            .filter(move |finding| finding.rule() == rule)
    }

    /// The one finding of a rule.
    pub fn finding(&self, rule: &str) -> &Finding {
        let mut found = self.findings(rule);
        let first = found
            .next()
            .unwrap_or_else(|| panic!("{rule} did not fire: {:?}", self.diagnosis.unknown));
        assert!(found.next().is_none(), "{rule} fired twice");
        first
    }

    pub fn is_silent(&self, rule: &str) -> bool {
        self.diagnosis.silent.contains(&id(rule)) && self.findings(rule).next().is_none()
    }

    /// Why a rule cannot tell.
    pub fn unknown(&self, rule: &str) -> &Reason {
        assert!(self.findings(rule).next().is_none(), "{rule} fired");
        let unknown = self
            .diagnosis
            .unknown
            .iter()
            .find(|unjudged| unjudged.rule == id(rule));
        &unknown
            .unwrap_or_else(|| panic!("{rule} has no doubt"))
            .reason
    }
}

/// A number among the facts of a finding, by its path in JSON; a share is its value.
pub fn number(finding: &Finding, path: &str) -> f64 {
    let facts = serde_json::to_value(&finding.facts).expect("facts");
    let mut at = &facts["facts"];
    for step in path.split('.') {
        at = match step.parse::<usize>() {
            Ok(index) => &at[index],
            Err(_) => &at[step],
        };
    }
    if let (Some(part), Some(whole)) = (at["numerator"].as_f64(), at["denominator"].as_f64()) {
        return part / whole;
    }
    at.as_f64()
        .unwrap_or_else(|| panic!("no number {path} in {facts:#}"))
}

/// The facts of a finding of one rule.
#[macro_export]
macro_rules! facts {
    ($finding:expr, $rule:ident) => {
        match &$finding.facts {
            plumb_model::Facts::$rule(facts) => facts,
            other => panic!("found {other:?}"),
        }
    };
}

fn id(rule: &str) -> RuleId {
    RuleId::from_name(rule).unwrap_or_else(|| panic!("no rule {rule}"))
}

/// The reason that a rule gives for too few reads and writes.
pub fn few(seen: u64) -> Reason {
    Reason::TooFew {
        what: plumb_model::reason::Counting::Ios,
        seen,
        needed: 200,
    }
}

/// Numbers that look random and are the same each time: xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
