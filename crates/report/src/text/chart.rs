//! Bars in text, as `quantize` draws them.

use super::Page;
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
    let label = rows
        .iter()
        .map(|(label, _)| label.chars().count())
        .max()
        .unwrap_or(0)
        .max(9);
    let longest = rows
        .iter()
        .map(|(_, ios)| count(*ios).len())
        .max()
        .unwrap_or(0)
        .max("count".len());
    // Long labels and counts make the bars shorter rather than the lines longer.
    let bar = BAR
        .min(page.paper.width.saturating_sub(4 + label + 2 + 1 + longest))
        .max(BAR_MIN);
    let dashes = "-".repeat((bar - TITLE.len()) / 2);
    let title = format!("{dashes}{TITLE}{dashes}");
    page.line(format!("    {:>label$}  {title:<bar$} count", "value"));
    for (name, ios) in rows {
        let columns = (u128::from(*ios) * bar as u128 + total / 2) / total;
        let filled = "@".repeat(columns as usize);
        page.line(format!(
            "    {name:>label$} |{filled:<bar$} {}",
            count(*ios)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Color;

    fn drawn(rows: &[(&str, u64)]) -> String {
        let rows: Vec<(String, u64)> = rows
            .iter()
            .map(|(label, ios)| ((*label).to_owned(), *ios))
            .collect();
        let mut page = Page::new(Color::Never);
        bars(&mut page, &rows);
        page.text
    }

    /// Each bar is its share of all, rounded to whole columns: 40 of them here.
    #[test]
    fn bars_are_shares_of_all() {
        insta::assert_snapshot!(drawn(&[("0", 1042), ("1", 988), ("2", 1397), ("4", 110_445)]), @r"
            value  ------------- Distribution ------------- count
                0 |                                         1,042
                1 |                                         988
                2 |                                         1,397
                4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@  110,445
        ");
        let half = drawn(&[("a", 3), ("b", 3)]);
        assert_eq!(half.matches('@').count(), 40);
        assert_eq!(drawn(&[("a", 0)]), "", "nothing to show");
        assert_eq!(drawn(&[]), "");
    }

    #[test]
    fn long_labels_and_counts_shorten_the_bars() {
        let label = "to 1,152,921,504,606";
        let chart = drawn(&[(label, u64::MAX), ("to -5", u64::MAX)]);
        assert!(
            chart
                .lines()
                .all(|line| line.chars().count() <= crate::text::WIDTH),
            "{chart}"
        );
        assert!(chart.contains("| @") || chart.contains("|@"), "{chart}");
        let bars: Vec<usize> = chart
            .lines()
            .skip(1)
            .map(|line| line.matches('@').count())
            .collect();
        assert_eq!(bars.len(), 2);
    }
}
