//! `iostat -x` of Linux (sysstat): I/O a second of each device. Three generations of headings, told apart by their names.
//!
//! The first report of several counts from the boot of the host, and is left out.

use std::collections::BTreeMap;

use super::super::solaris::text::{anything, count, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{self, on_linux};
use crate::builder::Builder;
use crate::linux::{Family, kind_of};
use crate::node::keys;

pub(super) static FORMAT: Format = Format { tool: "iostat -x", is_verified: true, sniff, read };

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
    Some(Columns { reads: at("r/s")?, writes: at("w/s")?, width: words.len() })
}

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| heading(line).is_some())
}

/// Reads and writes a second of a device, in the first report and summed up in the others.
#[derive(Default)]
struct Rates {
    line: usize,
    first: [f64; 2],
    others: [f64; 2],
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
    let mut taken = Taken::default();
    let (mut columns, mut reports) = (None, 0u64);
    let mut devices: BTreeMap<&str, Rates> = BTreeMap::new();
    for (line, text) in lines(input) {
        if let Some(found) = heading(text) {
            (columns, reports) = (Some(found), reports + 1);
            continue;
        }
        if text.starts_with("avg-cpu:") || text.starts_with("Linux ") {
            // Until the next heading come rows of processors.
            columns = None;
        }
        let Some(columns) = columns else { continue };
        let row = row(text, columns);
        count(&mut taken, row.is_some());
        if let Some((device, seen)) = row {
            let rates = devices.entry(device).or_insert(Rates { line, ..Rates::default() });
            let sums = if reports == 1 { &mut rates.first } else { &mut rates.others };
            sums.iter_mut().zip(seen).for_each(|(sum, seen)| *sum += seen);
        }
    }
    for (device, rates) in devices {
        let mean = rates.others.map(|sum| sum / (reports - 1).max(1) as f64);
        let rate = if reports > 1 { mean } else { rates.first };
        let source = input.source(FORMAT.tool, rates.line);
        on_linux(builder, &source);
        builder.linux.rates.push((device.to_owned(), rate, source));
    }
    anything(taken, input, FORMAT.tool, "rates below \"Device … r/s … w/s …\"")
}

/// Notes the rates: `dm-0` is known by another name once lsblk was read.
pub(super) fn tell_all(builder: &mut Builder) {
    for (device, [reads, writes], source) in std::mem::take(&mut builder.linux.rates) {
        let node = builder.node(&device);
        let family = Family::of(&device);
        let is_disk = names::disk_of(&device).is_none() && !family.is_stacked() && family != Family::Loop;
        if is_disk && family != Family::Removable {
            builder.kind(node, kind_of(family, ""), &source);
        }
        builder.fact(node, keys::IOS_PER_SECOND, format!("{:.2}", reads + writes), &source);
        builder.fact(node, keys::WRITES_PER_SECOND, format!("{writes:.2}"), &source);
    }
}
