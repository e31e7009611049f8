//! Properties of every label and every image: written data are read, read data are written, and no bytes end the
//! reading.

#[path = "common/lies.rs"]
mod lies;

use crate::common::{applied, assert_same_bytes};
use lies::assert_lies_as_the_bytes_say;
use plumb_label::gpt::Entry;
use plumb_label::mbr::{Ebr, MbrEntry, MbrSector};
use plumb_label::vtoc::{Geometry, Slice};
use plumb_label::{Detail, Gpt, Guid, Label, Mbr, Role, SparcVtoc, WriteStep, X86Vtoc, read};
use proptest::collection::vec;
use proptest::prelude::*;

fn sector_bytes() -> impl Strategy<Value = u32> {
    prop_oneof![Just(512), Just(4096)]
}

fn entry(entry_bytes: u32) -> impl Strategy<Value = Entry> {
    let rest = vec(any::<u8>(), (entry_bytes - 128) as usize);
    // Off the label itself, which partitions must not overlap; ends before starts are no partition.
    let lbas = prop_oneof![(30..135u64, 30..135u64), (300..u64::MAX, 300..u64::MAX)];
    let kind = prop_oneof![Just([0; 16]), any::<[u8; 16]>()];
    (
        kind,
        any::<[u8; 16]>(),
        lbas,
        any::<u64>(),
        vec(any::<u16>(), 36),
        rest,
    )
        .prop_map(
            |(kind, uuid, (first_lba, last_lba), attributes, units, rest)| {
                let mut name = [0; 36];
                name.copy_from_slice(&units);
                Entry {
                    kind: Guid(kind),
                    uuid: Guid(uuid),
                    first_lba,
                    last_lba,
                    attributes,
                    name,
                    rest,
                }
            },
        )
}

fn gpt() -> impl Strategy<Value = Gpt> {
    let entries = prop_oneof![Just(128u32), Just(256), Just(512)]
        .prop_flat_map(|entry_bytes| (Just(entry_bytes), vec(entry(entry_bytes), 0..20)));
    (
        sector_bytes(),
        entries,
        92..=512u32,
        vec(any::<u8>(), 8_192),
        0..40u64,
        any::<[u64; 2]>(),
    )
        .prop_map(
            |(sector_bytes, (entry_bytes, entries), header_bytes, noise, before_end, usable)| {
                let mut gpt = Gpt::new(sector_bytes, 200, Guid::from_u128(7)).expect("room");
                (gpt.entry_bytes, gpt.entries) = (entry_bytes, entries);
                (gpt.first_usable_lba, gpt.last_usable_lba) =
                    (usable[0].min(usable[1]), usable[0].max(usable[1]));
                gpt.backup.header_lba -= before_end;
                gpt.backup.array_lba = gpt.backup.header_lba - gpt.array_lbas();
                let used = gpt.entries.len() * entry_bytes as usize;
                let array_rest = (gpt.array_lbas() * u64::from(sector_bytes)) as usize - used;
                for (copy, skip) in [(&mut gpt.primary, 0), (&mut gpt.backup, 3)] {
                    copy.header_bytes = header_bytes;
                    copy.header_rest
                        .copy_from_slice(&noise[skip..skip + sector_bytes as usize - 92]);
                    copy.array_rest = noise[skip..skip + array_rest].to_vec();
                }
                gpt
            },
        )
}

fn mbr_sector(sector_bytes: u32) -> impl Strategy<Value = MbrSector> {
    let chs = any::<([u8; 3], [u8; 3])>();
    let one = (any::<bool>(), chs, 0..3usize, any::<[u32; 2]>());
    (
        vec(any::<u8>(), 440),
        any::<u32>(),
        vec(one, 4),
        vec(any::<u8>(), (sector_bytes - 512) as usize),
    )
        .prop_map(|(code, disk_signature, entries, rest)| {
            let mut sector = MbrSector {
                disk_signature,
                reserved: [1, 2],
                rest,
                ..MbrSector::empty(512)
            };
            sector.boot_code.copy_from_slice(&code);
            for (entry, (active, (first_chs, last_chs), kind, [first, count])) in
                sector.entries.iter_mut().zip(entries)
            {
                // Types without a meaning of their own.
                let kind = [0, 0x83, 0x07][kind];
                *entry = MbrEntry {
                    status: u8::from(active) << 7,
                    first_chs,
                    kind,
                    last_chs,
                    first,
                    count,
                };
            }
            sector
        })
}

/// A chain of links at rising places, each with a logical partition and the way to the next.
fn mbr() -> impl Strategy<Value = Mbr> {
    sector_bytes().prop_flat_map(|sector_bytes| {
        let links = vec((1..9u32, mbr_sector(sector_bytes)), 1..8);
        (mbr_sector(sector_bytes), 0..4usize, links).prop_map(
            move |(mut first, extended, links)| {
                let base = 10;
                first.entries[extended] = MbrEntry {
                    kind: 0x0f,
                    first: base,
                    count: 80,
                    ..first.entries[extended]
                };
                let mut ebrs: Vec<Ebr> = Vec::new();
                let mut lba = base;
                for (gap, mut sector) in links {
                    // The last link leads nowhere until the next one comes.
                    sector.entries[1] = MbrEntry::default();
                    if let Some(before) = ebrs.last_mut() {
                        lba += gap;
                        before.sector.entries[1] = MbrEntry {
                            kind: 5,
                            first: lba - base,
                            count: 1,
                            ..MbrEntry::default()
                        };
                    }
                    ebrs.push(Ebr {
                        lba: lba.into(),
                        extended,
                        sector,
                    });
                }
                Mbr {
                    sector_bytes,
                    disk_lbas: 100,
                    first,
                    ebrs,
                }
            },
        )
    })
}

fn geometry() -> impl Strategy<Value = Geometry> {
    (1..100u32, 1..20u32, 10..100u32, 0..3u16).prop_map(
        |(cylinders, heads, sectors, cylinders_alternate)| {
            let cylinders_physical = cylinders + u32::from(cylinders_alternate);
            Geometry {
                cylinders_physical,
                cylinders,
                cylinders_alternate,
                heads,
                sectors,
            }
        },
    )
}

fn slices<const N: usize>() -> impl Strategy<Value = [Slice; N]> {
    let slice = prop_oneof![
        Just(Slice::default()),
        any::<(u16, u16, u32, u32)>().prop_map(|(tag, flag, start, count)| Slice {
            tag,
            flag,
            start,
            count
        }),
    ];
    vec(slice, N).prop_map(|slices| std::array::from_fn(|index| slices[index]))
}

fn read_back(image: &[u8], sector_bytes: u32) -> Label {
    let label = read(&image, Some(sector_bytes))
        .expect("readable")
        .expect("a label");
    assert_lies_as_the_bytes_say(&label, image);
    label
}

/// An image that any label may be in, with some bytes changed, or only some bytes.
fn images() -> impl Strategy<Value = Vec<u8>> {
    let encoded = prop_oneof![
        gpt().prop_map(|gpt| applied(
            &gpt.encode_with_mbr(Role::Primary).expect("fits"),
            &vec![0; 200 * gpt.sector_bytes as usize]
        )),
        mbr().prop_map(|mbr| applied(
            &mbr.encode().expect("fits"),
            &vec![0; 100 * mbr.sector_bytes as usize]
        )),
        (geometry(), slices()).prop_map(|(geometry, slices)| {
            let mut vtoc = SparcVtoc::new(512, 1 << 20, geometry).expect("fits");
            vtoc.slices = slices;
            applied(&vtoc.encode(Role::Primary).expect("fits"), &[0; 4_096])
        }),
        (geometry(), slices()).prop_map(|(geometry, slices)| solaris_disk(geometry, slices).1),
        vec(any::<u8>(), 0..3_000),
    ];
    let changes = vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (encoded, changes, any::<Option<prop::sample::Index>>()).prop_map(
        |(mut image, changes, cut)| {
            if let Some(cut) = cut {
                image.truncate(cut.index(image.len() + 1));
            }
            for (place, value) in changes {
                // The first sectors are where most of a label is.
                let end = if value % 3 == 0 {
                    image.len()
                } else {
                    image.len().min(1_536)
                };
                if end > 0 {
                    image[place.index(end)] = value;
                }
            }
            image
        },
    )
}

fn solaris_disk(geometry: Geometry, slices: [Slice; 16]) -> (X86Vtoc, Vec<u8>) {
    let mut mbr = Mbr::new(512, 64).expect("a sector size");
    mbr.first.entries[2] = MbrEntry {
        kind: 0xbf,
        first: 7,
        count: 50,
        ..MbrEntry::default()
    };
    let mut vtoc = X86Vtoc::new(512, 3, 7, 50, geometry).expect("fits");
    vtoc.slices = slices;
    let image = applied(&mbr.encode().expect("fits"), &[0; 64 * 512]);
    let image = applied(&vtoc.encode(Role::Primary).expect("fits"), &image);
    (vtoc, image)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_gpt_that_was_written_is_read(gpt in gpt()) {
        let image = applied(&gpt.encode_with_mbr(Role::Primary).expect("fits"), &vec![0; 200 * gpt.sector_bytes as usize]);
        let label = read_back(&image, gpt.sector_bytes);
        prop_assert_eq!(label.detail, Some(Detail::Gpt(Box::new(gpt))));
    }

    #[test]
    fn an_mbr_that_was_written_is_read(mbr in mbr()) {
        let image = applied(&mbr.encode().expect("fits"), &vec![0; 100 * mbr.sector_bytes as usize]);
        let label = read_back(&image, mbr.sector_bytes);
        prop_assert_eq!(label.detail, Some(Detail::Mbr(Box::new(mbr), vec![])));
    }

    #[test]
    fn a_sparc_label_that_was_written_is_read(geometry in geometry(), slices in slices(), volume in any::<[u8; 8]>()) {
        let mut vtoc = SparcVtoc::new(512, 1 << 20, geometry).expect("fits");
        (vtoc.slices, vtoc.volume, vtoc.disk_lbas) = (slices, volume, 8);
        let label = read_back(&applied(&vtoc.encode(Role::Primary).expect("fits"), &[0; 4_096]), 512);
        prop_assert_eq!(label.detail, Some(Detail::SparcVtoc(Box::new(vtoc))));
    }

    #[test]
    fn an_x86_label_that_was_written_is_read(geometry in geometry(), slices in slices()) {
        let (vtoc, image) = solaris_disk(geometry, slices);
        let Some(Detail::Mbr(_, vtocs)) = read_back(&image, 512).detail else { panic!("no MBR") };
        prop_assert_eq!(vtocs, [vtoc]);
    }

    /// Any bytes at all where no field is, in either of Solaris's labels.
    #[test]
    fn bytes_without_a_name_are_kept(noise in vec(any::<u8>(), 512), tags in any::<bool>(), slices in slices()) {
        let mut sector = noise.clone();
        if tags {
            sector[128..132].copy_from_slice(&[0, 0, 0, 1]);
            sector[140..142].copy_from_slice(&[0, 8]);
            sector[188..192].copy_from_slice(&[0x60, 0x0d, 0xde, 0xee]);
        }
        sector[508..510].copy_from_slice(&[0xda, 0xbe]);
        sector[439] |= 1;
        sector[437] |= 1;
        seal(&mut sector);
        let label = read_back(&sector, 512);
        let Some(Detail::SparcVtoc(vtoc)) = &label.detail else { panic!("found {:?}", label.kind) };
        assert_same_bytes(&vtoc.encode(Role::Primary).expect("fits"), &sector);

        let (_, mut image) = solaris_disk(Geometry::default(), slices);
        let label_at = 8 * 512;
        for range in [0..12, 32..72, 264..328, 466..468, 476..508] {
            image[label_at..][range.clone()].copy_from_slice(&noise[range]);
        }
        seal(&mut image[label_at..label_at + 512]);
        let Some(Detail::Mbr(_, vtocs)) = read_back(&image, 512).detail else { panic!("no MBR") };
        assert_same_bytes(&vtocs[0].encode(Role::Primary).expect("fits"), &image);
    }

    /// For any bytes: there is an answer, partitions have the extents that the bytes state, and a label that can be
    /// written is read again as the same one.
    #[test]
    fn any_bytes_have_an_answer(image in images(), sector_bytes in proptest::option::of(sector_bytes())) {
        let Some(label) = read(&image, sector_bytes).expect("memory can be read") else { return Ok(()) };
        assert_lies_as_the_bytes_say(&label, &image);
        for problem in &label.problems {
            prop_assert!(!problem.to_string().is_empty());
        }
        let in_use = label.in_use().unwrap_or(Role::Primary);
        let (steps, is_gpt) = match &label.detail {
            Some(Detail::Gpt(gpt)) => (gpt.encode(in_use), true),
            Some(Detail::Mbr(mbr, _)) => (mbr.encode(), false),
            Some(Detail::SparcVtoc(vtoc)) => (vtoc.encode(in_use), false),
            None => return Ok(()),
        };
        let Ok(steps) = steps else { return Ok(()) };
        let again = applied(&steps, &image);
        let read_again = read(&again, sector_bytes).expect("memory can be read").expect("the same label");
        prop_assert_eq!(read_again.detail, label.detail);
        prop_assert_eq!(&read_again.partitions, &label.partitions);
        if is_gpt {
            prop_assert!(read_again.copies.iter().filter(|copy| copy.fault.is_none()).count() >= 2);
        }
    }
}

/// Writes the steps up to the flush of number `group`, and after it the sectors that `mask` says: any of them may have
/// reached the medium when power fails.
fn crash(steps: &[WriteStep], group: usize, mask: &[bool], disk: &[u8]) -> Vec<u8> {
    let mut image = disk.to_vec();
    let mut mask = mask.iter().cycle();
    for (index, group_of) in steps.split(|step| *step == WriteStep::Flush).enumerate() {
        for step in group_of {
            let WriteStep::Write { at, bytes } = step else {
                continue;
            };
            for (sector, bytes) in (at.0 as usize..).step_by(512).zip(bytes.chunks(512)) {
                if index < group || (index == group && *mask.next().expect("endless")) {
                    image[sector..sector + bytes.len()].copy_from_slice(bytes);
                }
            }
        }
    }
    image
}

proptest! {
    /// A label with both copies, or one of them broken, is changed, and power fails.
    #[test]
    fn a_crash_leaves_the_old_gpt_or_the_new(
        gpt in gpt(), change in entry(128), broken in 0..3usize, group in 0..2usize, mask in vec(any::<bool>(), 64)
    ) {
        let mut gpt = gpt;
        gpt.backup.header_lba = gpt.disk_lbas - 1;
        gpt.backup.array_lba = gpt.backup.header_lba - gpt.array_lbas();
        let mut disk = applied(
            &gpt.encode_with_mbr(Role::Primary).expect("fits"),
            &vec![0; 200 * gpt.sector_bytes as usize],
        );
        let break_at = [None, Some(1), Some(gpt.backup.header_lba as usize)][broken];
        if let Some(lba) = break_at {
            disk[lba * gpt.sector_bytes as usize + 24] ^= 1;
        }
        let old = read_back(&disk, gpt.sector_bytes);
        let mut changed = gpt.clone();
        if let Some(first) = changed.entries.first_mut() {
            *first = Entry { rest: first.rest.clone(), ..change };
        }
        let steps = changed.encode(old.in_use().expect("a good copy")).expect("fits");
        let new = read_back(&applied(&steps, &disk), gpt.sector_bytes);
        let crashed = read_back(&crash(&steps, group, &mask, &disk), gpt.sector_bytes);
        prop_assert!(crashed.detail.is_some(), "{:?}", crashed.problems);
        prop_assert!(crashed.partitions == old.partitions || crashed.partitions == new.partitions);
    }

    #[test]
    fn a_crash_leaves_the_old_sparc_label_or_the_new(
        slices in (slices(), slices()), broken in any::<bool>(), group in 0..2usize, mask in vec(any::<bool>(), 64)
    ) {
        let geometry = Geometry { cylinders_physical: 3, cylinders: 2, cylinders_alternate: 1, heads: 2, sectors: 10 };
        let mut vtoc = SparcVtoc::new(512, 60, geometry).expect("fits");
        (vtoc.slices, vtoc.backup_lbas) = (slices.0, geometry.backup_lbas());
        let mut disk = applied(&vtoc.encode(Role::Primary).expect("fits"), &[0; 60 * 512]);
        disk[300] ^= u8::from(broken);
        let old = read_back(&disk, 512);
        vtoc.slices = slices.1;
        let steps = vtoc.encode(old.in_use().expect("a good copy")).expect("fits");
        let new = read_back(&applied(&steps, &disk), 512);
        let crashed = read_back(&crash(&steps, group, &mask, &disk), 512);
        prop_assert!(crashed.partitions == old.partitions || crashed.partitions == new.partitions);
    }
}

fn seal(sector: &mut [u8]) {
    sector[510..512].fill(0);
    let sum = sector[..512]
        .chunks(2)
        .fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]);
    sector[510..512].copy_from_slice(&sum);
}
