//! Reads bytes as a capture of `iostat`, and compares the result with itself and with its second half.

use plumb_diagnose::compare::{Compared, Terms, compare, of_series};
use plumb_report::compare::{json, text};
use plumb_report::text::Color;
use plumb_trace::series::{self, FirstReport};

/// Devices that are followed; more are more of the same, slowly.
const DEVICES_MAX: usize = 4;

/// One capture.
pub fn all(data: &[u8]) -> bool {
    let Ok(series) = series::read("capture", data) else {
        return false;
    };
    let mut later = series.clone();
    later.reports.drain(..series.reports.len() / 2);
    let devices: Vec<&str> = series.devices().into_iter().take(DEVICES_MAX).collect();
    assert!(!devices.is_empty(), "a capture without a device is refused");
    for device in devices {
        let before = of_series(&series, device, FirstReport::Auto);
        let after = of_series(&later, device, FirstReport::Keep);
        let comparisons = [
            compare(&before, &before, &Terms::default()),
            compare(&before, &after, &Terms::default()),
        ];
        let same = comparisons[0].verdict.rate;
        assert!(
            same.is_none_or(|rate| rate.low <= Some(1.0) && rate.high >= Some(1.0)),
            "itself is not another"
        );
        let compared = Compared {
            inputs: ["capture", "capture"],
            margin: 0.03,
            level: 0.95,
            comparisons: &comparisons,
            left_out: &[],
            notes: &[],
        };
        assert!(!text(&compared, Color::Never).is_empty());
        let _ = json(&plumb_report::run::Run::default(), &compared);
        let _ = plumb_report::html::compared("0", &compared);
    }
    true
}
