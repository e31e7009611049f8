//! The tables of trace formats in `docs/formats/README.md` and `README.md`.

use std::io;
use std::path::Path;

use plumb_geometry::SmallSort;
use plumb_trace::format::{FORMATS, Family, Format, Holds};

use super::FilesToWrite;
use super::region::{put, table};

/// Adds both pages.
///
/// # Errors
/// When a page cannot be read, or has no place for its table.
pub fn add(root: &Path, files: &mut FilesToWrite) -> io::Result<()> {
    let page = "docs/formats/README.md";
    put(root, page, "formats of I/O", &of_events(), files)?;
    put(root, page, "formats of counts", &of_counts(), files)?;
    put(root, "README.md", "formats", &families(), files)
}

/// Formats in the order of the families in the README, and within one that of the list.
fn in_order() -> Vec<&'static Format> {
    let mut formats = FORMATS.to_vec();
    // A format without a family is refused, and comes last.
    formats.small_sort_by_key(|format| {
        let family = format.about.families.first();
        (family.is_none(), family.map(|(family, _)| *family))
    });
    formats
}

fn name(format: &Format) -> String {
    format!("`{}`", format.name)
}

fn of_events() -> String {
    let rows = in_order().into_iter().filter_map(|format| {
        let about = &format.about;
        let (times, latency) = match about.holds {
            Holds::Events { times, latency } => (times, latency),
            Holds::Nothing => ("", ""),
            Holds::Counts(_) => return None,
        };
        let cells = [
            format.title,
            about.layer,
            times,
            latency,
            about.verified_by,
            about.cannot_tell,
        ];
        let [what, layer, times, latency, verified, cannot] = cells.map(str::to_owned);
        Some([name(format), what, layer, times, latency, verified, cannot])
    });
    let head = [
        "`--format`",
        "source",
        "layer",
        "times",
        "latency",
        "verified by",
        "cannot tell",
    ];
    table(head, rows)
}

fn of_counts() -> String {
    let rows = in_order().into_iter().filter_map(|format| {
        let about = &format.about;
        let Holds::Counts(holds) = about.holds else {
            return None;
        };
        let cells = [
            format.title,
            about.layer,
            holds,
            about.verified_by,
            about.cannot_tell,
        ];
        let [what, layer, holds, verified, cannot] = cells.map(str::to_owned);
        Some([name(format), what, layer, holds, verified, cannot])
    });
    let head = [
        "`--format`",
        "source",
        "layer",
        "holds",
        "verified by",
        "cannot tell",
    ];
    table(head, rows)
}

fn families() -> String {
    let rows = Family::ALL.map(|family| {
        let named = FORMATS
            .iter()
            .flat_map(|format| format.about.families)
            .filter(|(of, _)| *of == family);
        let words: Vec<&str> = named.map(|(_, words)| *words).collect();
        [family.name().to_owned(), words.join(", ")]
    });
    table(["from", "formats"], rows)
}
