//! The effect of another layout on these requests, each answer with its class.

use plumb_diagnose::Analysis;
use plumb_diagnose::analysis::WhatIf;
use plumb_geometry::Bytes;
use plumb_profile::what_if::{Class, Recorded, Striped};

use super::fits;
use super::markup::Markup;
use super::page::{share_of, table};
use crate::format;

/// Draws the answers, if anything was asked.
pub fn draw(m: &mut Markup, analysis: &Analysis) {
    let WhatIf {
        shifted,
        striped,
        recorded,
    } = &analysis.what_if;
    if shifted.is_empty() && striped.is_none() && recorded.is_none() {
        return;
    }
    m.leaf("h3", &[], "What if");
    let mut rows = Vec::new();
    let mut classes = Vec::new();
    let mut refused = Vec::new();
    for shift in shifted {
        let what = format!(
            "all starts moved by {}{}",
            if shift.by_bytes < 0 { "−" } else { "+" },
            Bytes(shift.by_bytes.unsigned_abs())
        );
        match &shift.tally {
            Ok(tally) => rows.push(fits::row(
                [&what, &shift.grid.to_string(), "all"],
                tally,
                tally.amplification(&shift.grid),
            )),
            Err(why) => refused.push(format!("{what}, {}: not known: {why}", shift.grid)),
        }
        classes.push((what, shift.class));
    }
    match striped {
        Some(Ok(striped)) => {
            rows.push(fits::row(
                ["stripe", &format!("chunk {}", striped.chunk_bytes), "all"],
                &striped.tally,
                None,
            ));
            classes.push(("stripe".to_owned(), striped.class));
        }
        Some(Err(why)) => refused.push(format!("stripe: not known: {why}")),
        None => {}
    }
    match recorded {
        Some(Ok(recorded)) => {
            rows.extend(record_rows(recorded));
            classes.push(("record".to_owned(), recorded.class));
        }
        Some(Err(why)) => refused.push(format!("record: not known: {why}")),
        None => {}
    }
    let columns = [
        "<layout",
        "<grid",
        "<operation",
        "I/O",
        "start off it",
        "length odd",
        "split",
        "cross a boundary",
        "times the blocks needed",
        "amplification at most",
    ];
    table(m, "", &columns, &rows);
    classes.dedup();
    for (what, class) in classes {
        m.leaf("p", &[("class", "dim")], &class_words(&what, class));
    }
    refused
        .iter()
        .for_each(|words| m.leaf("p", &[], &format!("{words}.")));
    if let Some(Ok(striped)) = striped {
        members(m, striped);
    }
}

fn class_words(what: &str, class: Class) -> String {
    format!("Class of the answer on “{what}”: {}.", class.text())
}

fn record_rows(recorded: &Recorded) -> Vec<Vec<String>> {
    let grid = format!("records of {}", recorded.record_bytes);
    let sides = [("read", &recorded.reads), ("write", &recorded.writes)];
    let rows = sides
        .iter()
        .filter_map(|(op, tally)| Some(fits::row(["record", &grid, op], tally.as_ref()?, None)));
    rows.collect()
}

fn members(m: &mut Markup, striped: &Striped) {
    let mut words = format!(
        "Expected for evenly spread starts, weighted by the lengths seen: {}",
        format::percent_within(striped.expected_split_share)
    );
    if let Some(commonest) = &striped.expected_of_commonest {
        let (length, share) = (commonest.len_bytes, commonest.split);
        let share = share.numerator as f64 / share.denominator.max(1) as f64;
        words.push_str(&format!(
            "; of the commonest length, {length}: {}",
            format::percent(share)
        ));
    }
    m.leaf("p", &[], &format!("{words}."));
    if let Some(why) = &striped.members_unknown {
        m.leaf("p", &[], &format!("Load by member: not known: {why}."));
    }
    let Some(loads) = &striped.members else {
        return;
    };
    let whole: u64 = loads.iter().map(|load| load.ios).sum();
    let rows = loads.iter().enumerate().map(|(member, load)| {
        vec![
            format!("{member}"),
            format::count(load.ios),
            share_of(load.ios, whole),
            format::count_within(load.pieces),
            format::bytes_within(load.bytes),
        ]
    });
    let columns = [
        "<member",
        "I/O that start on it",
        "share",
        "pieces",
        "bytes",
    ];
    table(
        m,
        "Load by member of the stripe",
        &columns,
        &rows.collect::<Vec<_>>(),
    );
}
