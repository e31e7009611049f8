//! Targets that keep more than one copy, or more than one way: `raid`, `mirror`, `multipath`.

use plumb_geometry::{ParityLayout, Sectors};

use super::words::Words;
use super::{At, DmTarget, RaidShape, TableError};

/// Parameters of `raid` without a value; a value follows every other one (dm-raid.rst).
const ALONE: [&str; 2] = ["sync", "nosync"];

/// `LEVEL COUNT PARAMETER… COUNT METADATA DATA METADATA DATA …`, the first parameter being the chunk.
pub(super) fn raid(words: &mut Words<'_>) -> Result<DmTarget, TableError> {
    let level = words.word("a level")?;
    let mut shape = shape(level).ok_or_else(|| words.found(level, "a level of RAID"))?;
    let mut left = words.count("the number of parameters")?;
    let (mut chunk, mut data_offset) = (Sectors(0), Sectors(0));
    if left > 0 {
        chunk = words.sectors("the chunk")?;
        left -= 1;
    }
    while left > 0 {
        let name = words.word("a parameter")?;
        left -= 1;
        if ALONE.contains(&name) || left == 0 {
            continue;
        }
        left -= 1;
        match name {
            "data_offset" => data_offset = words.sectors("the data offset")?,
            "raid10_copies" => {
                shape.copies = words.number("the number of copies")?.clamp(1, 64) as u32
            }
            _ => words.skip(1, "a parameter")?,
        }
    }
    let count = words.count("the number of members")?;
    let mut members = Vec::new();
    for _ in 0..count {
        words.word("a metadata device")?;
        let data = words.word("a member")?;
        members.push((data != "-").then(|| data.to_owned()));
    }
    Ok(DmTarget::Raid {
        level: level.to_owned(),
        shape,
        chunk,
        data_offset,
        members,
    })
}

/// The placement of a level, by the names of dm-raid. RAID 6 has other layouts there (`zr`, `nr`, `nc`, and forms for
/// the time of a conversion), and none of the four applies to them.
pub(crate) fn shape(level: &str) -> Option<RaidShape> {
    let layout = match level.split_once('_').map(|(_, layout)| layout) {
        Some("la") => Some(ParityLayout::LeftAsymmetric),
        Some("ra") => Some(ParityLayout::RightAsymmetric),
        Some("ls") => Some(ParityLayout::LeftSymmetric),
        Some("rs") => Some(ParityLayout::RightSymmetric),
        _ => None,
    };
    let (parity, copies) = match level.split('_').next()? {
        "raid0" => (0, 1),
        // Copies of everything, without chunks: the level decides when it is placed.
        "raid1" => (0, 1),
        "raid10" => (0, 2),
        "raid4" | "raid5" => (1, 1),
        "raid6" => (2, 1),
        _ => return None,
    };
    Some(RaidShape {
        parity,
        copies,
        layout,
    })
}

/// `LOG COUNT ARGUMENT… COUNT DEVICE START …`.
pub(super) fn mirror(words: &mut Words<'_>) -> Result<DmTarget, TableError> {
    words.word("the kind of log")?;
    let arguments = words.count("the number of arguments of the log")?;
    words.skip(arguments, "an argument of the log")?;
    let count = words.count("the number of copies")?;
    let members = (0..count)
        .map(|_| words.at())
        .collect::<Result<Vec<At>, TableError>>()?;
    Ok(DmTarget::Mirror { members })
}

/// `COUNT FEATURE… COUNT HANDLER… GROUPS FIRST [SELECTOR COUNT ARGUMENT… PATHS ARGUMENTS [DEVICE ARGUMENT…]…]…`.
pub(super) fn multipath(words: &mut Words<'_>) -> Result<DmTarget, TableError> {
    let features = words.count("the number of features")?;
    words.skip(features, "a feature")?;
    let handler = words.count("the number of arguments of the handler")?;
    words.skip(handler, "an argument of the handler")?;
    let groups = words.count("the number of groups")?;
    words.word("the first group")?;
    let mut paths = Vec::new();
    for _ in 0..groups {
        words.word("a path selector")?;
        let arguments = words.count("the number of arguments of the selector")?;
        words.skip(arguments, "an argument of the selector")?;
        let count = words.count("the number of paths")?;
        let arguments = words.count("the number of arguments of a path")?;
        for _ in 0..count {
            paths.push(words.device("a path")?);
            words.skip(arguments, "an argument of a path")?;
        }
    }
    Ok(DmTarget::Multipath { paths })
}
