//! The parts of pictures: frame, axes, bars, steps, lines. Series are single paths, so that a picture stays some dozens
//! of elements; titles over transparent strips name the values of a place.

use std::fmt::Write;

use super::markup::Markup;
use super::scale::Tick;

/// The rectangle in which data are drawn, in units of the view box.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    /// Left edge.
    pub left: f64,
    /// Top edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Plot {
    /// Across the page, over time.
    pub const WIDE: Plot = Plot {
        left: 84.0,
        top: 12.0,
        width: 882.0,
        height: 230.0,
    };
    /// Half of it.
    pub const HALF: Plot = Plot {
        left: 58.0,
        top: 26.0,
        width: 408.0,
        height: 216.0,
    };

    /// Right edge.
    #[must_use]
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Bottom edge.
    #[must_use]
    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// A coordinate with one decimal at most.
#[must_use]
pub fn num(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let rounded = (value * 10.0).round() / 10.0;
    if rounded == rounded.trunc() {
        format!("{}", rounded as i64)
    } else {
        format!("{rounded:.1}")
    }
}

/// A picture with room for axes around the plot. `label` describes it to people who cannot see it.
pub fn picture(m: &mut Markup, plot: Plot, label: &str, draw: impl FnOnce(&mut Markup)) {
    let view = format!(
        "0 0 {} {}",
        num(plot.right() + 14.0),
        num(plot.bottom() + 46.0)
    );
    m.el(
        "svg",
        &[("viewBox", &view), ("role", "img"), ("aria-label", label)],
        draw,
    );
}

/// Text at a place.
pub fn label(m: &mut Markup, class: &str, (x, y): (f64, f64), words: &str) {
    m.leaf(
        "text",
        &[("class", class), ("x", &num(x)), ("y", &num(y))],
        words,
    );
}

/// A straight line.
pub fn line(m: &mut Markup, class: &str, from: (f64, f64), to: (f64, f64)) {
    let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(num);
    m.shape(
        "line",
        &[
            ("class", class),
            ("x1", &x1),
            ("y1", &y1),
            ("x2", &x2),
            ("y2", &y2),
        ],
    );
}

/// A broken line that also shows on bars: over a wider one in the colour of the ground.
pub fn level(m: &mut Markup, from: (f64, f64), to: (f64, f64)) {
    line(m, "halo", from, to);
    line(m, "chance", from, to);
}

/// A path.
pub fn path(m: &mut Markup, class: &str, d: &str) {
    m.shape("path", &[("class", class), ("d", d)]);
}

/// The axis beneath the plot.
pub fn x_axis(m: &mut Markup, plot: Plot, ticks: &[Tick], title: &str) {
    let y = plot.bottom();
    line(m, "axis", (plot.left, y), (plot.right(), y));
    for tick in ticks {
        let long = if tick.label.is_empty() { 3.0 } else { 5.0 };
        line(m, "axis", (tick.at, y), (tick.at, y + long));
        if !tick.label.is_empty() {
            label(m, "mid", (tick.at, y + 18.0), &tick.label);
        }
    }
    label(
        m,
        "mid title",
        (plot.left + plot.width / 2.0, y + 38.0),
        title,
    );
}

/// The axis left of the plot, with lines across it.
pub fn y_axis(m: &mut Markup, plot: Plot, ticks: &[Tick], title: &str) {
    for tick in ticks {
        line(m, "grid", (plot.left, tick.at), (plot.right(), tick.at));
        label(m, "end", (plot.left - 7.0, tick.at + 4.0), &tick.label);
    }
    let (x, y) = (13.0, plot.top + plot.height / 2.0);
    let turn = format!("rotate(-90 {} {})", num(x), num(y));
    m.leaf(
        "text",
        &[
            ("class", "mid title"),
            ("x", &num(x)),
            ("y", &num(y)),
            ("transform", &turn),
        ],
        title,
    );
}

/// A strip that shows words when pointed at.
pub fn hint(m: &mut Markup, (left, right): (f64, f64), (top, bottom): (f64, f64), words: &str) {
    let [x, y] = [left, top].map(num);
    let [width, height] = [(right - left).max(0.5), (bottom - top).max(0.0)].map(num);
    let place = [
        ("class", "hint"),
        ("x", &*x),
        ("y", &*y),
        ("width", &*width),
        ("height", &*height),
    ];
    m.el("rect", &place, |m| m.leaf("title", &[], words));
}

/// The area between `base` and columns (left, right, height); columns without a height are left out.
#[must_use]
pub fn area(columns: &[(f64, f64, Option<f64>)], base: f64) -> String {
    let mut d = String::new();
    let base = num(base);
    for run in runs(columns, |column| {
        column.2.is_none_or(|height| num(height) == base)
    }) {
        let mut pen = base.clone();
        for (at, &(left, right, height)) in run.iter().enumerate() {
            if at == 0 {
                let _ = write!(d, "M{} {base}", num(left));
            }
            let height = num(height.unwrap_or_default());
            if height != pen {
                let _ = write!(d, "V{height}");
            }
            let _ = write!(d, "H{}", num(right));
            pen = height;
        }
        let _ = write!(d, "V{base}Z");
    }
    d
}

/// Neighbouring items that are not empty.
fn runs<T>(items: &[T], empty: impl Fn(&T) -> bool) -> impl Iterator<Item = &[T]> {
    items.split(empty).filter(|run| !run.is_empty())
}

/// A step line over columns (left, right, height); columns without a height are gaps.
#[must_use]
pub fn steps(columns: &[(f64, f64, Option<f64>)]) -> String {
    let mut d = String::new();
    for run in runs(columns, |column| column.2.is_none()) {
        let mut pen = None;
        for &(left, right, at) in run {
            let at = num(at.unwrap_or_default());
            match pen.replace(at.clone()) {
                None => drop(write!(d, "M{} {at}H{}", num(left), num(right))),
                Some(last) if last == at => drop(write!(d, "H{}", num(right))),
                Some(_) => drop(write!(d, "V{at}H{}", num(right))),
            }
        }
    }
    d
}

/// The upper ends of columns (left, right, height) without the ways between them, which would hide narrow ones.
#[must_use]
pub fn tops(columns: impl IntoIterator<Item = (f64, f64, Option<f64>)>) -> String {
    let mut d = String::new();
    for (left, right, at) in columns {
        if let Some(at) = at {
            let _ = write!(d, "M{} {}H{}", num(left), num(at), num(right));
        }
    }
    d
}

/// Bars from `base`: (left, right, end).
#[must_use]
pub fn bars(columns: impl IntoIterator<Item = (f64, f64, f64)>, base: f64) -> String {
    let mut d = String::new();
    for (left, right, end) in columns {
        if num(end) != num(base) {
            let _ = write!(
                d,
                "M{} {}V{}H{}V{}Z",
                num(left),
                num(base),
                num(end),
                num(right),
                num(base)
            );
        }
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        for (value, shown) in [
            (1.0, "1"),
            (0.04, "0"),
            (12.34, "12.3"),
            (-0.04, "0"),
            (-1.26, "-1.3"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(num(value), shown);
        }
    }

    #[test]
    fn an_area_leaves_gaps_for_empty_intervals() {
        let columns = [
            (0.0, 1.0, Some(5.0)),
            (1.0, 2.0, Some(9.0)),
            (2.0, 3.0, Some(4.0)),
            (3.0, 4.0, None),
        ];
        assert_eq!(area(&columns, 9.0), "M0 9V5H1V9ZM2 9V4H3V9Z");
    }

    #[test]
    fn a_line_has_gaps() {
        let columns = [
            (0.0, 1.0, Some(5.0)),
            (1.0, 2.0, Some(5.0)),
            (2.0, 3.0, None),
            (3.0, 4.0, Some(1.0)),
        ];
        assert_eq!(steps(&columns), "M0 5H1H2M3 1H4");
    }

    #[test]
    fn bars_of_no_height_are_not_drawn() {
        assert_eq!(
            bars([(0.0, 2.0, 4.0), (3.0, 5.0, 10.0)], 10.0),
            "M0 10V4H2V10Z"
        );
    }
}
