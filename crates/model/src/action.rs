//! One change to storage, as a value: a part of a remedy, the input of the prover, the work of `plumb fix plan`, and
//! the source of commands.
//!
//! JSON that is read back must have exactly these fields: an action that this version does not know is refused.

use plumb_geometry::Bytes;
use plumb_stack::NodeId;
use serde::{Deserialize, Serialize};

/// The operating system whose tools carry an action out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Platform {
    /// Linux with udev.
    Linux,
    /// Solaris and illumos.
    Solaris,
}

/// The worst thing that an action does, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Reads only.
    ReadsOnly,
    /// Writes a file, which belongs on another disk.
    WritesFile,
    /// Changes a setting, a hint or an option; no data move.
    ChangesSetting,
    /// Moves data; an interruption loses nothing.
    MovesDataCrashSafely,
    /// Moves data; an interruption may lose them.
    MovesData,
    /// Destroys the data that are there.
    DestroysData,
}

impl Effect {
    /// Whether nothing changes, so that no way back is needed.
    #[must_use]
    pub const fn is_harmless(self) -> bool {
        matches!(self, Effect::ReadsOnly | Effect::WritesFile)
    }
}

/// The node of a device in the stack of this process. Ids mean nothing elsewhere: two references to one device are
/// equal for any nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalNode(pub Option<NodeId>);

impl PartialEq for LocalNode {
    fn eq(&self, _: &LocalNode) -> bool {
        true
    }
}

impl Eq for LocalNode {}

/// A device that an action is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceRef {
    /// The host that has it; absent where one host was judged.
    pub host: Option<String>,
    /// Its name for the tools of that host: `/dev/sdb`, `d10`.
    pub device: String,
    /// WWN, UUID or serial; absent if nothing states one.
    pub identity: Option<String>,
    /// Its node.
    #[serde(skip)]
    pub node: LocalNode,
}

impl DeviceRef {
    /// A device by its name alone.
    #[must_use]
    pub fn named(device: impl Into<String>) -> DeviceRef {
        DeviceRef {
            host: None,
            device: device.into(),
            identity: None,
            node: LocalNode::default(),
        }
    }
}

/// A partition or slice with its position: a label that differs has been changed since, or is another disk's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionRef {
    /// Its disk.
    pub disk: DeviceRef,
    /// Its number, as the tools for its label count.
    pub number: u32,
    /// Its start.
    pub start_bytes: Bytes,
    /// Its length; absent if nobody states it.
    pub len_bytes: Option<Bytes>,
    /// Its node.
    #[serde(skip)]
    pub node: LocalNode,
}

/// Software that manages volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manager {
    /// Solaris Volume Manager.
    Svm,
    /// Linux md.
    Md,
    /// LVM.
    Lvm,
    /// ZFS.
    Zfs,
}

/// A file system that can be tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystemKind {
    /// ext2, ext3 and ext4.
    Ext,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// UFS of Solaris.
    Ufs,
}

/// A setting of a block queue of Linux.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "setting", rename_all = "kebab-case", deny_unknown_fields)]
pub enum QueueChange {
    /// Read-ahead.
    ReadAhead {
        /// The new value.
        bytes: Bytes,
        /// The present one.
        was_bytes: Bytes,
    },
    /// The largest request.
    MaxRequest {
        /// The new value.
        bytes: Bytes,
        /// The present one.
        was_bytes: Bytes,
    },
    /// The scheduler.
    Scheduler {
        /// The new one.
        name: String,
        /// The present one.
        was: String,
    },
}

impl QueueChange {
    fn inverse(&self) -> QueueChange {
        match self.clone() {
            QueueChange::ReadAhead { bytes, was_bytes } => QueueChange::ReadAhead {
                bytes: was_bytes,
                was_bytes: bytes,
            },
            QueueChange::MaxRequest { bytes, was_bytes } => QueueChange::MaxRequest {
                bytes: was_bytes,
                was_bytes: bytes,
            },
            QueueChange::Scheduler { name, was } => QueueChange::Scheduler {
                name: was,
                was: name,
            },
        }
    }
}

/// A setting of a whole host: a line of `/etc/system` of Solaris, which takes a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostSetting {
    /// The largest I/O of the kernel: `maxphys`.
    Maxphys,
    /// The I/O of a resync: `md_mirror:md_resync_bufsz`.
    ResyncIo,
}

/// An extent of a soft partition, in bytes of its component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtentRef {
    /// Its first byte of data.
    pub start_bytes: Bytes,
    /// Its length.
    pub len_bytes: Bytes,
}

/// A soft partition that is put elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftPartitionMove {
    /// The soft partition.
    pub volume: DeviceRef,
    /// Its extents now, in the order of its data.
    pub from: Vec<ExtentRef>,
    /// Its extents afterwards; as long as now.
    pub to: Vec<ExtentRef>,
}

/// One change. Sizes are bytes; starts are bytes of the device that the thing starts on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// Moves a partition with its data to another start, crash-safely: `plumb fix move`.
    Move {
        /// The partition as it is.
        partition: PartitionRef,
        /// Its new start.
        to_bytes: Bytes,
    },
    /// Gives the partition of an empty disk another start or length: `plumb fix relabel`, or a tool for labels.
    Relabel {
        /// The partition as it is.
        partition: PartitionRef,
        /// Its new start.
        to_bytes: Bytes,
        /// Its new length; absent to keep it.
        len_bytes: Option<Bytes>,
    },
    /// Makes the file system at the start of a partition, and then the partition, shorter.
    Shrink {
        /// The partition as it is.
        partition: PartitionRef,
        /// Its new length.
        len_bytes: Bytes,
    },
    /// Moves a partition and its label entry by a tool that an interruption makes lose data.
    Shift {
        /// The partition as it is.
        partition: PartitionRef,
        /// Its new start.
        to_bytes: Bytes,
    },
    /// Lets a volume manager move the data, while they are in use, to a partition of another disk.
    Migrate {
        /// The partition as it is.
        partition: PartitionRef,
        /// The start of the other partition on its own disk, which has the same grids.
        to_bytes: Bytes,
        /// The manager.
        manager: Manager,
    },
    /// Writes the damaged or stranded copy of a GPT again from the good one: `plumb fix backup-label`.
    BackupLabel {
        /// The disk.
        disk: DeviceRef,
    },
    /// Changes a setting of a queue.
    SetQueue {
        /// The disk.
        disk: DeviceRef,
        /// The setting.
        change: QueueChange,
    },
    /// Changes a setting of the host.
    SetHost {
        /// The setting.
        setting: HostSetting,
        /// The new value.
        bytes: Bytes,
        /// The present one, if it is known.
        was_bytes: Option<Bytes>,
    },
    /// Tells a file system the stripe below it.
    TuneFileSystem {
        /// The device that the file system is on.
        device: DeviceRef,
        /// The file system.
        kind: FileSystemKind,
        /// Its mount point; absent if it is not mounted.
        mount: Option<String>,
        /// Its block.
        block_bytes: Bytes,
        /// The chunk.
        unit_bytes: Bytes,
        /// Data of a whole stripe.
        width_bytes: Bytes,
        /// The old chunk; absent if there was none.
        was_unit_bytes: Option<Bytes>,
        /// The old stripe; absent if there was none.
        was_width_bytes: Option<Bytes>,
    },
    /// Makes a file system again, with blocks and a stripe.
    RecreateFileSystem {
        /// The device that the file system is on.
        device: DeviceRef,
        /// The file system.
        kind: FileSystemKind,
        /// Its block.
        block_bytes: Bytes,
        /// The new chunk; absent for none.
        unit_bytes: Option<Bytes>,
        /// The new stripe; absent for none.
        width_bytes: Option<Bytes>,
    },
    /// Makes a stripe again on the same members with another chunk.
    RecreateStripe {
        /// The volume.
        volume: DeviceRef,
        /// Its manager.
        manager: Manager,
        /// Its members, in order.
        members: Vec<DeviceRef>,
        /// Members that hold parity in each stripe.
        parity: u32,
        /// The new chunk.
        chunk_bytes: Bytes,
    },
    /// Makes soft partitions again at other offsets; their data come back from copies.
    RecreateSoftPartitions {
        /// The device that they are cut from.
        component: DeviceRef,
        /// Those that go elsewhere.
        moves: Vec<SoftPartitionMove>,
    },
    /// Copies a soft partition to a free place of the same component, compares, and gives the copy the old name.
    CopySoftPartition {
        /// The device that it is cut from.
        component: DeviceRef,
        /// The soft partition.
        #[serde(rename = "move")]
        change: SoftPartitionMove,
    },
    /// Resyncs soft partitions at other offsets from the other sides of their mirrors, one side at a time.
    ResyncSoftPartitions {
        /// The device that they are cut from.
        component: DeviceRef,
        /// Those that go elsewhere.
        moves: Vec<SoftPartitionMove>,
    },
    /// Lets the data of a physical volume of LVM begin elsewhere; the volume must be empty.
    RecreatePhysicalVolume {
        /// The partition.
        partition: PartitionRef,
        /// The first byte of its data.
        data_start_bytes: Bytes,
    },
    /// Sets the record of a data set of ZFS, or the block of a new volume.
    SetRecord {
        /// The data set or volume.
        dataset: DeviceRef,
        /// The new record.
        bytes: Bytes,
        /// Whether existing data must be copied to get it.
        is_copied: bool,
    },
    /// A command that no model describes: it is shown, and never run by `plumb fix plan`.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// Whose tools it takes.
        platform: Platform,
        /// Its effect.
        effect: Effect,
        /// The way back.
        undo: Option<Vec<String>>,
    },
}

impl Action {
    /// The worst thing that it does.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        match self {
            Action::BackupLabel { .. }
            | Action::SetQueue { .. }
            | Action::SetHost { .. }
            | Action::TuneFileSystem { .. } => Effect::ChangesSetting,
            Action::SetRecord { is_copied, .. } => match is_copied {
                false => Effect::ChangesSetting,
                true => Effect::MovesData,
            },
            Action::Move { .. }
            | Action::Migrate { .. }
            | Action::CopySoftPartition { .. }
            | Action::ResyncSoftPartitions { .. } => Effect::MovesDataCrashSafely,
            Action::Shrink { .. } => Effect::MovesData,
            Action::Shift { .. } => Effect::MovesData,
            Action::Relabel { .. }
            | Action::RecreateFileSystem { .. }
            | Action::RecreateStripe { .. }
            | Action::RecreateSoftPartitions { .. }
            | Action::RecreatePhysicalVolume { .. } => Effect::DestroysData,
            Action::Command { effect, .. } => *effect,
        }
    }

    /// The action that takes it back; `None` where only a copy does, or nothing.
    #[must_use]
    pub fn inverse(&self) -> Option<Action> {
        match self {
            Action::Move {
                partition,
                to_bytes,
            } => Some(Action::Move {
                partition: partition.starting_at(*to_bytes),
                to_bytes: partition.start_bytes,
            }),
            Action::Migrate {
                partition,
                to_bytes,
                manager,
            } => Some(Action::Migrate {
                partition: partition.starting_at(*to_bytes),
                to_bytes: partition.start_bytes,
                manager: *manager,
            }),
            Action::SetQueue { disk, change } => Some(Action::SetQueue {
                disk: disk.clone(),
                change: change.inverse(),
            }),
            Action::SetHost {
                setting,
                bytes,
                was_bytes: Some(was),
            } => Some(Action::SetHost {
                setting: *setting,
                bytes: *was,
                was_bytes: Some(*bytes),
            }),
            Action::TuneFileSystem {
                device,
                kind,
                mount,
                block_bytes,
                unit_bytes,
                width_bytes,
                was_unit_bytes,
                was_width_bytes,
            } => Some(Action::TuneFileSystem {
                device: device.clone(),
                kind: *kind,
                mount: mount.clone(),
                block_bytes: *block_bytes,
                // 0 is how the tools write "none".
                unit_bytes: was_unit_bytes.unwrap_or_default(),
                width_bytes: was_width_bytes.unwrap_or_default(),
                was_unit_bytes: Some(*unit_bytes),
                was_width_bytes: Some(*width_bytes),
            }),
            Action::CopySoftPartition { component, change } => Some(Action::CopySoftPartition {
                component: component.clone(),
                change: change.inverse(),
            }),
            Action::ResyncSoftPartitions { component, moves } => {
                Some(Action::ResyncSoftPartitions {
                    component: component.clone(),
                    moves: moves.iter().map(SoftPartitionMove::inverse).collect(),
                })
            }
            _ => None,
        }
    }

    /// Whether the data survive. The tool of a file system that makes it shorter is not safe against an interruption, but
    /// finishes or refuses otherwise, so that a backup before it is enough; a tool that shifts a whole partition leaves
    /// corrupt files that no check of the file system finds.
    #[must_use]
    pub fn keeps_data(&self) -> bool {
        matches!(self, Action::Shrink { .. }) || self.effect() <= Effect::MovesDataCrashSafely
    }

    /// Whether `plumb fix plan` carries it out itself.
    #[must_use]
    pub const fn is_carried_out(&self) -> bool {
        matches!(
            self,
            Action::Move { .. }
                | Action::Relabel { .. }
                | Action::BackupLabel { .. }
                | Action::SetQueue { .. }
                | Action::TuneFileSystem { .. }
        )
    }

    /// Numbers the nodes otherwise, for a part of the stack; a node that is not in it loses its number.
    #[must_use]
    pub fn renumbered(&self, number: impl Fn(NodeId) -> Option<NodeId>) -> Action {
        let mut action = self.clone();
        for node in action.nodes() {
            node.0 = node.0.and_then(&number);
        }
        action
    }

    /// The partition that it changes; `None` for actions about other things.
    pub fn partition_mut(&mut self) -> Option<&mut PartitionRef> {
        match self {
            Action::Move { partition, .. }
            | Action::Relabel { partition, .. }
            | Action::Shrink { partition, .. }
            | Action::Shift { partition, .. }
            | Action::Migrate { partition, .. }
            | Action::RecreatePhysicalVolume { partition, .. } => Some(partition),
            _ => None,
        }
    }

    /// The nodes of the devices that it is about.
    fn nodes(&mut self) -> Vec<&mut LocalNode> {
        match self {
            Action::Move { partition, .. }
            | Action::Relabel { partition, .. }
            | Action::Shrink { partition, .. }
            | Action::Shift { partition, .. }
            | Action::Migrate { partition, .. }
            | Action::RecreatePhysicalVolume { partition, .. } => {
                vec![&mut partition.node, &mut partition.disk.node]
            }
            Action::BackupLabel { disk } | Action::SetQueue { disk, .. } => vec![&mut disk.node],
            Action::TuneFileSystem { device, .. } | Action::RecreateFileSystem { device, .. } => {
                vec![&mut device.node]
            }
            Action::RecreateStripe {
                volume, members, ..
            } => {
                let members = members.iter_mut().map(|member| &mut member.node);
                [&mut volume.node].into_iter().chain(members).collect()
            }
            Action::RecreateSoftPartitions { component, moves }
            | Action::ResyncSoftPartitions { component, moves } => {
                let moved = moves.iter_mut().map(|change| &mut change.volume.node);
                [&mut component.node].into_iter().chain(moved).collect()
            }
            Action::CopySoftPartition { component, change } => {
                vec![&mut component.node, &mut change.volume.node]
            }
            Action::SetRecord { dataset, .. } => vec![&mut dataset.node],
            Action::SetHost { .. } | Action::Command { .. } => Vec::new(),
        }
    }

    /// The word by which JSON calls it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Action::Move { .. } => "move",
            Action::Relabel { .. } => "relabel",
            Action::Shrink { .. } => "shrink",
            Action::Shift { .. } => "shift",
            Action::Migrate { .. } => "migrate",
            Action::BackupLabel { .. } => "backup-label",
            Action::SetQueue { .. } => "set-queue",
            Action::SetHost { .. } => "set-host",
            Action::TuneFileSystem { .. } => "tune-file-system",
            Action::RecreateFileSystem { .. } => "recreate-file-system",
            Action::RecreateStripe { .. } => "recreate-stripe",
            Action::RecreateSoftPartitions { .. } => "recreate-soft-partitions",
            Action::CopySoftPartition { .. } => "copy-soft-partition",
            Action::ResyncSoftPartitions { .. } => "resync-soft-partitions",
            Action::RecreatePhysicalVolume { .. } => "recreate-physical-volume",
            Action::SetRecord { .. } => "set-record",
            Action::Command { .. } => "command",
        }
    }
}

impl PartitionRef {
    /// The same partition at another start.
    #[must_use]
    pub fn starting_at(&self, start: Bytes) -> PartitionRef {
        PartitionRef {
            start_bytes: start,
            ..self.clone()
        }
    }
}

impl SoftPartitionMove {
    fn inverse(&self) -> SoftPartitionMove {
        SoftPartitionMove {
            volume: self.volume.clone(),
            from: self.to.clone(),
            to: self.from.clone(),
        }
    }
}
