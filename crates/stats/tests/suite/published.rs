//! Intervals against those that other programs printed, and against values worked out by numeric integration.

use plumb_stats::{
    Level, Sectioned, StatsError, difference_of_means, mean, mean_ratio, median_ratio,
    ratio_of_means, ratio_of_sectioned,
};

/// Student's data on sleep, hours gained by two drugs (W. S. Gosset, Biometrika 6, 1908), as in R's `sleep`.
const FIRST: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
const SECOND: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

/// R's output for `t.test(extra ~ group, data = sleep)`, in its manual page: −3.3654832 to 0.2054832 for first −
/// second.
#[test]
fn welch_as_r_has_it() {
    let found = difference_of_means(&FIRST, &SECOND, Level::P95).expect("ten and ten");
    assert!((found.estimate - 1.58).abs() < 1e-12, "{found:?}");
    assert!((found.low + 0.205_483_2).abs() < 1e-6, "{found:?}");
    assert!((found.high - 3.365_483_2).abs() < 1e-6, "{found:?}");
    assert_eq!(found.n, [10, 10]);
}

/// The same paired: 0.7001142 to 2.4598858.
#[test]
fn one_sample_as_r_has_it() {
    let differences: Vec<f64> = FIRST
        .iter()
        .zip(SECOND)
        .map(|(first, second)| second - first)
        .collect();
    let found = mean(&differences, Level::P95).expect("ten");
    assert!((found.low - 0.700_114_2).abs() < 1e-6, "{found:?}");
    assert!((found.high - 2.459_885_8).abs() < 1e-6, "{found:?}");
    assert_eq!(found.n, 10);
}

/// Estimates by plain sums; quantiles of t by Simpson's rule over the density and halving.
#[test]
fn ratios_worked_out_apart() {
    let rates = (
        [15_639.6, 15_887.3, 15_437.0],
        [20_233.6, 19_382.3, 20_226.4],
    );
    let times = ([4.0, 3.9, 4.1], [3.1, 3.2, 3.1]);
    let check = |(before, after): ([f64; 3], [f64; 3]), level, expected: [f64; 3]| {
        let found = ratio_of_means(&before, &after, level).expect("three and three");
        for (found, expected) in [found.estimate, found.low, found.high]
            .into_iter()
            .zip(expected)
        {
            assert!(
                (found - expected).abs() < 1e-7,
                "{found}, expected {expected}"
            );
        }
        assert_eq!(found.n, [3, 3]);
    };
    check(
        rates,
        Level::P95,
        [1.274_219_134_3, 1.211_814_430_3, 1.339_837_487_9],
    );
    check(
        rates,
        Level::P99,
        [1.274_219_134_3, 1.165_227_097_5, 1.393_405_977_0],
    );
    check(
        times,
        Level::P95,
        [0.783_333_333_3, 0.743_974_595_4, 0.824_774_279_8],
    );
    let uneven = ratio_of_means(
        &[3.2, 4.1, 2.9, 5.0, 4.4, 3.8, 4.0],
        &[6.1, 7.3, 5.5, 6.9],
        Level::P95,
    );
    let uneven = uneven.expect("seven and four");
    assert!((uneven.low - 1.333_408_262_8).abs() < 1e-7, "{uneven:?}");
    assert!((uneven.high - 2.036_344_451_7).abs() < 1e-7, "{uneven:?}");
    assert_eq!(uneven.n, [7, 4]);
}

#[test]
fn pairs_worked_out_apart() {
    let (before, after) = ([10.0, 12.0, 9.0, 11.0, 10.5], [8.1, 9.5, 7.6, 8.4, 8.3]);
    let found = mean_ratio(&before, &after, Level::P95).expect("five pairs");
    assert!((found.estimate - 0.799_603_655_8).abs() < 1e-9, "{found:?}");
    assert!((found.low - 0.763_643_508_9).abs() < 1e-7, "{found:?}");
    assert!((found.high - 0.837_257_174_1).abs() < 1e-7, "{found:?}");
    assert!(matches!(
        median_ratio(&before, &after, Level::P95),
        Err(StatsError::TooFew { n: 5, need: 6, .. })
    ));
    let median = median_ratio(&[1.0; 7], &[3.0, 1.0, 2.0, 7.0, 6.0, 4.0, 5.0], Level::P95)
        .expect("seven pairs");
    for (found, expected) in [
        (median.estimate, 4.0),
        (median.low, 1.0),
        (median.high, 7.0),
    ] {
        assert!((found - expected).abs() < 1e-12, "{median:?}");
    }
}

#[test]
fn without_spread_an_interval_is_a_point() {
    let found = ratio_of_means(&[2.0; 3], &[3.0; 4], Level::P95).expect("three and four");
    assert_eq!((found.estimate, found.low), (1.5, found.high));
    let found = mean(&[7.0; 5], Level::P95).expect("five");
    assert_eq!((found.low, found.high), (7.0, 7.0));
}

#[test]
fn invalid_samples_are_refused() {
    let text = |error: StatsError| error.to_string();
    let ratio =
        |before: &[f64], after: &[f64]| ratio_of_means(before, after, Level::P95).map_err(text);
    let few = ratio(&[1.0], &[1.0, 2.0]).expect_err("1 observation");
    let no = ratio(&[1.0, 2.0], &[]).expect_err("no observation");
    let zero = ratio(&[0.0, 0.0], &[1.0, 2.0]).expect_err("no ratio to 0");
    let pairs = mean_ratio(&[1.0, 2.0], &[1.0, 2.0, 3.0], Level::P95).map_err(text);
    let pairs = pairs.expect_err("no pairs");
    insta::assert_snapshot!([few, no, zero, pairs].join("\n\n"));
    assert!(mean_ratio(&[1.0, 2.0], &[1.0, -2.0], Level::P95).is_err());
    assert!(mean_ratio(&[1.0, f64::NAN], &[1.0, 2.0], Level::P95).is_err());
    for level in [0.0, 1.0, -0.1, 1.1, f64::NAN] {
        assert!(Level::new(level).is_err(), "{level}");
    }
}

/// By hand: sections at e^±0.1 of the whole have variances 4 · 0.01 / 3 / 4 and 3 · 0.01 / 2 / 3, 4.286 degrees of freedom
/// after Welch, and t at 97.5 of 100 is 2.776 at 4 of them, 2.571 at 5 (any table), in between by 1 / freedom.
#[test]
fn sections_by_hand() {
    let (up, down) = (0.1f64.exp(), (-0.1f64).exp());
    let before = Sectioned {
        whole: 2.0,
        sections: &[2.0 * up, 2.0 * down, 2.0 * up, 2.0 * up],
    };
    let after = Sectioned {
        whole: 1.0,
        sections: &[up, down, down],
    };
    let found = ratio_of_sectioned(before, after, Level::P95).expect("enough");
    let variances: [f64; 2] = [0.01 / 3.0, 0.01 / 2.0];
    let freedom = (variances[0] + variances[1]).powi(2)
        / (variances[0].powi(2) / 3.0 + variances[1].powi(2) / 2.0);
    assert!((freedom - 4.286).abs() < 1e-3, "{freedom}");
    let t = 2.571 + (2.776 - 2.571) * (1.0 / freedom - 0.2) / 0.05;
    let reach = t * (variances[0] + variances[1]).sqrt();
    assert_eq!((found.estimate, found.n), (0.5, [4, 3]));
    assert!(
        (found.high / (0.5 * reach.exp()) - 1.0).abs() < 1e-3,
        "{found:?}, expected a reach of {reach}"
    );
    assert!(
        (found.low * found.high / 0.25 - 1.0).abs() < 1e-9,
        "{found:?}"
    );
    let none = Sectioned {
        whole: 0.0,
        ..before
    };
    assert!(matches!(
        ratio_of_sectioned(none, after, Level::P95),
        Err(StatsError::NotPositive { .. })
    ));
    let one = Sectioned {
        sections: &[1.0],
        ..after
    };
    assert!(matches!(
        ratio_of_sectioned(before, one, Level::P95),
        Err(StatsError::TooFew { n: 1, need: 2, .. })
    ));
}
