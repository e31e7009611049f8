//! Tables of sizes, of random I/O by size, and of processes.

use plumb_diagnose::Analysis;
use plumb_diagnose::analysis::OpSummary;
use plumb_profile::Profile;

use super::markup::Markup;
use super::page::{NONE, share_of, table};
use crate::format;
use crate::words;

/// Draws them.
pub fn draw(m: &mut Markup, profile: &Profile, analysis: &Analysis) {
    m.class("div", "pair", |m| {
        m.el("div", &[], |m| sizes(m, analysis));
        m.el("div", &[], |m| {
            lengths(m, analysis);
            random(m, profile, analysis);
        });
    });
    slowest(m, analysis);
    processes(m, analysis);
}

fn sizes(m: &mut Markup, analysis: &Analysis) {
    let moved: Vec<&OpSummary> = analysis
        .ops
        .iter()
        .filter(|op| op.sizes.iter().any(|size| size.len_max_bytes > 1))
        .collect();
    let mut classes: Vec<u64> = moved
        .iter()
        .flat_map(|op| op.sizes.iter().map(|size| size.len_max_bytes))
        .filter(|size| *size > 1)
        .collect();
    classes.sort_unstable();
    classes.dedup();
    let names: Vec<String> = moved
        .iter()
        .flat_map(|op| [op.op.to_owned(), format!("share of {}", op.op)])
        .collect();
    let mut columns = vec!["length up to"];
    columns.extend(names.iter().map(String::as_str));
    let of = |op: &OpSummary, class: u64| {
        op.sizes
            .iter()
            .find(|size| size.len_max_bytes == class)
            .map_or(0, |size| size.ios)
    };
    let rows = classes.iter().map(|class| {
        let cells = moved.iter().flat_map(|op| match of(op, *class) {
            0 => [NONE.to_owned(), NONE.to_owned()],
            ios => [format::count(ios), share_of(ios, op.ios)],
        });
        std::iter::once(format::bytes(*class))
            .chain(cells)
            .collect()
    });
    table(
        m,
        "Sizes, by power of two",
        &columns,
        &rows.collect::<Vec<_>>(),
    );
}

fn lengths(m: &mut Markup, analysis: &Analysis) {
    let whole = analysis.device().map_or(0, |device| device.inference.ios);
    let rows = analysis.lengths.iter().map(|length| {
        let words = match length.is_rounded {
            true => format!("up to {}, rounded", format::bytes(length.len_bytes)),
            false => exact(length.len_bytes),
        };
        vec![
            words,
            format::count(length.ios),
            share_of(length.ios, whole),
        ]
    });
    table(
        m,
        "Commonest lengths",
        &["<length", "I/O", "of reads and writes"],
        &rows.collect::<Vec<_>>(),
    );
}

/// A length to the byte.
fn exact(length: u64) -> String {
    plumb_geometry::Bytes(length).to_string()
}

fn random(m: &mut Markup, profile: &Profile, analysis: &Analysis) {
    if let Some(reason) = analysis.streams_unknown(profile) {
        let why = crate::words::reason(&reason);
        m.leaf(
            "p",
            &[("class", "dim")],
            &format!("Random by request size: unknown: {why}."),
        );
        return;
    }
    let rows = analysis
        .random_by_size
        .iter()
        .filter(|row| row.ios > 0)
        .map(|row| {
            let size = match row.len_bytes_min {
                0 => "all".to_owned(),
                least => format!("from {}", format::bytes(least)),
            };
            vec![
                size,
                format::count(row.ios),
                format::count(row.heads),
                share_of(row.heads, row.ios),
            ]
        });
    let columns = ["<length", "I/O", "random I/O", "share"];
    table(
        m,
        "Random by request size",
        &columns,
        &rows.collect::<Vec<_>>(),
    );
}

/// The slowest I/O of a watch, one by one.
fn slowest(m: &mut Markup, analysis: &Analysis) {
    let Some(answers) = analysis
        .answers
        .as_ref()
        .filter(|answers| !answers.slowest.is_empty())
    else {
        return;
    };
    let rows = answers.slowest.iter().map(|io| {
        let sender = io.sender.as_ref();
        vec![
            format::ns(io.ns),
            io.op.word().to_owned(),
            format::count(io.start_bytes / 512),
            format::bytes(io.len_bytes),
            sender.map_or_else(String::new, words::sender),
        ]
    });
    table(
        m,
        "Slowest I/O",
        &["time", "<operation", "sector", "length", "<process"],
        &rows.collect::<Vec<_>>(),
    );
}

fn processes(m: &mut Markup, analysis: &Analysis) {
    let rows = analysis.processes.iter().map(|process| {
        let name = match process.comm.as_str() {
            "" => "all others",
            name => name,
        };
        vec![
            name.to_owned(),
            format::count(process.ios),
            share_of(process.ios, analysis.ios),
            format::bytes(process.bytes),
        ]
    });
    let caption = match analysis.processes_shortened {
        true => "Processes with the most I/O (names shortened: upper bounds)",
        false => "Processes with the most I/O",
    };
    table(
        m,
        caption,
        &["<process", "I/O", "of all", "bytes"],
        &rows.collect::<Vec<_>>(),
    );
    if analysis.processes.is_empty() && analysis.ios > 0 {
        m.leaf(
            "p",
            &[("class", "dim")],
            "Processes: not known, the source does not name them.",
        );
    }
}
