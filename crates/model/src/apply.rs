//! The stack as actions would leave it.
//!
//! Nodes keep their numbers, so that an old node and the new one have one id; a node that an action adds comes behind.
//! An action that the model does not describe, or that names a place where nothing is as it says, is refused: a proof
//! about a stack that is not there proves nothing.

use std::collections::BTreeSet;

use plumb_geometry::{Bytes, align_down};
use plumb_stack::node::keys;
use plumb_stack::{
    CellKind, Chunks, Kind, Member, Node, NodeId, Part, Placing, ProblemId, Stack, StackEdit,
};

use crate::action::{
    Action, DeviceRef, ExtentRef, HostSetting, PartitionRef, QueueChange, SoftPartitionMove,
};

/// The result of a change.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The stack as it would be.
    pub stack: Stack,
    /// Nodes that were changed or added themselves.
    pub changed: BTreeSet<NodeId>,
    /// Of these, those that were not there before.
    pub added: BTreeSet<NodeId>,
    /// Nodes whose contents were destroyed or moved. *Unknown* for them loses no known fact.
    pub emptied: BTreeSet<NodeId>,
}

/// Why a change was not applied to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotModelled {
    /// The model does not describe such a change.
    NotDescribed,
    /// The device is not in the stack.
    NoDevice,
    /// The device is not as the action says.
    Differs,
}

/// Applies actions in order.
///
/// # Errors
/// When the model does not describe one of them, or it does not fit the stack.
pub fn apply(stack: &Stack, actions: &[Action]) -> Result<Applied, NotModelled> {
    let mut change = Change {
        before: stack,
        edit: stack.edit(),
        changed: BTreeSet::new(),
        added: BTreeSet::new(),
        emptied: BTreeSet::new(),
    };
    for action in actions {
        change.apply(action)?;
    }
    Ok(Applied {
        stack: change.edit.finish(),
        changed: change.changed,
        added: change.added,
        emptied: change.emptied,
    })
}

struct Change<'a> {
    before: &'a Stack,
    edit: StackEdit<'a>,
    changed: BTreeSet<NodeId>,
    added: BTreeSet<NodeId>,
    emptied: BTreeSet<NodeId>,
}

impl Change<'_> {
    fn apply(&mut self, action: &Action) -> Result<(), NotModelled> {
        match action {
            Action::Move {
                partition,
                to_bytes,
            }
            | Action::Shift {
                partition,
                to_bytes,
            } => self.start(partition, *to_bytes, None).map(|_| ()),
            Action::Relabel {
                partition,
                to_bytes,
                len_bytes,
            } => {
                let id = self.start(partition, *to_bytes, *len_bytes)?;
                self.empty_from(id);
                Ok(())
            }
            Action::Shrink {
                partition,
                len_bytes,
            } => self.shrink(partition, *len_bytes),
            Action::Migrate {
                partition,
                to_bytes,
                ..
            } => self.migrate(partition, *to_bytes),
            Action::BackupLabel { disk } => {
                let id = self.node(disk)?;
                self.changed.insert(id);
                self.edit.mend(id, ProblemId::StrandedBackupLabel);
                self.edit.mend(id, ProblemId::BrokenLabel);
                Ok(())
            }
            Action::SetQueue { disk, change } => self.set_queue(disk, change),
            Action::SetHost { setting, bytes, .. } => {
                let id = self.before.host_id().ok_or(NotModelled::NoDevice)?;
                let key = match setting {
                    HostSetting::Maxphys => keys::MAXPHYS,
                    HostSetting::ResyncIo => keys::RESYNC_BYTES,
                };
                self.changed.insert(id);
                self.edit.fact(id, key, *bytes);
                Ok(())
            }
            Action::TuneFileSystem {
                device,
                unit_bytes,
                width_bytes,
                ..
            } => self.tune(device, *unit_bytes, *width_bytes),
            Action::RecreateFileSystem {
                device,
                block_bytes,
                unit_bytes,
                width_bytes,
                ..
            } => {
                let id = self.node(device)?;
                self.empty_from(id);
                let unit = unit_bytes.unwrap_or_default();
                self.tune(device, unit, width_bytes.unwrap_or_default())?;
                for holder in self.file_system_holders(id) {
                    self.edit.fact(holder, keys::FS_BLOCK, *block_bytes);
                }
                Ok(())
            }
            Action::RecreateStripe {
                volume,
                chunk_bytes,
                ..
            } => self.recreate_stripe(volume, *chunk_bytes),
            Action::RecreateSoftPartitions { component, moves } => {
                for change in moves {
                    let id = self.place_soft(component, change)?;
                    self.empty_from(id);
                }
                Ok(())
            }
            Action::CopySoftPartition { component, change } => {
                self.place_soft(component, change).map(|_| ())
            }
            Action::ResyncSoftPartitions { component, moves } => moves
                .iter()
                .try_for_each(|change| self.place_soft(component, change).map(|_| ())),
            Action::RecreatePhysicalVolume {
                partition,
                data_start_bytes,
            } => self.recreate_physical_volume(partition, *data_start_bytes),
            Action::SetRecord { dataset, bytes, .. } => {
                let id = self.node(dataset)?;
                let is_volume = self.edit.node(id).number(keys::VOLUME_BLOCK).is_some();
                let key = if is_volume {
                    keys::VOLUME_BLOCK
                } else {
                    keys::RECORD_SIZE
                };
                self.changed.insert(id);
                self.edit.fact(id, key, *bytes);
                Ok(())
            }
            Action::Command { .. } => Err(NotModelled::NotDescribed),
        }
    }

    /// The node of a device.
    fn node(&self, device: &DeviceRef) -> Result<NodeId, NotModelled> {
        let named = || {
            let of_host = device.host.as_ref().and_then(|host| {
                let name = device.device.strip_prefix("/dev/");
                let name = name.unwrap_or(&device.device);
                self.before.find(&format!("{host}:{name}"))
            });
            of_host.or_else(|| self.before.find(&device.device))
        };
        device.node.0.or_else(named).ok_or(NotModelled::NoDevice)
    }

    /// The only run of a partition, which must be where the action says.
    fn partition(&self, partition: &PartitionRef) -> Result<(NodeId, Part), NotModelled> {
        let on_disk = || {
            let disk = self.node(&partition.disk).ok()?;
            let mut above = self.before.above(disk).iter().copied();
            above.find(|id| {
                only_part(self.edit.node(*id)).is_some_and(|part| {
                    self.edit.node(*id).kind == Kind::Partition
                        && part.start == partition.start_bytes
                })
            })
        };
        let id = partition.node.0.or_else(on_disk);
        let id = id.ok_or(NotModelled::NoDevice)?;
        let part = only_part(self.edit.node(id)).ok_or(NotModelled::Differs)?;
        let is_same = part.start == partition.start_bytes
            && partition
                .len_bytes
                .is_none_or(|len| part.len.is_none_or(|known| known == len));
        is_same.then_some((id, part)).ok_or(NotModelled::Differs)
    }

    fn start(
        &mut self,
        partition: &PartitionRef,
        to: Bytes,
        len: Option<Bytes>,
    ) -> Result<NodeId, NotModelled> {
        let (id, part) = self.partition(partition)?;
        let moved = Part {
            start: to,
            len: len.or(part.len),
            ..part
        };
        self.edit.place(id, Placing::Parts { parts: vec![moved] });
        if let Some(len) = len {
            self.edit.size(id, Some(len));
        }
        // A move rewrites the start that FAT and NTFS note of their partition.
        for holder in self.file_system_holders(id) {
            if self.edit.node(holder).number(keys::HIDDEN_BYTES) == Some(part.start) {
                self.edit.fact(holder, keys::HIDDEN_BYTES, to);
            }
        }
        self.changed.insert(id);
        Ok(id)
    }

    /// Cuts the end of a partition and of the file system that is all of it. Anything else above stays as long as it is,
    /// and then ends beyond its device, which is a finding.
    fn shrink(&mut self, partition: &PartitionRef, len: Bytes) -> Result<(), NotModelled> {
        let (id, part) = self.partition(partition)?;
        let shorter = Part {
            len: Some(len),
            ..part
        };
        let parts = vec![shorter];
        self.edit.place(id, Placing::Parts { parts });
        self.edit.size(id, Some(len));
        self.changed.insert(id);
        let is_file_system = |id: &NodeId| self.before.node(*id).kind == Kind::FileSystem;
        let above: Vec<NodeId> = self.before.above(id).to_vec();
        for file_system in above.into_iter().filter(is_file_system) {
            let node = self.edit.node(file_system).clone();
            let Some(part) = only_part(&node).filter(|part| part.start == Bytes(0)) else {
                continue;
            };
            let cut = |now: Option<Bytes>| now.map(|now| now.min(len));
            let parts = vec![Part {
                len: cut(part.len),
                ..part
            }];
            self.edit.place(file_system, Placing::Parts { parts });
            self.edit.size(file_system, cut(node.size));
            self.changed.insert(file_system);
        }
        Ok(())
    }

    /// The data go to a partition of another disk with the same grids; the old partition is left without contents.
    fn migrate(&mut self, partition: &PartitionRef, to: Bytes) -> Result<(), NotModelled> {
        let (id, part) = self.partition(partition)?;
        let disk = self.edit.node(part.node).clone();
        let other = self.edit.add(Node {
            name: format!("{} (other disk)", disk.name),
            aliases: Vec::new(),
            size: None,
            ..disk
        });
        let old = self.edit.node(id).clone();
        let new = self.edit.add(Node {
            name: format!("{} (other partition)", old.name),
            aliases: Vec::new(),
            placing: Placing::Parts {
                parts: vec![Part {
                    node: other,
                    start: to,
                    ..part
                }],
            },
            ..old
        });
        for above in self.before.above(id).to_vec() {
            let mut placing = self.edit.node(above).placing.clone();
            repoint(&mut placing, id, new);
            self.edit.place(above, placing);
            self.changed.insert(above);
        }
        self.changed.extend([new, other]);
        self.added.extend([new, other]);
        self.emptied.insert(id);
        Ok(())
    }

    fn set_queue(&mut self, disk: &DeviceRef, change: &QueueChange) -> Result<(), NotModelled> {
        let id = self.node(disk)?;
        self.changed.insert(id);
        match change {
            QueueChange::ReadAhead { bytes, .. } => self.edit.fact(id, keys::READ_AHEAD, *bytes),
            QueueChange::MaxRequest { bytes, .. } => self.edit.fact(id, keys::MAX_REQUEST, *bytes),
            QueueChange::Scheduler { name, .. } => {
                self.edit.fact(id, keys::SCHEDULER, name.clone());
            }
        }
        Ok(())
    }

    /// The nodes with facts about the file system of a device: the device, and the file system above.
    fn file_system_holders(&self, device: NodeId) -> Vec<NodeId> {
        let above = self.before.above(device).iter().copied();
        let is_file_system = |id: &NodeId| self.before.node(*id).kind == Kind::FileSystem;
        [device]
            .into_iter()
            .chain(above.filter(is_file_system))
            .filter(|id| self.edit.node(*id).value(keys::CONTENT).is_some())
            .collect()
    }

    fn tune(&mut self, device: &DeviceRef, unit: Bytes, width: Bytes) -> Result<(), NotModelled> {
        let id = self.node(device)?;
        let holders = self.file_system_holders(id);
        if holders.is_empty() {
            return Err(NotModelled::Differs);
        }
        for holder in holders {
            self.changed.insert(holder);
            self.edit.fact(holder, keys::FS_STRIPE_UNIT, unit);
            self.edit.fact(holder, keys::FS_STRIPE_WIDTH, width);
        }
        Ok(())
    }

    fn recreate_stripe(&mut self, volume: &DeviceRef, chunk: Bytes) -> Result<(), NotModelled> {
        let id = self.node(volume)?;
        let Placing::Chunks(chunks) = self.edit.node(id).placing.clone() else {
            return Err(NotModelled::Differs);
        };
        let size = self.size_of(&chunks, chunk);
        self.edit
            .place(id, Placing::Chunks(Chunks { chunk, ..chunks }));
        if self.edit.node(id).size.is_some() {
            self.edit.size(id, size);
        }
        self.empty_from(id);
        // The kernel's statements about the old stripe, here and passed on to the layers above.
        for stale in self.emptied.clone() {
            self.edit.retain_grids(stale, |fact| {
                !matches!(
                    fact.what,
                    CellKind::MinimumIo | CellKind::OptimalIo | CellKind::Chunk
                )
            });
        }
        Ok(())
    }

    /// The length that members of known length give with a chunk; `None` if one of them has none.
    fn size_of(&self, chunks: &Chunks, chunk: Bytes) -> Option<Bytes> {
        let whole = |member: &Member| {
            let size = self.edit.node(member.node).size?;
            align_down(size.0.checked_sub(member.start.0)?, chunk.0)
        };
        let least = chunks.members.iter().map(whole).min()??;
        let data = (chunks.members.len() as u64 / u64::from(chunks.copies.max(1)))
            .checked_sub(u64::from(chunks.parity))?;
        least.checked_mul(data).map(Bytes)
    }

    fn place_soft(
        &mut self,
        component: &DeviceRef,
        change: &SoftPartitionMove,
    ) -> Result<NodeId, NotModelled> {
        let (on, id) = (self.node(component)?, self.node(&change.volume)?);
        let Placing::Parts { parts } = self.edit.node(id).placing.clone() else {
            return Err(NotModelled::Differs);
        };
        let is_there = |extent: &ExtentRef, part: &Part| {
            part.node == on
                && part.start == extent.start_bytes
                && part.len == Some(extent.len_bytes)
        };
        let is_same = parts.len() == change.from.len()
            && change.from.len() == change.to.len()
            && change.from.iter().zip(&parts).all(|(e, p)| is_there(e, p));
        if !is_same {
            return Err(NotModelled::Differs);
        }
        let moved = parts.iter().zip(&change.to).map(|(part, to)| Part {
            start: to.start_bytes,
            len: Some(to.len_bytes),
            ..*part
        });
        let parts = moved.collect();
        self.edit.place(id, Placing::Parts { parts });
        self.changed.insert(id);
        Ok(id)
    }

    /// Volumes of the group are behind the start of its data, so all of them move with it.
    fn recreate_physical_volume(
        &mut self,
        partition: &PartitionRef,
        data_start: Bytes,
    ) -> Result<(), NotModelled> {
        let (id, _) = self.partition(partition)?;
        let was = self.edit.node(id).number(keys::PE_START);
        let was = i128::from(was.ok_or(NotModelled::Differs)?.0);
        let by = i128::from(data_start.0) - was;
        for above in self.before.above(id).to_vec() {
            let mut placing = self.edit.node(above).placing.clone();
            shift(&mut placing, id, by).ok_or(NotModelled::Differs)?;
            self.edit.place(above, placing);
        }
        self.edit.fact(id, keys::PE_START, data_start);
        self.empty_from(id);
        Ok(())
    }

    /// Notes that the contents of a node are gone, with everything above. They may come back at the same places, so that
    /// the layers above are judged as they are; the superblocks of file systems are made again, so that nothing is known
    /// of those.
    fn empty_from(&mut self, id: NodeId) {
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            if self.emptied.insert(id) {
                next.extend(self.before.above(id));
            }
            for key in [
                keys::FS_STRIPE_UNIT,
                keys::FS_STRIPE_WIDTH,
                keys::FS_LOG_STRIPE_UNIT,
                keys::HIDDEN_BYTES,
            ] {
                self.edit.forget(id, key);
            }
        }
        self.changed.insert(id);
    }
}

fn only_part(node: &Node) -> Option<Part> {
    match &node.placing {
        Placing::Parts { parts } if parts.len() == 1 => parts.first().copied(),
        _ => None,
    }
}

/// Moves everything on one node to another.
fn repoint(placing: &mut Placing, from: NodeId, to: NodeId) {
    let turn = |node: &mut NodeId| {
        if *node == from {
            *node = to;
        }
    };
    match placing {
        Placing::Leaf => {}
        Placing::Parts { parts } => parts.iter_mut().for_each(|part| turn(&mut part.node)),
        Placing::Chunks(Chunks { members, .. }) | Placing::Copies { members } => {
            members.iter_mut().for_each(|member| turn(&mut member.node));
        }
        Placing::Blocks { member, .. } => turn(&mut member.node),
        Placing::Unknown { members, .. } => members.iter_mut().for_each(turn),
    }
}

/// Shifts everything on a node; `None` if that is impossible.
fn shift(placing: &mut Placing, on: NodeId, by: i128) -> Option<()> {
    let moved = |start: Bytes| u64::try_from(i128::from(start.0) + by).ok().map(Bytes);
    match placing {
        Placing::Leaf | Placing::Unknown { .. } => return None,
        Placing::Parts { parts } => {
            for part in parts.iter_mut().filter(|part| part.node == on) {
                part.start = moved(part.start)?;
            }
        }
        Placing::Chunks(Chunks { members, .. }) | Placing::Copies { members } => {
            for member in members.iter_mut().filter(|member| member.node == on) {
                member.start = moved(member.start)?;
            }
        }
        Placing::Blocks { member, .. } => member.start = moved(member.start)?,
    }
    Some(())
}
