//! The document of `plumb check … --json`, as far as a fix carries out its remedies.
//!
//! A document is untrusted, and may be of another host or of another day. Each action is read into its type; disks are found
//! by their identities, partitions by their label; then this host is judged again, and a remedy that is not recommended
//! here and now is refused. No command in the document is read.

use std::path::Path;

use plumb_diagnose::Diagnosis;
use plumb_diagnose::layout::Known;
use plumb_geometry::{Bytes, Grid, GridKind, SECTOR, group_digits};
use plumb_model::io_size::IoSizeBasis;
use plumb_model::{Action, DeviceRef, Facts, Finding, Fix, PartitionRef, Remedy, RuleId, Target};
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId, Placing, Source, Stack, catalogue, devices};
use serde::Deserialize;
use serde_json::Value;

use crate::check::advice;
use crate::check::sources::{self, GatheredHost};
use crate::cli::Beneath;
use crate::failure::Failure;
use crate::this_run;

/// How the schema of such a document begins.
pub const SCHEMA: &str = "plumb.check/";

/// A recommended remedy of a document.
pub struct StatedRemedy {
    /// Its place in the document: `findings[2].remedies[0]`.
    pub place: String,
    /// The rule whose finding it removes.
    pub rule: RuleId,
    /// The target of the finding.
    pub target: Target,
    facts: Facts,
    /// The changes.
    pub actions: Vec<Action>,
}

/// The parts of a finding that are read.
#[derive(Deserialize)]
struct FindingIn {
    #[serde(flatten)]
    facts: Facts,
    target: Target,
}

/// All recommended remedies of a document.
///
/// # Errors
/// When a part of it is not of its type: its place, and its value.
pub fn remedies(path: &Path, document: &Value) -> Result<Vec<StatedRemedy>, Failure> {
    let wrong =
        |place: &str, why: String| Failure::usage(format!("{}: {place}: {why}", path.display()));
    let findings = document["findings"].as_array();
    let findings = findings.ok_or_else(|| {
        let why = "found no list, expected the findings of plumb check --json";
        wrong("findings", why.to_owned())
    })?;
    let mut stated = Vec::new();
    for (at, value) in findings.iter().enumerate() {
        let place = format!("findings[{at}]");
        // Each action by itself, so that an error names it.
        for (number, remedy) in list(&value["remedies"]).iter().enumerate() {
            for (step, action) in list(&remedy["actions"]).iter().enumerate() {
                let place = format!("{place}.remedies[{number}].actions[{step}]");
                Action::deserialize(action).map_err(|error| wrong(&place, error.to_string()))?;
            }
        }
        let remedies: Vec<Remedy> = match &value["remedies"] {
            Value::Null => Vec::new(),
            remedies => Vec::deserialize(remedies)
                .map_err(|error| wrong(&format!("{place}.remedies"), error.to_string()))?,
        };
        let Some(best) = remedies.into_iter().next().filter(Remedy::is_recommended) else {
            continue;
        };
        let finding = FindingIn::deserialize(value);
        let finding = finding.map_err(|error| wrong(&place, error.to_string()))?;
        stated.push(StatedRemedy {
            place: format!("{place}.remedies[0]"),
            rule: finding.facts.rule(),
            target: finding.target,
            facts: finding.facts,
            actions: best.actions,
        });
    }
    Ok(stated)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Why a remedy of a document is not carried out here.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {device}: nothing was written: found {found}, expected {expected}")]
pub struct NotHere {
    place: String,
    device: String,
    found: String,
    expected: String,
}

impl NotHere {
    fn new(
        stated: &StatedRemedy,
        device: &str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> NotHere {
        NotHere {
            place: stated.place.clone(),
            device: device.to_owned(),
            found: found.into(),
            expected: expected.into(),
        }
    }
}

impl From<NotHere> for Failure {
    fn from(error: NotHere) -> Failure {
        Failure::failed(&error)
            .with_help("check this host again: plumb check --json prints its present state")
    }
}

/// This host, judged with the settings of a document.
pub struct JudgedHost {
    stack: Stack,
    diagnosis: Diagnosis,
}

impl JudgedHost {
    /// Looks at the host, with the grids and the page that the user of the document had given.
    ///
    /// # Errors
    /// When the host cannot be looked at.
    pub fn look(stated: &[StatedRemedy]) -> Result<JudgedHost, Failure> {
        let mut gathered = GatheredHost::default();
        sources::live(None, &mut gathered, &[])?;
        devices::note(
            &mut gathered.builder,
            &gathered.unread,
            devices::advice_to_open(),
        );
        let beneath = Beneath {
            page: stated.iter().find_map(given_page),
            ..Beneath::default()
        };
        beneath.give(&beneath.catalogue()?, &mut gathered.builder)?;
        for grid in stated.iter().filter_map(given_grid) {
            catalogue::give(&mut gathered.builder, grid);
        }
        let stack = gathered.builder.finish();
        let known = Known {
            page: beneath.page,
            ..Known::default()
        };
        let diagnosis = advice::diagnose(&beneath, &stack, &known);
        Ok(JudgedHost { stack, diagnosis })
    }

    /// The same remedy as this host has it, with its names for the devices, and its commands.
    ///
    /// # Errors
    /// When a disk is another one, a label says otherwise, or the remedy is not recommended here.
    pub fn confirm(&self, stated: &StatedRemedy) -> Result<(Vec<Action>, &[Fix]), NotHere> {
        let actions = stated
            .actions
            .iter()
            .map(|action| self.on_this_host(stated, action))
            .collect::<Result<Vec<Action>, NotHere>>()?;
        let is_same = |finding: &&Finding| {
            finding.rule() == stated.rule
                && finding
                    .recommended()
                    .is_some_and(|remedy| remedy.actions == actions)
        };
        match self.diagnosis.findings.iter().find(is_same) {
            Some(finding) => Ok((actions, &finding.fix)),
            None => {
                let recommended = self
                    .diagnosis
                    .findings
                    .iter()
                    .find(|finding| {
                        finding.rule() == stated.rule
                            && finding.target.device == stated.target.device
                    })
                    .map_or("no such finding", |finding| match finding.recommended() {
                        Some(_) => "another remedy",
                        None => "no proven remedy",
                    });
                let expected = format!("the remedy for {}", stated.rule);
                let device = &stated.target.device;
                Err(NotHere::new(stated, device, recommended, expected))
            }
        }
    }

    /// The action with the names that this host has for its devices.
    fn on_this_host(&self, stated: &StatedRemedy, action: &Action) -> Result<Action, NotHere> {
        let mut action = action.clone();
        if let Some(partition) = action.partition_mut() {
            let disk = self.find(stated, &mut partition.disk)?;
            self.must_be_in_label(stated, disk, partition)?;
        }
        match &mut action {
            Action::BackupLabel { disk } | Action::SetQueue { disk, .. } => {
                self.find(stated, disk)?;
            }
            Action::TuneFileSystem { device, .. } | Action::RecreateFileSystem { device, .. } => {
                self.find(stated, device)?;
            }
            _ => {}
        }
        Ok(action)
    }

    /// The node of a device, by its identity where it has one, and gives the reference this host's name for it.
    fn find(&self, stated: &StatedRemedy, device: &mut DeviceRef) -> Result<NodeId, NotHere> {
        let refused =
            |found: String, expected: String| NotHere::new(stated, &device.device, found, expected);
        if let Some(host) = &device.host
            && this_run::host() != Some(host.as_str())
        {
            let found = format!("a device of host {host}");
            return Err(refused(found, "a device of this host".to_owned()));
        }
        let named = self.stack.find(&device.device);
        let Some(identity) = &device.identity else {
            return match named {
                Some(id) if self.stack.identity(id).is_none() => Ok(id),
                Some(id) => {
                    let identity = self.stack.identity(id).unwrap_or_default();
                    let found = format!("a device with the identity {identity}");
                    Err(refused(found, "one without an identity".to_owned()))
                }
                None => Err(refused("no such device".to_owned(), "a device".to_owned())),
            };
        };
        let has_it = |id: &NodeId| self.stack.identity(*id).as_ref() == Some(identity);
        let mut all = self.stack.nodes().map(|(id, _)| id).filter(has_it);
        // Paths to one LUN share its identity.
        let found = named.filter(has_it).or_else(|| all.next());
        let Some(id) = found else {
            let found = match named.and_then(|id| self.stack.identity(id)) {
                Some(other) => format!("the identity {other}"),
                None => "no device with that identity".to_owned(),
            };
            return Err(refused(found, format!("the identity {identity}")));
        };
        let name = self.stack.node(id).own_name();
        if named != Some(id) {
            device.device = format!("/dev/{name}");
        }
        device.host = None;
        Ok(id)
    }

    fn must_be_in_label(
        &self,
        stated: &StatedRemedy,
        disk: NodeId,
        partition: &PartitionRef,
    ) -> Result<(), NotHere> {
        let number = u64::from(partition.number);
        let above = self.stack.above(disk).iter();
        let mut mine = above.filter(|id| {
            let node = self.stack.node(**id);
            node.kind == Kind::Partition && node.number(keys::PARTITION_NUMBER) == Some(number)
        });
        let part = mine.next().and_then(|id| only_part(&self.stack, *id));
        let expected = words(partition.number, partition.start_bytes, partition.len_bytes);
        let device = &partition.disk.device;
        let Some((start, len)) = part else {
            let found = format!("no partition {number}");
            return Err(NotHere::new(stated, device, found, expected));
        };
        let is_same = start == partition.start_bytes
            && partition.len_bytes.is_none_or(|stated| len == Some(stated));
        if is_same {
            return Ok(());
        }
        let found = words(partition.number, start, len);
        Err(NotHere::new(stated, device, found, expected))
    }
}

fn only_part(stack: &Stack, id: NodeId) -> Option<(Bytes, Option<Bytes>)> {
    match &stack.node(id).placing {
        Placing::Parts { parts } if parts.len() == 1 => {
            parts.first().map(|part| (part.start, part.len))
        }
        _ => None,
    }
}

fn words(number: u32, start: Bytes, len: Option<Bytes>) -> String {
    let sectors = |bytes: Bytes| group_digits(bytes.0 / SECTOR);
    let len = len.map_or_else(String::new, |len| format!(" of {} sectors", sectors(len)));
    format!("partition {number} at sector {}{len}", sectors(start))
}

/// The grid of the disks that the user of the document had given, if the finding is about that.
fn given_grid(stated: &StatedRemedy) -> Option<Grid> {
    let grid = match &stated.facts {
        Facts::MisalignedPartition(facts) => &facts.grid,
        Facts::SoftPartitionDrift(facts) => &facts.grid,
        _ => return None,
    };
    let is_given = grid.source == Source::User;
    let made = Grid::new(grid.granularity_bytes, grid.offset_bytes, GridKind::Unit);
    made.ok().filter(|_| is_given)
}

fn given_page(stated: &StatedRemedy) -> Option<Bytes> {
    let io = stated.facts.io_size()?;
    (io.basis == IoSizeBasis::Given).then_some(io.bytes)
}
