//! Looks for the copies of a GPT and chooses the one to use.

use crate::disk::{Blocks, Disk};
use crate::gpt::entry::Entry;
use crate::gpt::header::{GptHeader, HEADER_BYTES};
use crate::gpt::{Gpt, HeaderCopy};
use crate::mbr::MbrSector;
use crate::mbr::types::PROTECTIVE;
use crate::problem::{Fault, Problem, Role};

/// Sector sizes that a label is looked for with when the device's own does not give one.
const SECTOR_BYTES_PROBED: [u32; 2] = [512, 4096];

/// A copy that passed all checks.
struct Good {
    header: GptHeader,
    entries: Vec<Entry>,
    array_rest: Vec<u8>,
}

/// A place that was looked at.
pub(super) struct ProbedCopy {
    pub role: Role,
    pub lba: u64,
    pub fault: Option<Fault>,
    pub is_used: bool,
}

/// The parts of a GPT found for one sector size.
pub(crate) struct FoundGpt {
    pub(super) sector_bytes: u32,
    pub(super) gpt: Option<Gpt>,
    pub(super) copies: Vec<ProbedCopy>,
    pub(super) problems: Vec<Problem>,
}

impl FoundGpt {
    /// Whether a copy is good.
    pub(crate) fn is_good(&self) -> bool {
        self.gpt.is_some()
    }

    /// Whether anything says that here was a GPT.
    pub(crate) fn is_something(&self) -> bool {
        self.copies.iter().any(|copy| match &copy.fault {
            None | Some(Fault::Checksum { .. } | Fault::Field { .. }) => true,
            // The array alone can be out of reach, and the header was a good one then.
            Some(Fault::BeyondEnd { lba, .. }) => *lba != copy.lba,
            Some(Fault::NoSignature | Fault::Unreadable { .. }) => false,
        })
    }

    fn has_good(&self, role: Role) -> bool {
        self.copies
            .iter()
            .any(|copy| copy.role == role && copy.fault.is_none())
    }

    pub(crate) fn unreadable(&self) -> Option<&Fault> {
        self.copies
            .iter()
            .filter_map(|copy| copy.fault.as_ref())
            .find(|fault| matches!(fault, Fault::Unreadable { .. }))
    }
}

/// Looks with each sector size. The device's own comes first, since systems look no further; then a good primary
/// counts for more than a good backup, which may be a leftover.
pub(crate) fn find(disk: &dyn Disk, device_sector_bytes: Option<u32>) -> FoundGpt {
    let others = SECTOR_BYTES_PROBED
        .into_iter()
        .filter(|&size| Some(size) != device_sector_bytes);
    let mut found: Vec<FoundGpt> = device_sector_bytes
        .into_iter()
        .chain(others)
        .map(|size| look(Blocks::new(disk, size)))
        .collect();
    let own_is_good = device_sector_bytes.is_some() && found[0].is_good();
    let best = if own_is_good {
        0
    } else {
        let place = |test: &dyn Fn(&FoundGpt) -> bool| found.iter().position(test);
        place(&|found| found.has_good(Role::Primary))
            .or_else(|| place(&FoundGpt::is_good))
            .or_else(|| place(&FoundGpt::is_something))
            .unwrap_or(0)
    };
    let mut best = found.swap_remove(best);
    if let Some(device_bytes) = device_sector_bytes.filter(|&size| size != best.sector_bytes) {
        best.problems.insert(
            0,
            Problem::SectorSizeMismatch {
                label_bytes: best.sector_bytes,
                device_bytes,
            },
        );
    }
    best
}

fn look(blocks: Blocks<'_>) -> FoundGpt {
    let primary = read_copy(blocks, 1);
    let backups: Vec<(u64, Result<Good, Fault>)> = backup_places(blocks, &primary)
        .into_iter()
        .map(|lba| (lba, read_copy(blocks, lba)))
        .collect();
    let (backup, faults) = choose_backup(backups);
    let mut problems = Vec::new();
    if let Err(fault) = &primary {
        problems.push(Problem::BrokenCopy {
            role: Role::Primary,
            lba: 1,
            fault: fault.clone(),
        });
    }
    match &backup {
        Some((found_lba, good)) => {
            problems.extend(judge_backup(blocks, &primary, *found_lba, good))
        }
        // The place that a good primary names, else the end, was looked at first.
        None => problems.extend(faults.first().map(|(lba, fault)| Problem::BrokenCopy {
            role: Role::Backup,
            lba: *lba,
            fault: fault.clone(),
        })),
    }
    let mut copies = vec![ProbedCopy {
        role: Role::Primary,
        lba: 1,
        fault: primary.as_ref().err().cloned(),
        is_used: primary.is_ok(),
    }];
    copies.extend(backup.as_ref().map(|&(lba, _)| ProbedCopy {
        role: Role::Backup,
        lba,
        fault: None,
        is_used: primary.is_err(),
    }));
    let broken = |(lba, fault)| ProbedCopy {
        role: Role::Backup,
        lba,
        fault: Some(fault),
        is_used: false,
    };
    copies.extend(faults.into_iter().map(broken));
    let gpt = assemble(blocks, primary.ok(), backup);
    if gpt.is_none() {
        problems.push(Problem::NoGoodCopy);
    }
    FoundGpt {
        sector_bytes: blocks.sector_bytes,
        gpt,
        copies,
        problems,
    }
}

/// Possible blocks of a backup: the one that the primary names; the last; the last but one, the place of old Solaris on
/// x86. With a broken primary also the block that its header seems to name, and the end of the disk in the protective
/// MBR, because on a disk that has grown nothing else leads there. The result has to pass all checks anyway.
fn backup_places(blocks: Blocks<'_>, primary: &Result<Good, Fault>) -> Vec<u64> {
    let last = blocks.last_lba();
    let last_but_one = last.and_then(|last| last.checked_sub(1));
    let candidates = match primary {
        Ok(good) => [Some(good.header.alternate_lba), last, last_but_one, None],
        Err(_) => [
            last,
            alternate_unchecked(blocks),
            protective_end(blocks),
            last_but_one,
        ],
    };
    let mut places = Vec::new();
    for place in candidates.into_iter().flatten() {
        if place > 1 && !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

fn alternate_unchecked(blocks: Blocks<'_>) -> Option<u64> {
    GptHeader::alternate_lba_unchecked(&blocks.read(1, 1).ok()?)
}

/// Last block of the protective partition, unless it says as much as 32 bits can and no more.
fn protective_end(blocks: Blocks<'_>) -> Option<u64> {
    let mbr = MbrSector::decode(&blocks.read(0, 1).ok()?).ok()?;
    let entry = mbr
        .entries
        .iter()
        .find(|entry| entry.kind == PROTECTIVE && entry.count != u32::MAX)?;
    (u64::from(entry.first) + u64::from(entry.count)).checked_sub(1)
}

fn read_copy(blocks: Blocks<'_>, lba: u64) -> Result<Good, Fault> {
    let header = GptHeader::decode(&blocks.read(lba, 1)?, lba)?;
    let (mut array, len) = header.read_array(blocks)?;
    let array_rest = array.split_off(len);
    let entries = array
        .chunks_exact(header.entry_bytes as usize)
        .map(Entry::decode)
        .collect();
    Ok(Good {
        header,
        entries,
        array_rest,
    })
}

/// A backup with the block it was found at.
type Backup = Option<(u64, Good)>;

/// The first good one, and the faults of the others. A missing backup in the last sector but one is normal and no
/// fault.
fn choose_backup(places: Vec<(u64, Result<Good, Fault>)>) -> (Backup, Vec<(u64, Fault)>) {
    let (mut chosen, mut faults) = (None, Vec::new());
    let first = places.first().map(|&(lba, _)| lba);
    for (lba, read) in places {
        match read {
            Ok(good) => chosen = chosen.or(Some((lba, good))),
            Err(Fault::NoSignature) if Some(lba) != first => {}
            Err(fault) => faults.push((lba, fault)),
        }
    }
    (chosen, faults)
}

/// Whether the good backup is at the right place and agrees with the primary.
fn judge_backup(
    blocks: Blocks<'_>,
    primary: &Result<Good, Fault>,
    found_lba: u64,
    backup: &Good,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let last_lba = blocks.last_lba().unwrap_or(0);
    if found_lba + 1 == last_lba {
        problems.push(Problem::LegacyBackup { found_lba });
    } else if found_lba < last_lba {
        problems.push(Problem::StrandedBackup {
            found_lba,
            last_lba,
        });
    }
    let Ok(primary) = primary else {
        return problems;
    };
    let named_lba = primary.header.alternate_lba;
    if named_lba != found_lba {
        problems.push(Problem::BackupElsewhere {
            named_lba,
            found_lba,
        });
    }
    problems.extend(difference(primary, backup).map(|field| Problem::CopiesDiffer { field }));
    problems
}

fn difference(a: &Good, b: &Good) -> Option<&'static str> {
    let usable = |header: &GptHeader| (header.first_usable_lba, header.last_usable_lba);
    if a.header.disk_guid != b.header.disk_guid {
        Some("GUID of the disk")
    } else if a.entries != b.entries {
        Some("partitions")
    } else if usable(&a.header) != usable(&b.header) {
        Some("usable range")
    } else if b.header.alternate_lba != a.header.my_lba {
        Some("place of the primary")
    } else {
        None
    }
}

/// The label of the copy in use. If the other copy is not good, its own fields are computed.
fn assemble(blocks: Blocks<'_>, primary: Option<Good>, backup: Backup) -> Option<Gpt> {
    let found_lba = backup.as_ref().map(|&(lba, _)| lba);
    let backup = backup.map(|(_, good)| good);
    let of_backup = backup.as_ref().map(own_part);
    let (used, primary, backup) = match (primary, backup) {
        (Some(used), backup) => {
            let own = own_part(&used);
            let lba = found_lba.unwrap_or(used.header.alternate_lba);
            let array_lbas = used.array_lbas(blocks.sector_bytes);
            let made_up = HeaderCopy {
                header_lba: lba,
                array_lba: lba.saturating_sub(array_lbas),
                ..blank(&own)
            };
            let backup =
                of_backup.filter(|_| backup.is_some_and(|backup| used.same_shape(&backup)));
            (used, own, backup.unwrap_or(made_up))
        }
        (None, Some(used)) => {
            let own = own_part(&used);
            let array_lba = primary_array_lba(blocks).unwrap_or(2);
            let primary = HeaderCopy {
                header_lba: 1,
                array_lba,
                ..blank(&own)
            };
            (used, primary, own)
        }
        (None, None) => return None,
    };
    let header = used.header;
    let mbr = blocks
        .read(0, 1)
        .ok()
        .and_then(|sector| MbrSector::decode(&sector).ok());
    Some(Gpt {
        sector_bytes: blocks.sector_bytes,
        disk_lbas: blocks.count(),
        revision: header.revision,
        disk_guid: header.disk_guid,
        first_usable_lba: header.first_usable_lba,
        last_usable_lba: header.last_usable_lba,
        entry_bytes: header.entry_bytes,
        entries: used.entries,
        primary,
        backup,
        mbr,
    })
}

/// The position of the array by a good header, though the array may be broken.
fn primary_array_lba(blocks: Blocks<'_>) -> Option<u64> {
    GptHeader::decode(&blocks.read(1, 1).ok()?, 1)
        .ok()
        .map(|header| header.array_lba)
}

impl Good {
    fn array_lbas(&self, sector_bytes: u32) -> u64 {
        (u64::from(self.header.entry_count) * u64::from(self.header.entry_bytes))
            .div_ceil(sector_bytes.into())
    }

    fn same_shape(&self, other: &Good) -> bool {
        let shape = |good: &Good| (good.header.entry_count, good.header.entry_bytes);
        shape(self) == shape(other)
    }
}

fn own_part(good: &Good) -> HeaderCopy {
    HeaderCopy {
        header_lba: good.header.my_lba,
        array_lba: good.header.array_lba,
        header_bytes: good.header.header_bytes,
        reserved: good.header.reserved,
        header_rest: good.header.rest.clone(),
        array_rest: good.array_rest.clone(),
    }
}

/// The same sizes without anything that only the other copy says.
fn blank(copy: &HeaderCopy) -> HeaderCopy {
    debug_assert!(copy.header_bytes >= HEADER_BYTES);
    HeaderCopy {
        reserved: 0,
        header_rest: vec![0; copy.header_rest.len()],
        array_rest: vec![0; copy.array_rest.len()],
        ..copy.clone()
    }
}
