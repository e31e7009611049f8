//! `prtvtoc`: the slices of a disk in sectors, of VTOC and EFI labels. A file may contain several.
//!
//! With `-h` there is nothing but the table: then the disk is the one in the file's name, and sectors are taken for
//! 512 bytes. A VTOC of x86 counts from the start of the fdisk partition that it is in.

use plumb_geometry::{Bytes, SECTOR, plural};

use super::super::text::{anything, beginning, count, lines};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::label::{PrintedSlice, RESERVED, SolarisLabel};
use super::names::{NAME_MAX, disk_in, disk_of};
use crate::builder::{Builder, device_name};
use crate::node::Problem;
use crate::problem_ids::ProblemId;

pub(super) static FORMAT: Format = Format {
    tool: "prtvtoc",
    is_verified: true,
    sniff,
    read,
};

fn sniff(input: &Input<'_>) -> Sniff {
    let mut rows = 0;
    for line in beginning(input)
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        if title(line).is_some() {
            return Sniff::Yes;
        }
        match (line.starts_with('*'), row(line, 0)) {
            (true, _) => {}
            (false, Some(_)) => rows += 1,
            (false, None) => return Sniff::No,
        }
    }
    if rows > 0 { Sniff::Maybe } else { Sniff::No }
}

/// The device of the line that a label begins with.
fn title(line: &str) -> Option<&str> {
    let line = line
        .strip_prefix('*')?
        .trim()
        .strip_suffix("partition map")?;
    line.split_whitespace()
        .next()
        .filter(|device| device.len() <= NAME_MAX)
}

/// A label while its lines are read.
#[derive(Default)]
struct Draft {
    disk: Option<String>,
    line: usize,
    sector: Option<u64>,
    cylinder_sectors: Option<u64>,
    cylinders: Option<u64>,
    accessible_cylinders: Option<u64>,
    sectors: Option<u64>,
    slices: Vec<PrintedSlice>,
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut draft = Draft::default();
    for (line, text) in lines(input) {
        if let Some(device) = title(text) {
            finish(std::mem::take(&mut draft), input, builder);
            let device = device_name(device);
            draft.disk = Some(disk_of(&device).unwrap_or(&device).to_owned());
            draft.line = line;
            taken.understood += 1;
        } else if let Some(comment) = text.strip_prefix('*') {
            dimension(comment, &mut draft);
        } else {
            let row = row(text, line);
            count(&mut taken, row.is_some());
            if let Some((slice, last)) = row {
                check_last(&slice, last, &draft, input, builder);
                draft.slices.push(slice);
            }
        }
    }
    finish(draft, input, builder);
    anything(
        taken,
        input,
        FORMAT.tool,
        "a label as in \"* /dev/rdsk/c0t0d0s2 partition map\"",
    )
}

/// `512 bytes/sector`.
fn dimension(comment: &str, draft: &mut Draft) {
    let Some((number, of)) = comment.trim().split_once(char::is_whitespace) else {
        return;
    };
    let Ok(number) = number.parse() else { return };
    let known = match of.trim() {
        "bytes/sector" => &mut draft.sector,
        "sectors/cylinder" => &mut draft.cylinder_sectors,
        "cylinders" => &mut draft.cylinders,
        "accessible cylinders" => &mut draft.accessible_cylinders,
        "sectors" => &mut draft.sectors,
        _ => return,
    };
    *known = Some(number);
}

/// A line of the table, and the last sector that it names.
fn row(text: &str, line: usize) -> Option<(PrintedSlice, u64)> {
    let mut words = text.split_whitespace();
    let mut number = || words.next()?.parse::<u64>().ok();
    let (slice, tag) = (number()?, number()?);
    let flags = words
        .next()
        .filter(|flags| flags.len() == 2 && flags.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let mut number = || words.next()?.parse::<u64>().ok();
    let (first, sectors, last) = (number()?, number()?, number()?);
    let slice = PrintedSlice {
        number: u32::try_from(slice).ok()?,
        tag: Some(u32::try_from(tag).ok()?),
        flags: flags.to_owned(),
        first,
        count: sectors,
        mount: words.next().map(str::to_owned),
        line,
    };
    Some((slice, last))
}

/// A label's last sector must be the one that start and length give.
fn check_last(
    slice: &PrintedSlice,
    last: u64,
    draft: &Draft,
    input: &Input<'_>,
    builder: &mut Builder,
) {
    if slice.first.checked_add(slice.count) == last.checked_add(1) {
        return;
    }
    let disk = draft.disk.as_deref().unwrap_or(input.name);
    builder.problem(Problem {
        node: None,
        id: ProblemId::BrokenLabel,
        text: format!(
            "slice {} of {disk} has {} from {} on, but is said to end at {last}",
            slice.number,
            plural(slice.count, "sector"),
            slice.first
        ),
        source: input.source(FORMAT.tool, slice.line),
    });
}

fn finish(draft: Draft, input: &Input<'_>, builder: &mut Builder) {
    if draft.disk.is_none() && draft.slices.is_empty() {
        return;
    }
    let disk = draft.disk.unwrap_or_else(|| disk_of_file(input, builder));
    if draft.sector.is_none() {
        builder.note(format!(
            "{}: sectors of {disk} are taken for {SECTOR} bytes",
            input.name
        ));
    }
    let has_cylinders = draft.cylinders.is_some() || draft.cylinder_sectors.is_some();
    let has_reserved = draft
        .slices
        .iter()
        .any(|slice| slice.number == 8 && slice.tag == Some(RESERVED));
    let is_efi = has_reserved || draft.sectors.is_some() && !has_cylinders;
    let label = SolarisLabel {
        disk,
        is_efi,
        sector: Bytes(draft.sector.filter(|sector| *sector > 0).unwrap_or(SECTOR)),
        cylinder_sectors: draft.cylinder_sectors,
        sectors: draft.sectors.filter(|_| is_efi),
        end: draft
            .accessible_cylinders
            .and_then(|count| count.checked_mul(draft.cylinder_sectors?)),
        slices: draft.slices,
    };
    label.tell(|line| input.source(FORMAT.tool, line), draft.line, builder);
}

/// The disk in the file's name, or the file's name itself if it has none.
pub(super) fn disk_of_file(input: &Input<'_>, builder: &mut Builder) -> String {
    let file = input.name.rsplit('/').next().unwrap_or(input.name);
    if let Some(disk) = disk_in(file) {
        return disk.to_owned();
    }
    let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
    builder.note(format!(
        "{}: it does not name its disk; the disk is called {stem}",
        input.name
    ));
    stem.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::join;

    fn read_text(name: &str, text: &str) -> crate::Stack {
        let mut builder = Builder::default();
        read(&Input { name, text }, &mut builder).expect("reads");
        join(&mut builder);
        builder.finish()
    }

    fn start(stack: &crate::Stack, name: &str) -> Option<u64> {
        let node = stack.node(stack.find(name)?);
        let crate::Placing::Parts { parts } = &node.placing else {
            return None;
        };
        Some(parts[0].start.0)
    }

    #[test]
    fn without_headers_the_file_names_the_disk() {
        let stack = read_text(
            "out/c1t8d0s2.vtoc",
            "2 5 01 0 35368272 35368271\n3 15 01 4712 4712 9423 /x\n",
        );
        assert_eq!(start(&stack, "c1t8d0s3"), Some(4712 * 512));
        assert_eq!(
            stack
                .node(stack.find("c1t8d0s3").expect("it"))
                .word(crate::node::keys::MOUNT),
            Some("/x")
        );
    }

    #[test]
    fn several_labels_and_large_sectors() {
        let text = "* /dev/rdsk/c1t0d0s2 (volume \"root\") partition map\n*  4096 bytes/sector\n* 100000 sectors\n\
                    0 4 00 6 1000 1005\n* /dev/rdsk/c1t1d0 partition map\n* 512 bytes/sector\n0 4 00 34 8 40\n";
        let stack = read_text("all", text);
        assert_eq!(start(&stack, "c1t0d0s0"), Some(6 * 4096));
        assert_eq!(start(&stack, "c1t1d0s0"), Some(34 * 512));
        // 34 + 8 − 1 is 41.
        let problems: Vec<_> = stack.problems().iter().map(|problem| problem.id).collect();
        assert_eq!(problems, [ProblemId::BrokenLabel]);
    }

    /// A VTOC counts sectors of whole cylinders: disks have more.
    #[test]
    fn a_vtoc_does_not_state_the_disk_size() {
        let head = "* /dev/rdsk/c1t0d0s2 partition map\n* 512 bytes/sector\n";
        let size = |dimensions: &str| {
            let stack = read_text("x", &format!("{head}{dimensions}0 4 00 0 100 99\n"));
            stack.node(stack.find("c1t0d0").expect("it")).size
        };
        let sectors = "* 1200 sectors\n* 1000 accessible sectors\n";
        let cylinders = "* 100 sectors/cylinder\n* 12 cylinders\n";
        assert_eq!(size(&[cylinders, sectors].concat()), None);
        assert_eq!(size(sectors), Some(Bytes(1200 * 512)));
    }

    #[test]
    fn a_vtoc_of_x86_counts_from_its_fdisk_partition() {
        let stack = read_text("c0d0s2", "0 2 00 16065 80325 96389\n8 1 01 0 16065 16064\n");
        let slice = stack.find("c0d0s0").expect("it");
        assert!(
            stack
                .landings(slice)
                .lost
                .iter()
                .any(|(_, why)| matches!(why, crate::Obstacle::FdiskStart { .. }))
        );
    }
}
