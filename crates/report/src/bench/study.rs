//! The gain of threads, order and gathering records into one I/O, as a table.

use plumb_geometry::plural;
use plumb_load::result::bench::Study;
use plumb_load::series::gather::Gain;

use crate::format::{bytes, count, digits};
use crate::text::Page;

/// The table as text.
pub(super) fn draw(page: &mut Page, study: &Study) {
    page.gap();
    page.heading(&format!(
        "records of {}: {}",
        bytes(study.record_bytes),
        study.ops
    ));
    page.line("threads  order       records an I/O    I/O a second    records a second     gain");
    for row in &study.rows {
        let gain = row
            .gain
            .map_or_else(|| "-".to_owned(), |gain| format!("{}x", digits(gain)));
        page.line(format!(
            "{:>7}  {:<10} {:>15} {:>15} {:>19} {gain:>8}",
            count(u64::from(row.combination.threads)),
            row.combination.order(),
            count(u64::from(row.combination.records)),
            digits(row.ios_per_second),
            digits(row.records_per_second),
        ));
    }
    page.gap();
    for words in sentences(study) {
        page.wrapped("", "  ", &words);
    }
}

/// The meaning of the table, in sentences.
#[must_use]
pub fn sentences(study: &Study) -> Vec<String> {
    let best = |is_meant: &dyn Fn(&Gain) -> bool| {
        let rows = study.rows.iter().filter(|row| is_meant(row));
        rows.filter_map(|row| Some((row.gain?, row)))
            .max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let told = |what: &str, found: Option<(f64, &Gain)>| {
        found.map(|(gain, row)| {
            let (records, threads) = (
                u64::from(row.combination.records),
                u64::from(row.combination.threads),
            );
            let gain = digits(gain);
            format!(
                "{what}: at most {gain}x, with {} an I/O and {}.",
                plural(records, "record"),
                plural(threads, "thread")
            )
        })
    };
    let mut words: Vec<String> = [
        told(
            "In sequence, one record at a time",
            best(&|row| !row.combination.is_random && row.combination.records == 1),
        ),
        told(
            "Gathered, at random",
            best(&|row| row.combination.is_random && row.combination.records > 1),
        ),
        told(
            "Gathered and in sequence",
            best(&|row| !row.combination.is_random && row.combination.records > 1),
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    if study.ops == "reads" {
        words.push(
            "Nothing was written: reads may gain more or less than writes would; --write measures these."
                .to_owned(),
        );
    }
    words
}
