//! Writes small disks with labels of every kind, for the fuzzer to begin with: `label_seeds FOLDER`.
//!
//! They are as small as their labels allow, so that a change of one byte is likely to change something.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use plumb_label::gpt::{Entry, types};
use plumb_label::mbr::{Ebr, MbrEntry, MbrSector};
use plumb_label::vtoc::{Geometry, Slice};
use plumb_label::{Gpt, Guid, Mbr, Role, SparcVtoc, WriteStep, X86Vtoc, apply};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let folder = env::args_os()
        .nth(1)
        .ok_or("found no folder, expected one to write to")?;
    write(Path::new(&folder))
}

/// Writes all of them below a folder.
pub fn write(folder: &Path) -> Result<()> {
    let linux = "0fc63daf-8483-4772-8e79-3d69d8477de4".parse()?;
    let small = gpt(512, 12, linux)?;
    save(
        folder,
        "label_gpt/small",
        &image(&small.encode_with_mbr(Role::Primary)?, 12 * 512)?,
    )?;
    save(
        folder,
        "label_gpt/grown",
        &image(&small.encode_with_mbr(Role::Primary)?, 20 * 512)?,
    )?;
    save(
        folder,
        "label_gpt/cut",
        &image(&small.encode_with_mbr(Role::Primary)?, 12 * 512)?[..10 * 512],
    )?;
    let mut broken = image(&small.encode_with_mbr(Role::Primary)?, 12 * 512)?;
    broken[512..1024].fill(0);
    save(folder, "label_gpt/broken-primary", &broken)?;
    let large = gpt(4096, 7, linux)?;
    save(
        folder,
        "label_gpt/sectors-of-4096",
        &image(&large.encode_with_mbr(Role::Primary)?, 7 * 4096)?,
    )?;
    let solaris = gpt(512, 12, types::SOLARIS_RESERVED)?;
    save(
        folder,
        "label_gpt/solaris",
        &image(&solaris.encode_with_mbr(Role::Primary)?, 12 * 512)?,
    )?;
    let kinds = [
        ("primary", 512, 3, 0),
        ("logical", 512, 8, 3),
        ("sectors-of-4096", 4096, 4, 1),
    ];
    for (name, sector_bytes, disk_lbas, links) in kinds {
        let size_bytes = disk_lbas as usize * sector_bytes as usize;
        let steps = mbr(sector_bytes, disk_lbas, links)?.encode()?;
        save(
            folder,
            &format!("label_mbr/{name}"),
            &image(&steps, size_bytes)?,
        )?;
    }
    solaris_labels(folder)
}

/// Room for as many entries as a sector holds.
fn gpt(sector_bytes: u32, disk_lbas: u64, kind: Guid) -> Result<Gpt> {
    let mut gpt = Gpt::new(
        sector_bytes,
        100,
        Guid::from_u128(0x0f5c3a7e_91d2_4c1b_8e55_6a7b8c9d0e1f),
    )?;
    gpt.entries
        .truncate((sector_bytes / gpt.entry_bytes) as usize);
    (gpt.disk_lbas, gpt.first_usable_lba) = (disk_lbas, 3);
    gpt.move_backup_to_end()?;
    let uuid = Guid::from_u128(1);
    gpt.entries[0] = Entry {
        kind,
        uuid,
        first_lba: 3,
        last_lba: 4,
        ..gpt.entries[0].clone()
    };
    Ok(gpt)
}

/// An extended partition over all of the disk but its first blocks, with a chain of `links`.
fn mbr(sector_bytes: u32, disk_lbas: u32, links: u32) -> Result<Mbr> {
    let mut mbr = Mbr::new(sector_bytes, disk_lbas.into())?;
    let entry = |kind, first, count| MbrEntry {
        kind,
        first,
        count,
        ..MbrEntry::default()
    };
    mbr.first.disk_signature = 0xdeca_fbad;
    mbr.first.entries[0] = MbrEntry {
        status: 0x80,
        ..entry(0x83, 1, 1)
    };
    if links > 0 {
        mbr.first.entries[1] = entry(0x0f, 2, disk_lbas - 2);
    }
    for link in 0..links {
        let mut sector = MbrSector::empty(sector_bytes);
        sector.entries[0] = entry(0x83, 1, 1);
        if link + 1 < links {
            sector.entries[1] = entry(0x05, 2 * (link + 1), 2);
        }
        mbr.ebrs.push(Ebr {
            lba: u64::from(2 + 2 * link),
            extended: 1,
            sector,
        });
    }
    Ok(mbr)
}

fn solaris_labels(folder: &Path) -> Result<()> {
    let geometry = Geometry {
        cylinders_physical: 2,
        cylinders: 1,
        cylinders_alternate: 1,
        heads: 1,
        sectors: 12,
    };
    let mut sparc = SparcVtoc::new(512, 24, geometry)?;
    sparc.slices[0] = Slice {
        tag: 2,
        flag: 0,
        start: 0,
        count: 12,
    };
    save(
        folder,
        "label_vtoc/sparc",
        &image(&sparc.encode(Role::Primary)?, 24 * 512)?,
    )?;
    sparc.backup_lbas = geometry.backup_lbas();
    save(
        folder,
        "label_vtoc/sparc-with-backups",
        &image(&sparc.encode(Role::Primary)?, 24 * 512)?,
    )?;

    let mut first = Mbr::new(512, 12)?;
    first.first.entries[0] = MbrEntry {
        kind: 0xbf,
        first: 1,
        count: 11,
        ..MbrEntry::default()
    };
    let mut x86 = X86Vtoc::new(512, 1, 1, 11, geometry)?;
    x86.slices[0] = Slice {
        tag: 2,
        flag: 0,
        start: 3,
        count: 8,
    };
    let mut steps = first.encode()?;
    steps.extend(x86.encode(Role::Primary)?);
    save(folder, "label_vtoc/x86", &image(&steps, 12 * 512)?)
}

fn image(steps: &[WriteStep], size_bytes: usize) -> Result<Vec<u8>> {
    let mut image = vec![0; size_bytes];
    apply(steps, &mut image)?;
    Ok(image)
}

fn save(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    Ok(fs::write(path, bytes)?)
}
