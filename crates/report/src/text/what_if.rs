//! The effects of another layout, with the class of each answer.

use plumb_diagnose::analysis::{Analysis, Shifted};
use plumb_profile::what_if::{Class, Recorded, Striped};

use super::Page;
use crate::format::{
    bytes_within, count, count_within, factor_within, percent_within, share_within,
};

/// The answers, ahead of the findings: somebody asked. With several devices each is named.
pub(super) fn lines(page: &mut Page, analysis: &Analysis, is_one_of_several: bool) {
    let asked = &analysis.what_if;
    let is_asked = !asked.shifted.is_empty() || asked.striped.is_some() || asked.recorded.is_some();
    if is_asked && is_one_of_several {
        page.gap();
        page.wrapped(
            "",
            "  ",
            format!("{}:", crate::words::target(&analysis.target)),
        );
    }
    for shifted in &analysis.what_if.shifted {
        shift_lines(page, shifted);
    }
    match &analysis.what_if.striped {
        Some(Ok(striped)) => stripe_lines(page, striped),
        Some(Err(why)) => refusal(page, "a stripe", &why.to_string()),
        None => {}
    }
    match &analysis.what_if.recorded {
        Some(Ok(recorded)) => record_lines(page, recorded),
        Some(Err(why)) => refusal(page, "records", &why.to_string()),
        None => {}
    }
}

fn heading(page: &mut Page, words: &str, class: Class) {
    page.gap();
    page.wrapped("  What if: ", "    ", format!("{words} ({})", class.text()));
}

fn refusal(page: &mut Page, words: &str, why: &str) {
    page.gap();
    page.wrapped("  What if: ", "    ", format!("{words}: refused: {why}"));
}

fn shift_lines(page: &mut Page, shifted: &Shifted) {
    let sectors = shifted.by_bytes as f64 / 512.0;
    let words = format!(
        "every start moved by {sectors:+} sectors, on {}",
        shifted.grid
    );
    heading(page, &words, shifted.class);
    match &shifted.tally {
        Ok(tally) => {
            let share = share_within(tally.misaligned, tally.ios);
            let words = format!("of {} I/O would start off it ({share})", count(tally.ios));
            page.numbered(14, &count_within(tally.misaligned), &words);
        }
        Err(why) => page.wrapped("    unknown: ", "      ", why.to_string()),
    }
}

fn stripe_lines(page: &mut Page, striped: &Striped) {
    let tally = &striped.tally;
    heading(
        page,
        &format!("chunks of {}", striped.chunk_bytes),
        striped.class,
    );
    let words = format!(
        "I/O touch more chunks than they need ({}; if spread evenly {})",
        share_within(tally.split, tally.ios),
        percent_within(striped.expected_split_share)
    );
    page.numbered(14, &count_within(tally.split), &words);
    let words = format!(
        "I/O touch more than one chunk ({})",
        share_within(tally.crossing, tally.ios)
    );
    page.numbered(14, &count_within(tally.crossing), &words);
    super::rounded_line(page, tally);
    if let Some(why) = &striped.members_unknown {
        page.wrapped("    load by member unknown: ", "      ", why.to_string());
    }
    for (member, load) in striped.members.iter().flatten().enumerate() {
        page.line(format!(
            "    member {member:<3} {:>12} pieces {:>10}",
            count_within(load.pieces),
            bytes_within(load.bytes)
        ));
    }
}

fn record_lines(page: &mut Page, recorded: &Recorded) {
    heading(
        page,
        &format!("records of {}", recorded.record_bytes),
        recorded.class,
    );
    for (word, tally) in [("reads", &recorded.reads), ("writes", &recorded.writes)] {
        let Some(tally) = tally else { continue };
        let moved = tally
            .amplification(&recorded.record)
            .map_or_else(String::new, |moved| {
                let moved = factor_within(moved, 2);
                format!("; {moved} bytes moved per byte, at most")
            });
        let words = format!(
            "of {} {word} cover a record in part{moved}",
            count(tally.ios)
        );
        page.numbered(14, &count_within(tally.partial), &words);
        super::rounded_line(page, tally);
    }
}
