//! Stacks by hand, on their way to the rules.

use std::sync::Arc;

use plumb_diagnose::layout::{Known, diagnose};
use plumb_diagnose::{Diagnosis, Finding, Reason, RuleId, TargetLayer};
use plumb_geometry::{Bytes, Grid, GridKind, SECTOR};
use plumb_profile::{Collector, ProfileSet, Settings};
use plumb_stack::Obstacle;
use plumb_stack::node::FactKey;
use plumb_stack::{
    Builder, CellKind, Chunks, GridFact, Kind, Member, NodeId, Part, Placing, Source,
};
use plumb_trace::{Batch, Event, Layer, Names, Op, SourceInfo};

/// A source, if it does not matter.
pub fn kernel() -> Source {
    Source::Kernel {
        path: "sys/block".to_owned(),
    }
}

#[derive(Default)]
pub struct Lab {
    pub builder: Builder,
    pub known: Known,
    pub profiles: ProfileSet,
}

pub struct JudgedLayout {
    pub diagnosis: Diagnosis,
}

impl Lab {
    pub fn node(&mut self, kind: Kind, name: &str) -> NodeId {
        let id = self.builder.node(name);
        self.builder.kind(id, kind, &kernel());
        id
    }

    /// A drive with only its kind known.
    pub fn bare(&mut self, name: &str) -> NodeId {
        self.node(Kind::Disk, name)
    }

    /// A drive with a physical block that the kernel states, the first at `offset`.
    pub fn disk(&mut self, name: &str, block: u64, offset: u64) -> NodeId {
        let id = self.bare(name);
        self.grid(id, CellKind::PhysicalBlock, block, offset, kernel());
        id
    }

    pub fn grid(
        &mut self,
        id: NodeId,
        what: CellKind,
        granularity: u64,
        offset: u64,
        source: Source,
    ) {
        let grid = Grid::new(Bytes(granularity), Bytes(offset), GridKind::Unit).expect("a grid");
        self.builder
            .grid(id, GridFact::believed(grid, what, source));
    }

    /// A layer in runs: (device, first sector there, sectors).
    pub fn runs(&mut self, kind: Kind, name: &str, runs: &[(NodeId, u64, u64)]) -> NodeId {
        let id = self.node(kind, name);
        let mut upper = 0;
        let mut parts = Vec::new();
        for &(node, start, len) in runs {
            let len = Bytes(len * SECTOR);
            parts.push(Part {
                upper: Bytes(upper),
                node,
                start: Bytes(start * SECTOR),
                len: Some(len),
            });
            upper += len.0;
        }
        self.builder.place(id, Placing::Parts { parts }, &kernel());
        id
    }

    pub fn partition(&mut self, name: &str, on: NodeId, start: u64) -> NodeId {
        self.runs(Kind::Partition, name, &[(on, start, 1 << 20)])
    }

    pub fn chunks(&mut self, name: &str, chunk: u64, parity: u32, on: &[(NodeId, u64)]) -> NodeId {
        let id = self.node(
            if parity > 0 {
                Kind::ParityRaid
            } else {
                Kind::Stripe
            },
            name,
        );
        let members = on
            .iter()
            .map(|&(node, start)| Member {
                node,
                start: Bytes(start * SECTOR),
            })
            .collect();
        let chunks = Chunks {
            chunk: Bytes(chunk),
            members,
            parity,
            copies: 1,
            layout: None,
        };
        self.builder.place(id, Placing::Chunks(chunks), &kernel());
        id
    }

    pub fn stripe(&mut self, name: &str, chunk: u64, on: &[NodeId]) -> NodeId {
        let on: Vec<(NodeId, u64)> = on.iter().map(|node| (*node, 0)).collect();
        self.chunks(name, chunk, 0, &on)
    }

    pub fn copies(&mut self, kind: Kind, name: &str, on: &[NodeId]) -> NodeId {
        let id = self.node(kind, name);
        let members = on
            .iter()
            .map(|&node| Member {
                node,
                start: Bytes(0),
            })
            .collect();
        self.builder
            .place(id, Placing::Copies { members }, &kernel());
        id
    }

    pub fn fact<T>(&mut self, id: NodeId, key: FactKey<T>, value: impl Into<T>) {
        self.builder.fact(id, key, value, &kernel());
    }

    pub fn host<T>(&mut self, key: FactKey<T>, value: impl Into<T>) {
        let host = self.builder.host();
        self.fact(host, key, value);
    }

    /// The I/O of a device: operation, first sector, sectors, one each millisecond.
    pub fn seen(&mut self, device: &str, ios: impl IntoIterator<Item = (Op, u64, u64)>) {
        self.seen_from(device, 0, ios);
    }

    /// The same, of a recording that begins then.
    pub fn seen_from(
        &mut self,
        device: &str,
        ns: u64,
        ios: impl IntoIterator<Item = (Op, u64, u64)>,
    ) {
        let mut names = Names::default();
        names.device(device);
        let mut batch = Batch {
            names: Arc::new(names),
            ..Batch::default()
        };
        for (at, (op, start, len)) in ios.into_iter().enumerate() {
            let start = start * SECTOR;
            batch.push(&Event::new(
                (ns + at as u64 * 1_000_000) as i64,
                0,
                Layer::Bio,
                op,
                start,
                len * SECTOR,
            ));
        }
        let mut collector = Collector::new(&Settings {
            modulus_bytes: 1 << 20,
            ..Settings::default()
        })
        .expect("a modulus");
        collector.fold(&batch);
        self.profiles
            .merge(&collector.finish(&SourceInfo::default()));
    }

    pub fn judge(self) -> JudgedLayout {
        let stack = self.builder.finish();
        let profiles = (!self.profiles.is_empty()).then_some(&self.profiles);
        let diagnosis = diagnose(&stack, &self.known, profiles);
        JudgedLayout { diagnosis }
    }
}

impl JudgedLayout {
    pub fn findings<'a>(&'a self, rule: &'a str) -> impl Iterator<Item = &'a Finding> + 'a {
        self.diagnosis
            .findings
            .iter()
            .filter(move |finding| finding.rule() == id(rule))
    }

    /// Names of the targets of a rule's findings.
    pub fn found_on<'a>(&'a self, rule: &'a str) -> Vec<&'a str> {
        self.findings(rule)
            .map(|finding| finding.target.device.as_str())
            .collect()
    }

    /// The one finding of a rule.
    pub fn finding<'a>(&'a self, rule: &'a str) -> &'a Finding {
        let mut found = self.findings(rule);
        let first = found
            .next()
            .unwrap_or_else(|| panic!("{rule} did not fire: {:?}", self.whys(rule)));
        assert!(found.next().is_none(), "{rule} fired twice");
        assert_eq!(
            first.target.layer == TargetLayer::Host(plumb_model::HostLayer::Host),
            first.target.device == "(host)"
        );
        first
    }

    pub fn whys(&self, rule: &str) -> Vec<&Reason> {
        let rule = id(rule);
        let unknown = self
            .diagnosis
            .unknown
            .iter()
            .filter(|unjudged| unjudged.rule == rule);
        unknown.map(|unjudged| &unjudged.reason).collect()
    }

    /// Why a rule cannot tell, where it found nothing.
    pub fn unknown(&self, rule: &str) -> &Reason {
        assert_eq!(self.found_on(rule), Vec::<&str>::new(), "{rule} fired");
        self.whys(rule)
            .first()
            .unwrap_or_else(|| panic!("{rule} has no doubt"))
    }

    pub fn is_silent(&self, rule: &str) -> bool {
        self.diagnosis.silent.contains(&id(rule))
    }

    /// Neither found, nor silent, nor unknown: it had nothing to look at.
    pub fn is_not_asked(&self, rule: &str) -> bool {
        !self.is_silent(rule) && self.whys(rule).is_empty() && self.found_on(rule).is_empty()
    }
}

fn id(rule: &str) -> RuleId {
    RuleId::from_name(rule).unwrap_or_else(|| panic!("no rule {rule}"))
}

/// A reason of the stack.
pub fn stack_reason(why: Obstacle) -> Reason {
    Reason::Stack {
        because: vec![why],
        more: 0,
    }
}
