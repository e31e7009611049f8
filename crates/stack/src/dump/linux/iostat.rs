//! `iostat -x` of Linux (sysstat): I/O a second of each device. Three generations of headings, told apart by their names.

use super::super::iostat::{self, IostatLine, Rates};
use super::super::solaris::text::{anything, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{self, on_linux};
use crate::builder::Builder;
use crate::linux::{Family, kind_of};
use crate::node::keys;

pub(super) static FORMAT: Format = Format {
    tool: "iostat -x",
    is_verified: true,
    sniff,
    read,
};

/// Where in a row the rates of reads and writes are.
#[derive(Clone, Copy)]
struct Columns {
    reads: usize,
    writes: usize,
    width: usize,
}

/// Solaris writes `device` small.
fn heading(line: &str) -> Option<Columns> {
    let words: Vec<&str> = line.split_whitespace().take(40).collect();
    let at = |name: &str| words.iter().position(|word| *word == name);
    matches!(words.first(), Some(&("Device" | "Device:"))).then_some(())?;
    at("%util")?;
    Some(Columns {
        reads: at("r/s")?,
        writes: at("w/s")?,
        width: words.len(),
    })
}

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| heading(line).is_some())
}

fn row(line: &str, columns: Columns) -> Option<(&str, [f64; 2])> {
    let words: Vec<&str> = line.split_whitespace().take(40).collect();
    if words.len() != columns.width {
        return None;
    }
    // Some languages write a comma.
    let rate = |at: usize| {
        let rate = words[at].replace(',', ".").parse::<f64>().ok();
        rate.filter(|rate| rate.is_finite() && *rate >= 0.0)
    };
    Some((words[0], [rate(columns.reads)?, rate(columns.writes)?]))
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let (taken, devices) = iostat::reports(input, kind, row);
    for Rates {
        device,
        line,
        per_second,
    } in devices
    {
        let source = input.source(FORMAT.tool, line);
        on_linux(builder, &source);
        builder
            .linux
            .rates
            .push((device.to_owned(), per_second, source));
    }
    anything(
        taken,
        input,
        FORMAT.tool,
        "rates below \"Device … r/s … w/s …\"",
    )
}

/// Until the next heading come rows of processors.
fn kind(line: &str) -> IostatLine<Columns> {
    match heading(line) {
        Some(columns) => IostatLine::Heading(columns),
        None if line.starts_with("avg-cpu:") || line.starts_with("Linux ") => IostatLine::End,
        None => IostatLine::Row,
    }
}

/// Notes the rates: `dm-0` is known by another name once lsblk was read.
pub(super) fn tell_all(builder: &mut Builder) {
    for (device, [reads, writes], source) in std::mem::take(&mut builder.linux.rates) {
        let node = builder.node(&device);
        let family = Family::from_name(&device);
        let is_disk =
            names::disk_of(&device).is_none() && !family.is_stacked() && family != Family::Loop;
        if is_disk && family != Family::Removable {
            builder.kind(node, kind_of(family, ""), &source);
        }
        builder.fact(
            node,
            keys::IOS_PER_SECOND,
            format!("{:.2}", reads + writes),
            &source,
        );
        builder.fact(
            node,
            keys::WRITES_PER_SECOND,
            format!("{writes:.2}"),
            &source,
        );
    }
}
