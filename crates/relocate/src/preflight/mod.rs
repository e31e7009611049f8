//! Whether a move may begin, and whether a disk is the one of a move that has begun.
//!
//! [`Survey::of_partition`] reads label and surroundings of a partition, [`Survey::plan`] makes the plan of its move, and
//! [`Planned::check`] asks once more when the disk is held, since anything may have happened since. Only that makes the
//! [`Checked`] plan without which no move begins. [`Recovery::check`] does the same for a move that goes on or back. Left out: the choice of the new start, and taking the partition from the
//! kernel. Refusals are values here; the command line makes the sentences.

mod blocks;
mod boot;
mod evidence;
mod host;
mod identity;
mod journal_place;
mod neighbours;
mod recovery;
mod refusal;
mod unfinished;

use std::ops::Range;
use std::path::Path;

use plumb_geometry::{Bytes, align_down};
use plumb_label::{Disk, Label, Partition, PartitionPlace, PartitionType};
use plumb_sys::KernelPartition;

pub use self::boot::{BootGapEvidence, BootSector};
pub use self::evidence::{CurrentDisk, NotThisDisk};
pub use self::host::Host;
pub use self::identity::{Attachment, DiskWords, Ownership};
pub use self::journal_place::{JournalPlaceError, JournalSite, must_be_new};
pub use self::neighbours::{beside, within, without_containers};
pub use self::recovery::{Direction, Recovery, RecoveryHost, RecoveryRefusal};
pub(crate) use self::refusal::PreflightCheck;
pub use self::refusal::Refusal;
pub use self::unfinished::{Unfinished, mark_in, moving_part};
use crate::fix_ups::fix_ups;
use crate::labels::{LabelMove, label_move};
use crate::moving::{Copying, JournalId, Plan};
use crate::mutation::Mutations;
use crate::signatures::survey;
use crate::{DiskOffset, JOURNAL_BLOCK_BYTES_MIN, Unit};

/// Type of the partition in which GRUB keeps its core image, found by absolute sector.
const BIOS_BOOT: plumb_label::Guid =
    plumb_label::Guid::from_u128(0x21686148_6449_6e6f_744e_656564454649);
/// A sector with 55 AA at its end, which may be only a boot sector.
const BOOT_SECTOR: &str = "fat or boot sector";

/// Something that the preflight has looked at and found safe. Nothing else makes one.
#[derive(Debug)]
pub struct Checked<T>(T);

impl<T> Checked<T> {
    /// The checked value.
    #[must_use]
    pub fn get(&self) -> &T {
        &self.0
    }

    pub(crate) fn into_inner(self) -> T {
        self.0
    }

    /// For simulated disks, which have no system around them.
    #[cfg(test)]
    pub(crate) fn for_simulation(inner: T) -> Self {
        Self(inner)
    }
}

/// How a survey looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SurveyMode {
    /// Whether marks of an unfinished move are to be passed over.
    pub ignores_marks: bool,
    /// Whether obstacles that can be removed without another plan are collected, and do not end the survey.
    pub is_preview: bool,
}

/// A partition and its surroundings, as far as they do not hang on its new place.
pub struct Survey<'a> {
    disk: &'a dyn Disk,
    host: &'a dyn Host,
    mode: SurveyMode,
    label: Label,
    part: Partition,
    known: Vec<KernelPartition>,
    obstacles: Vec<Refusal>,
    mutations: Mutations,
}

/// A request for a move.
#[derive(Debug, Clone, Copy)]
pub struct MoveRequest<'a> {
    /// Node of the partition.
    pub partition: &'a str,
    /// The kernel's name of it.
    pub name: &'a str,
    /// Node of its disk.
    pub device: &'a str,
    /// Whose the partition's node is.
    pub ownership: Option<Ownership>,
    /// Its new start on the disk.
    pub to: Bytes,
    /// Name of the journal.
    pub journal: JournalId,
    /// Its file, which is not made yet.
    pub journal_path: &'a Path,
    /// Whether the journal may be on a disk of the partition.
    pub may_share_disk: bool,
}

/// A move with its plan, as it was when it was looked at.
#[derive(Debug)]
pub struct Planned {
    plan: Plan,
    holds: Vec<&'static str>,
    beside: Vec<u32>,
    journal_block_bytes: u32,
    number: u32,
    words: DiskWords,
    mode: SurveyMode,
    obstacles: Vec<Refusal>,
    mutations: Mutations,
}

impl<'a> Survey<'a> {
    /// Looks at the partition of a number.
    ///
    /// # Errors
    /// The first thing that keeps it from being moved.
    pub fn of_partition(
        disk: &'a dyn Disk,
        host: &'a dyn Host,
        number: u32,
        mode: SurveyMode,
    ) -> Result<Self, Refusal> {
        Self::with(disk, host, number, mode, Mutations::default())
    }

    pub(crate) fn with(
        disk: &'a dyn Disk,
        host: &'a dyn Host,
        number: u32,
        mode: SurveyMode,
        mutations: Mutations,
    ) -> Result<Self, Refusal> {
        let asks = |check| !mutations.leaves_out(check);
        let mut obstacles = Vec::new();
        let mut meet = |refusal| meet(&mut obstacles, mode, refusal);
        let users = host.partition_users();
        if !users.is_empty() && asks(PreflightCheck::PartitionUnused) {
            meet(Refusal::InUse { users })?;
        }
        let users = host.disk_users();
        if !users.is_empty() && asks(PreflightCheck::DiskUnused) {
            return Err(Refusal::DiskInUse { users });
        }
        if host.is_read_only() && asks(PreflightCheck::Writable) {
            return Err(Refusal::ReadOnly);
        }
        if host.has_ordered_zones() && asks(PreflightCheck::AnyWrite) {
            return Err(Refusal::OrderedZones);
        }
        if let Err(refusal) = must_have_no_writers(host, mutations) {
            meet(refusal)?;
        }
        let label = sound_label(disk, host, mode, mutations)?;
        let part = movable(&label, number, mutations)?;
        let known = kernel_partitions(host, &label)?;
        if !knows(&known, &part) && asks(PreflightCheck::KernelAgrees) {
            return Err(Refusal::KernelDisagrees);
        }
        Ok(Self {
            disk,
            host,
            mode,
            label,
            part,
            known,
            obstacles,
            mutations,
        })
    }

    /// The label of the disk.
    #[must_use]
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// The partition in the label.
    #[must_use]
    pub fn part(&self) -> &Partition {
        &self.part
    }

    fn place(&self) -> Range<u64> {
        self.part.extent.start().0..self.part.extent.end().0
    }

    /// Makes the plan of a move, and looks at all that hangs on it.
    ///
    /// # Errors
    /// The first thing that keeps it from being carried out.
    pub fn plan(mut self, request: &MoveRequest<'_>) -> Result<Planned, Refusal> {
        let mut words = DiskWords::of_disk(
            request.device.to_owned(),
            self.host.identity(),
            Some(&self.label),
            self.host.attachment(),
        );
        words.ownership = request.ownership;
        let (plan, holds, beside) = self.plan_and_neighbours(request, &words)?;
        let journal_block_bytes = match self.journal_block(request) {
            Ok(block) => block,
            Err(source) => {
                let refusal = Refusal::JournalPlace { source };
                meet(&mut self.obstacles, self.mode, refusal)?;
                JOURNAL_BLOCK_BYTES_MIN
            }
        };
        Ok(Planned {
            plan,
            holds,
            beside,
            journal_block_bytes,
            number: self.part.id.number,
            words,
            mode: self.mode,
            obstacles: self.obstacles,
            mutations: self.mutations,
        })
    }

    /// The plan, the formats that are in the partition, and the neighbours that have to be unused.
    fn plan_and_neighbours(
        &mut self,
        request: &MoveRequest<'_>,
        words: &DiskWords,
    ) -> Result<(Plan, Vec<&'static str>, Vec<u32>), Refusal> {
        let mutations = self.mutations;
        let asks = |check| !mutations.leaves_out(check);
        if asks(PreflightCheck::BootLoaders) {
            self.must_spare_boot_loaders(request.to)?;
        }
        let (plan, holds) = self.make_plan(request, words)?;
        plan.check().map_err(|source| Refusal::Plan { source })?;
        let numbers = neighbours::strangers(&plan, self.part.id.number, &self.known);
        if !numbers.is_empty() && asks(PreflightCheck::NoStrangers) {
            return Err(Refusal::OnlyInKernel { numbers });
        }
        let beside = beside(&plan, &self.known);
        let beside: Vec<u32> = beside.iter().map(|one| one.number).collect();
        for number in beside.iter().copied() {
            let users = self.host.neighbour_users(number);
            if !users.is_empty() && asks(PreflightCheck::NeighboursUnused) {
                let refusal = Refusal::NeighbourInUse { number, users };
                meet(&mut self.obstacles, self.mode, refusal)?;
            }
        }
        Ok((plan, holds, beside))
    }

    fn journal_block(&self, request: &MoveRequest<'_>) -> Result<u32, JournalPlaceError> {
        must_be_new(request.journal_path)?;
        let site = self.host.journal_site(request.journal_path)?;
        let disks = self.host.disks();
        journal_place::must_be_apart(
            &site,
            request.name,
            &disks,
            request.may_share_disk,
            self.mutations,
        )
    }

    fn make_plan(
        &self,
        request: &MoveRequest<'_>,
        words: &DiskWords,
    ) -> Result<(Plan, Vec<&'static str>), Refusal> {
        let (limits, to) = (self.host.limits(), request.to);
        let LabelMove { hide, finish } = label_move(&self.label, self.part.id, to, self.disk)
            .map_err(|source| Refusal::LabelMove { source })?;
        let old = self.place();
        let (from, len) = (old.start, old.end - old.start);
        let unreadable = |source| Refusal::Unreadable { at: from, source };
        let new = to.0..to.0.saturating_add(len);
        let found =
            survey(self.disk, &old, &new, limits.logical_block_bytes).map_err(unreadable)?;
        let fix_ups = fix_ups(self.disk, self.part.extent, to).map_err(unreadable)?;
        let unit = blocks::written(blocks::stated(limits), &self.host.write_units());
        let block = u64::from(limits.logical_block_bytes);
        let path = std::path::absolute(request.journal_path)
            .unwrap_or_else(|_| request.journal_path.to_owned());
        let copying = copying(from.abs_diff(to.0), len, unit);
        let plan = Plan {
            partition: request.partition.to_owned(),
            disk: words.text(),
            disk_bytes: align_down(limits.size_bytes, block).unwrap_or(limits.size_bytes),
            logical_block_bytes: limits.logical_block_bytes,
            physical_block_bytes: limits.physical_block_bytes,
            journal: request.journal,
            journal_path: path.display().to_string(),
            from: DiskOffset(from),
            to: DiskOffset(to.0),
            len,
            unit,
            copying,
            at_once: Plan::usual_at_once(copying, len),
            hide,
            finish,
            signatures: found.signatures,
            strays: found.strays,
            fix_ups,
        };
        let mut names = found.names;
        // If a format is known, the mark that its boot sector shares with others adds nothing.
        if names.len() > 1 {
            names.retain(|name| *name != BOOT_SECTOR);
        }
        Ok((plan, names))
    }
}

impl Planned {
    /// The plan, for readers.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Formats that were found in the partition.
    #[must_use]
    pub fn holds(&self) -> &[&'static str] {
        &self.holds
    }

    /// Numbers of neighbours that have bytes in blocks which are written with the partition or with the label.
    #[must_use]
    pub fn beside(&self) -> &[u32] {
        &self.beside
    }

    /// The write unit of the journal's disk.
    #[must_use]
    pub fn journal_block_bytes(&self) -> u32 {
        self.journal_block_bytes
    }

    /// Takes the obstacles that can be removed without another plan. Only a preview has any.
    pub fn take_obstacles(&mut self) -> Vec<Refusal> {
        std::mem::take(&mut self.obstacles)
    }

    /// Whether a disk, by its number and identity, is still the one that was looked at.
    ///
    /// # Errors
    /// [`Refusal::Exchanged`].
    pub fn must_be_same_disk(
        &self,
        attachment: Option<Attachment>,
        identity: &str,
    ) -> Result<(), Refusal> {
        let asks = |check| !self.mutations.leaves_out(check);
        let has_number =
            attachment == self.words.attachment || !asks(PreflightCheck::SameAttachment);
        let has_identity = identity == self.words.identity || !asks(PreflightCheck::SameIdentity);
        match has_number && has_identity {
            true => Ok(()),
            false => Err(Refusal::Exchanged),
        }
    }

    /// Looks again, now that nobody else can lock the disk: all that was asked is asked once more, and has to lead to the same
    /// plan.
    ///
    /// # Errors
    /// The reason against the move.
    pub fn check(&self, disk: &dyn Disk, host: &dyn Host) -> Result<Checked<Plan>, Refusal> {
        if self.mode.is_preview {
            return Err(Refusal::OnlyShown);
        }
        self.must_be_same_disk(host.attachment(), &host.identity())?;
        self.must_have_same_label(disk)?;
        let request = MoveRequest {
            partition: &self.plan.partition,
            name: "",
            device: &self.words.path,
            ownership: self.words.ownership,
            to: Bytes(self.plan.to.0),
            journal: self.plan.journal,
            journal_path: Path::new(&self.plan.journal_path),
            may_share_disk: false,
        };
        let mut survey = Survey::with(disk, host, self.number, self.mode, self.mutations)?;
        let (plan, ..) = survey.plan_and_neighbours(&request, &self.words)?;
        if plan != self.plan && !self.mutations.leaves_out(PreflightCheck::SamePlan) {
            return Err(Refusal::Changed {
                at: self.plan.from.0,
            });
        }
        Ok(Checked(self.plan.clone()))
    }

    /// Byte for byte, where the move changes it: the refusal names the place.
    fn must_have_same_label(&self, disk: &dyn Disk) -> Result<(), Refusal> {
        for change in &self.plan.hide {
            let (at, mut found) = (change.at.0, vec![0; change.old.len()]);
            disk.read_at(at, &mut found)
                .map_err(|source| Refusal::Unreadable { at, source })?;
            let is_same =
                found == change.old || self.mutations.leaves_out(PreflightCheck::SamePlan);
            if !is_same {
                return Err(Refusal::Changed { at });
            }
        }
        Ok(())
    }
}

/// Collects a removable obstacle, if the move is only a preview.
///
/// # Errors
/// The refusal, where the move would begin.
fn meet(obstacles: &mut Vec<Refusal>, mode: SurveyMode, refusal: Refusal) -> Result<(), Refusal> {
    match mode.is_preview {
        true => {
            obstacles.push(refusal);
            Ok(())
        }
        false => Err(refusal),
    }
}

fn must_have_no_writers(host: &dyn Host, mutations: Mutations) -> Result<(), Refusal> {
    let users = host
        .writers()
        .map_err(|source| Refusal::System { source })?;
    match users.is_empty() || mutations.leaves_out(PreflightCheck::NoWriters) {
        true => Ok(()),
        false => Err(Refusal::OpenForWriting { users }),
    }
}

fn read_label(disk: &dyn Disk, host: &dyn Host) -> Result<Label, Refusal> {
    let block = host.limits().logical_block_bytes;
    let label = plumb_label::read(disk, Some(block));
    let label = label.map_err(|source| Refusal::LabelUnread { source })?;
    label.ok_or(Refusal::NoLabel)
}

/// The label, without a problem and without a move that has not ended.
fn sound_label(
    disk: &dyn Disk,
    host: &dyn Host,
    mode: SurveyMode,
    mutations: Mutations,
) -> Result<Label, Refusal> {
    let label = read_label(disk, host)?;
    let block = host.limits().logical_block_bytes;
    let unfinished = Unfinished::on(disk, &label, block, mode.ignores_marks);
    if let Some(unfinished) = unfinished
        && !mutations.leaves_out(PreflightCheck::NotUnfinished)
    {
        let unfinished = Box::new(unfinished);
        return Err(Refusal::Unfinished { unfinished });
    }
    match label.problems.first() {
        Some(problem) if !mutations.leaves_out(PreflightCheck::SoundLabel) => {
            let problem = problem.clone();
            Err(Refusal::LabelProblem { problem })
        }
        _ => Ok(label),
    }
}

/// The partition of a number in a label, if it is one that can be moved.
fn movable(label: &Label, number: u32, mutations: Mutations) -> Result<Partition, Refusal> {
    let is_it = |part: &&Partition| part.id.number == number && part.place != PartitionPlace::Slice;
    let part = label.partitions.iter().find(is_it).cloned();
    let part = part.ok_or(Refusal::NotInLabel)?;
    if mutations.leaves_out(PreflightCheck::Movable) {
        return Ok(part);
    }
    match (part.place, part.kind) {
        (PartitionPlace::Extended, _) => Err(Refusal::Extended),
        (_, PartitionType::Guid(BIOS_BOOT)) => Err(Refusal::BiosBoot),
        (_, PartitionType::Tag(_)) => Err(Refusal::SolarisSlice),
        _ => Ok(part),
    }
}

fn kernel_partitions(host: &dyn Host, label: &Label) -> Result<Vec<KernelPartition>, Refusal> {
    let known = host
        .partitions()
        .map_err(|source| Refusal::System { source })?;
    Ok(without_containers(known, Some(label)))
}

/// Whether the kernel has a partition where the label says.
fn knows(known: &[KernelPartition], part: &Partition) -> bool {
    let (start, len) = (part.extent.start().0, part.extent.len().0);
    known.iter().any(|known| {
        (known.number, known.start_bytes, known.len_bytes) == (part.id.number, start, len)
    })
}

/// As usual, but in no longer batches than the whole partition: the journal has room for one.
fn copying(shift: u64, len: u64, unit: Unit) -> Copying {
    match Plan::usual_copying(shift, unit) {
        // One more for the blocks that its ends share with others.
        Copying::Batches(bytes) => Copying::Batches(bytes.min((len / unit.bytes + 2) * unit.bytes)),
        windows => windows,
    }
}
