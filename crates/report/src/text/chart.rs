//! Bars in text, as `quantize` draws them.

use super::Page;
use crate::format::count;

/// Columns of the longest bar.
const BAR: usize = 40;

/// A row for each value: label, bar, count. The longest bar stands for all I/O together.
pub(super) fn bars(page: &mut Page, rows: &[(String, u64)]) {
    let total: u128 = rows.iter().map(|(_, ios)| u128::from(*ios)).sum();
    if total == 0 {
        return;
    }
    let label = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0).max(9);
    page.line(format!("    {:>label$}  ------------- Distribution ------------- count", "value"));
    for (name, ios) in rows {
        let columns = (u128::from(*ios) * BAR as u128 + total / 2) / total;
        let bar = "@".repeat(columns as usize);
        page.line(format!("    {name:>label$} |{bar:<BAR$} {}", count(*ios)));
    }
}
