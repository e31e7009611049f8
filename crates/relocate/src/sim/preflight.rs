//! Situations in which no move may begin: each is made out of one in which a move may, by changing one thing, before the
//! survey or between the survey and the moment in which the disk is held. The preflight refuses each of them; and for each
//! thing that it asks there is a situation that passes without the question.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use plumb_geometry::{Bytes, Extent, Grid, GridKind};
use plumb_label::gpt::Entry;
use plumb_label::{Detail, Guid, Role, write as label_write};
use plumb_sys::{KernelPartition, Limits};

use crate::labels::edit::encode;
use crate::labels::{NewIds, NewKind, NewLabel};
use crate::marker::Marker;
use crate::moving::{JournalId, Move, Plan};
use crate::mutation::{Mutation, Mutations};
use crate::preflight::{
    Attachment, Checked, DiskWords, Host, JournalPlaceError, JournalSite, MoveRequest,
    PreflightCheck, Refusal, Survey, SurveyMode,
};
use crate::sim::memory_disk::MemoryDisk;
use crate::{DiskOffset, Ending};

const SECTOR: u64 = 512;
const DISK_SECTORS: u64 = 16_384;
/// The partition that is moved, and the one behind its new place, which has a part of the last block of that.
const PART: (u64, u64) = (2049, 100);
const TO: u64 = 2304;
const NEIGHBOUR: (u64, u64) = (TO + 100, 96);

fn extent((start, len): (u64, u64)) -> Extent {
    Extent::new(Bytes(start * SECTOR), Bytes(len * SECTOR)).expect("within 64 bits")
}

fn known(number: u32, (start, len): (u64, u64)) -> KernelPartition {
    KernelPartition {
        number,
        start_bytes: start * SECTOR,
        len_bytes: len * SECTOR,
    }
}

fn attachment(words: &str) -> Option<Attachment> {
    DiskWords::parse(&format!("\n\n\n\n{words}")).attachment
}

/// A disk, and the system around it.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) disk: Vec<u8>,
    to: u64,
    partition_users: Vec<String>,
    disk_users: Vec<String>,
    pub(super) writers: Vec<String>,
    pub(super) neighbour_users: BTreeMap<u32, Vec<String>>,
    pub(super) known: Vec<KernelPartition>,
    pub(super) is_read_only: bool,
    has_ordered_zones: bool,
    pub(super) identity: String,
    attachment: Option<Attachment>,
    site: JournalSite,
}

impl Scene {
    /// One in which a move may begin.
    pub(super) fn safe(kind: NewKind) -> Scene {
        let disk = vec![0; (DISK_SECTORS * SECTOR) as usize];
        let mut scene = Scene {
            disk,
            to: TO,
            partition_users: Vec::new(),
            disk_users: Vec::new(),
            writers: Vec::new(),
            neighbour_users: BTreeMap::new(),
            known: vec![known(1, PART), known(2, NEIGHBOUR)],
            is_read_only: false,
            has_ordered_zones: false,
            identity: "naa.5".to_owned(),
            attachment: attachment("boot 7"),
            site: JournalSite {
                disks: vec!["sdb".to_owned()],
                ..JournalSite::default()
            },
        };
        scene.write_label(kind, |_| {});
        let start = (PART.0 * SECTOR) as usize;
        let content = (0..PART.1 * SECTOR).map(|at| (at % 251) as u8 | 1);
        scene
            .disk
            .splice(start..start + (PART.1 * SECTOR) as usize, content);
        scene
    }

    /// Writes a label with both partitions, changed by `change` before.
    fn write_label(&mut self, kind: NewKind, change: impl FnOnce(&mut Detail)) {
        let label = NewLabel {
            kind,
            sector_bytes: SECTOR as u32,
            disk_lbas: DISK_SECTORS,
            number: 1,
            extent: extent(PART),
            ids: NewIds {
                disk: Guid::from_u128(1),
                partition: Guid::from_u128(2),
                reserved: Guid::from_u128(3),
            },
        };
        let mut detail = label.detail().expect("room");
        if let Detail::Gpt(gpt) = &mut detail {
            gpt.entries[1] = Entry {
                uuid: Guid::from_u128(4),
                first_lba: NEIGHBOUR.0,
                last_lba: NEIGHBOUR.0 + NEIGHBOUR.1 - 1,
                ..gpt.entries[0].clone()
            };
        }
        change(&mut detail);
        let steps = encode(&detail, Role::Primary, true).expect("a label");
        label_write::apply(&steps, &mut self.disk).expect("room");
    }

    fn put(&mut self, sector: u64, bytes: &[u8]) {
        let at = (sector * SECTOR) as usize;
        self.disk[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

impl Host for Scene {
    fn partition_users(&self) -> Vec<String> {
        self.partition_users.clone()
    }

    fn disk_users(&self) -> Vec<String> {
        self.disk_users.clone()
    }

    fn writers(&self) -> io::Result<Vec<String>> {
        Ok(self.writers.clone())
    }

    fn neighbour_users(&self, number: u32) -> Vec<String> {
        let users = self.neighbour_users.get(&number);
        users.cloned().unwrap_or_default()
    }

    fn partitions(&self) -> io::Result<Vec<KernelPartition>> {
        Ok(self.known.clone())
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn has_ordered_zones(&self) -> bool {
        self.has_ordered_zones
    }

    fn limits(&self) -> Limits {
        Limits {
            size_bytes: DISK_SECTORS * SECTOR,
            logical_block_bytes: SECTOR as u32,
            physical_block_bytes: 4096,
            minimum_io_bytes: 4096,
            optimal_io_bytes: 0,
            alignment_offset_bytes: 0,
        }
    }

    fn write_units(&self) -> Vec<Grid> {
        Vec::new()
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn attachment(&self) -> Option<Attachment> {
        self.attachment.clone()
    }

    fn disks(&self) -> Vec<String> {
        vec!["sda".to_owned()]
    }

    fn journal_site(&self, _: &Path) -> Result<JournalSite, JournalPlaceError> {
        Ok(self.site.clone())
    }
}

/// When a scene changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before the survey.
    Before,
    /// Between the survey and the moment in which the disk is held.
    Between,
}

/// One thing that makes a scene unsafe.
struct Danger {
    name: &'static str,
    /// The check that has to notice it. Without it the move begins.
    check: PreflightCheck,
    kind: NewKind,
    change: fn(&mut Scene),
    /// A journal's place is looked at before the journal is made, and the number of a disk says nothing by itself.
    when: &'static [When],
}

const ALWAYS: &[When] = &[When::Before, When::Between];
const BEFORE: &[When] = &[When::Before];
const BETWEEN: &[When] = &[When::Between];

fn in_use() -> Vec<String> {
    vec!["sda1 is mounted at /data".to_owned()]
}

fn mark(scene: &mut Scene, sector: u64) {
    let marker = Marker {
        journal: JournalId([9; 16]),
        path: "/j".to_owned(),
    };
    scene.put(sector, &marker.encode());
}

fn set_kind(scene: &mut Scene, kind: Guid) {
    scene.write_label(NewKind::Gpt, |detail| {
        if let Detail::Gpt(gpt) = detail {
            gpt.entries[0].kind = kind;
        }
    });
}

const fn danger(
    name: &'static str,
    check: PreflightCheck,
    change: fn(&mut Scene),
    when: &'static [When],
) -> Danger {
    Danger {
        name,
        check,
        kind: NewKind::Gpt,
        change,
        when,
    }
}

/// GRUB's partition for its core image.
const BIOS_BOOT: Guid = Guid::from_u128(0x21686148_6449_6e6f_744e_656564454649);

fn dangers() -> Vec<Danger> {
    use PreflightCheck as Check;
    vec![
        danger(
            "mounted",
            Check::PartitionUnused,
            |s| s.partition_users = in_use(),
            ALWAYS,
        ),
        danger(
            "disk in an array",
            Check::DiskUnused,
            |s| s.disk_users = in_use(),
            ALWAYS,
        ),
        danger(
            "read-only",
            Check::Writable,
            |s| s.is_read_only = true,
            ALWAYS,
        ),
        danger(
            "ordered zones",
            Check::AnyWrite,
            |s| s.has_ordered_zones = true,
            ALWAYS,
        ),
        danger(
            "a database on the raw disk",
            Check::NoWriters,
            |s| s.writers = in_use(),
            ALWAYS,
        ),
        danger(
            "the mark of a move",
            Check::NotUnfinished,
            |s| mark(s, PART.0),
            BEFORE,
        ),
        danger(
            "a mark in the neighbour",
            Check::NotUnfinished,
            |s| mark(s, NEIGHBOUR.0),
            ALWAYS,
        ),
        danger(
            "no backup label",
            Check::SoundLabel,
            |s| s.put(DISK_SECTORS - 1, &[0; 512]),
            BEFORE,
        ),
        danger(
            "GRUB's partition",
            Check::Movable,
            |s| set_kind(s, BIOS_BOOT),
            BEFORE,
        ),
        danger(
            "the kernel has it elsewhere",
            Check::KernelAgrees,
            |s| s.known[0].start_bytes += SECTOR,
            ALWAYS,
        ),
        Danger {
            kind: NewKind::Mbr,
            ..danger(
                "bytes before the first partition",
                Check::BootLoaders,
                |s| {
                    s.to = 1024;
                    s.put(1030, &[1; 512]);
                },
                BEFORE,
            )
        },
        danger(
            "a partition that only the kernel has",
            Check::NoStrangers,
            |s| s.known.push(known(5, (2200, 8))),
            ALWAYS,
        ),
        danger(
            "a slice within",
            Check::NoStrangers,
            |s| s.known.push(known(6, (PART.0 + 8, 8))),
            ALWAYS,
        ),
        danger(
            "a neighbour in a shared block",
            Check::NeighboursUnused,
            |s| {
                s.neighbour_users.insert(2, in_use());
            },
            ALWAYS,
        ),
        danger(
            "a journal in memory",
            Check::JournalInMemory,
            |s| s.site.is_in_memory = true,
            BEFORE,
        ),
        danger(
            "a journal on the moved partition",
            Check::JournalOnPartition,
            |s| s.site.is_on_partition = true,
            BEFORE,
        ),
        danger(
            "a journal on the net",
            Check::JournalDisk,
            |s| s.site.disks.clear(),
            BEFORE,
        ),
        // A file system on a volume, an array or a file of the disk shows the disk below.
        danger(
            "a journal on the same disk by another path",
            Check::JournalSameDisk,
            |s| s.site.disks = vec!["sdc".to_owned(), "sda".to_owned()],
            BEFORE,
        ),
        danger(
            "another disk under the same name",
            Check::SameAttachment,
            |s| s.attachment = attachment("boot 8"),
            BETWEEN,
        ),
        danger(
            "a disk of another identity",
            Check::SameIdentity,
            |s| s.identity = "naa.6".to_owned(),
            BETWEEN,
        ),
        danger(
            "another label",
            Check::SamePlan,
            |s| set_kind(s, Guid::from_u128(77)),
            BETWEEN,
        ),
        danger(
            "a file system made meanwhile",
            Check::SamePlan,
            |s| s.put(PART.0 + 2, &ext4_superblock()),
            BETWEEN,
        ),
    ]
}

/// As much of a superblock as tells that it is one.
fn ext4_superblock() -> [u8; 512] {
    let mut bytes = [0; 512];
    bytes[56..58].copy_from_slice(&[0x53, 0xef]);
    bytes
}

/// Surveys `before`, and checks the state when the disk is held.
pub(super) fn judge(
    before: &Scene,
    held: &Scene,
    mutations: Mutations,
    mode: SurveyMode,
) -> Result<Checked<Plan>, Refusal> {
    let request = MoveRequest {
        partition: "/dev/sda1",
        name: "sda1",
        device: "/dev/sda",
        ownership: None,
        to: Bytes(before.to * SECTOR),
        journal: JournalId(*b"preflight's jour"),
        journal_path: Path::new("/nowhere/journal"),
        may_share_disk: false,
    };
    let survey = Survey::with(&before.disk, before, 1, mode, mutations)?;
    survey.plan(&request)?.check(&held.disk, held)
}

fn judge_danger(
    danger: &Danger,
    when: When,
    mutations: Mutations,
) -> Result<Checked<Plan>, Refusal> {
    let safe = Scene::safe(danger.kind);
    let mut unsafe_scene = safe.clone();
    (danger.change)(&mut unsafe_scene);
    let before = match when {
        When::Before => &unsafe_scene,
        When::Between => &safe,
    };
    judge(before, &unsafe_scene, mutations, SurveyMode::default())
}

#[test]
fn a_safe_move_begins_and_ends() {
    for (kind, to) in [(NewKind::Gpt, TO), (NewKind::Mbr, TO), (NewKind::Mbr, 1024)] {
        let mut scene = Scene::safe(kind);
        scene.to = to;
        let mode = SurveyMode::default();
        let checked = judge(&scene, &scene, Mutations::default(), mode).expect("nothing is unsafe");
        assert_eq!(
            (checked.get().from, checked.get().to),
            (DiskOffset(PART.0 * SECTOR), DiskOffset(to * SECTOR))
        );
        let mut journal = vec![0; checked.get().journal_bytes(4096) as usize];
        let disk = MemoryDisk(&mut scene.disk);
        let mut moving = Move::start(checked, disk, &mut journal).expect("a good plan");
        while moving.step().expect("memory does not fail").is_none() {}
        assert_eq!(moving.step().ok().flatten(), Some(Ending::Moved));
        drop(moving);
        let label = plumb_label::read(&scene.disk, Some(512));
        let label = label.expect("readable").expect("a label");
        assert_eq!(label.problems, []);
        assert_eq!(label.partitions[0].extent, extent((to, PART.1)));
        let arrived = &scene.disk[(to * SECTOR) as usize..][..(PART.1 * SECTOR) as usize];
        assert!(
            (0..)
                .zip(arrived)
                .all(|(at, byte)| *byte == (at % 251) as u8 | 1)
        );
    }
}

#[test]
fn every_danger_is_refused_by_its_check() {
    let mut refused = 0;
    for danger in dangers() {
        for when in danger.when {
            let name = danger.name;
            let judged = judge_danger(&danger, *when, Mutations::default());
            assert!(judged.is_err(), "{name}, {when:?}: a move would begin");
            // The intended check refuses it, and no other one.
            let mutations = Mutations {
                on: Some(Mutation::NoPreflight(danger.check)),
            };
            let without = judge_danger(&danger, *when, mutations);
            assert!(
                without.is_ok(),
                "{name}, {when:?}: {:?} refuses it as well",
                without.err()
            );
            refused += 1;
        }
    }
    assert!(refused > 30, "{refused}");
}

/// Two dangers at once do not hide each other.
#[test]
fn no_danger_hides_another() {
    let all = dangers();
    for first in &all {
        for second in all.iter().filter(|second| second.kind == first.kind) {
            let (mut before, mut held) = (Scene::safe(first.kind), Scene::safe(first.kind));
            for danger in [first, second] {
                (danger.change)(&mut held);
                if danger.when.contains(&When::Before) {
                    (danger.change)(&mut before);
                }
            }
            let judged = judge(&before, &held, Mutations::default(), SurveyMode::default());
            assert!(judged.is_err(), "{} and {}", first.name, second.name);
        }
    }
}

/// A preview ignores removable obstacles, and so never leads to a move.
#[test]
fn a_preview_begins_nothing() {
    let mode = SurveyMode {
        is_preview: true,
        ..SurveyMode::default()
    };
    let mut scene = Scene::safe(NewKind::Gpt);
    for users in [Vec::new(), in_use()] {
        scene.partition_users = users;
        let judged = judge(&scene, &scene, Mutations::default(), mode);
        assert!(matches!(judged, Err(Refusal::OnlyShown)), "{judged:?}");
    }
}

/// A journal on a disk of the partition is taken where somebody has allowed it, and on blocks that it shares nowhere.
#[test]
fn a_journal_has_blocks_of_its_own() {
    let mut scene = Scene::safe(NewKind::Gpt);
    let grid = Grid::new(Bytes(4096), Bytes(512), GridKind::Unit).expect("a grid");
    scene.site.physical_blocks = vec![grid];
    let judged = judge(&scene, &scene, Mutations::default(), SurveyMode::default());
    assert!(
        matches!(
            judged,
            Err(Refusal::JournalPlace {
                source: JournalPlaceError::OffBlocks { .. }
            })
        ),
        "{judged:?}"
    );
}
