//! Bars in text, as `quantize` draws them.

use super::{Page, WIDTH};
use crate::format::count;

/// Columns of the longest bar.
const BAR: usize = 40;
/// No bar scale is shorter.
const BAR_MIN: usize = 16;
/// Head of the bars.
const TITLE: &str = " Distribution ";

/// A row for each value: label, bar, count. The longest bar stands for all I/O together.
pub(super) fn bars(page: &mut Page, rows: &[(String, u64)]) {
    let total: u128 = rows.iter().map(|(_, ios)| u128::from(*ios)).sum();
    if total == 0 {
        return;
    }
    let label = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0).max(9);
    let longest = rows.iter().map(|(_, ios)| count(*ios).len()).max().unwrap_or(0).max("count".len());
    // Long labels and counts make the bars shorter rather than the lines longer.
    let bar = BAR.min(WIDTH.saturating_sub(4 + label + 2 + 1 + longest)).max(BAR_MIN);
    let dashes = "-".repeat((bar - TITLE.len()) / 2);
    let title = format!("{dashes}{TITLE}{dashes}");
    page.line(format!("    {:>label$}  {title:<bar$} count", "value"));
    for (name, ios) in rows {
        let columns = (u128::from(*ios) * bar as u128 + total / 2) / total;
        let filled = "@".repeat(columns as usize);
        page.line(format!("    {name:>label$} |{filled:<bar$} {}", count(*ios)));
    }
}
