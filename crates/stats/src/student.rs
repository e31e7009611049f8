//! Student's t: tails and quantiles, computed for any degrees of freedom, whole or not.
//!
//! The tail is an incomplete beta function (Abramowitz and Stegun, 26.5.27 and 26.7.1), here by its continued fraction
//! (26.5.8) after Lentz's method; the gamma function by Stirling's series (6.1.41). No table of quantiles is used.

/// Beyond this number of degrees of freedom t and the normal distribution differ by less than 1 in a million.
const FREEDOM_MAX: f64 = 1e6;
/// The continued fraction needs some √freedom steps; more than this means that it does not end.
const STEPS_MAX: u32 = 20_000;

/// P(T > t) for `freedom` degrees of freedom, at least one.
#[must_use]
pub fn tail(t: f64, freedom: f64) -> f64 {
    let freedom = freedom.clamp(1.0, FREEDOM_MAX);
    let square = t * t;
    let (x, rest) = (freedom / (freedom + square), square / (freedom + square));
    let beyond = incomplete_beta(freedom / 2.0, 0.5, x, rest) / 2.0;
    if t < 0.0 { 1.0 - beyond } else { beyond }
}

/// The t with a share `beyond` of the distribution above it, above 0 and up to one half; at least one degree of
/// freedom.
#[must_use]
pub fn quantile_above(beyond: f64, freedom: f64) -> f64 {
    let freedom = freedom.clamp(1.0, FREEDOM_MAX);
    let beyond = beyond.clamp(f64::MIN_POSITIVE, 0.5);
    let (mut low, mut high) = (0.0, 1.0);
    while tail(high, freedom) > beyond && high < 1e300 {
        low = high;
        high *= 2.0;
    }
    // Newton's steps, and half the bracket where one would leave it.
    let mut t = (low + high) / 2.0;
    for _ in 0..200 {
        let above = tail(t, freedom) - beyond;
        if above > 0.0 {
            low = t
        } else {
            high = t
        }
        let step = t + above / density(t, freedom);
        let next = if step > low && step < high {
            step
        } else {
            (low + high) / 2.0
        };
        if (next - t).abs() <= 1e-14 * next.abs() {
            return next;
        }
        t = next;
    }
    t
}

fn density(t: f64, freedom: f64) -> f64 {
    let scale = ln_gamma((freedom + 1.0) / 2.0)
        - ln_gamma(freedom / 2.0)
        - (freedom * std::f64::consts::PI).ln() / 2.0;
    (scale - (freedom + 1.0) / 2.0 * (t * t / freedom).ln_1p()).exp()
}

/// The regularised incomplete beta function I_x(a, b), with 1 − x beside x so that neither loses digits.
fn incomplete_beta(a: f64, b: f64, x: f64, rest: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if rest <= 0.0 {
        return 1.0;
    }
    let ln_front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * rest.ln();
    // The fraction ends quickly on this side of the mean only.
    if x < (a + 1.0) / (a + b + 2.0) {
        ln_front.exp() * beta_fraction(a, b, x) / a
    } else {
        1.0 - ln_front.exp() * beta_fraction(b, a, rest) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_0 = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_0(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for step in 1..=STEPS_MAX {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_0(1.0 + term * d);
            c = away_from_0(1.0 + term / c);
            factor = c * d;
            value *= factor;
        }
        if (factor - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// ln Γ(x) for x above 0.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    // Stirling's series serves large x: small ones are brought there by Γ(x + 1) = x Γ(x).
    const LARGE: f64 = 15.0;
    let (mut x, mut below) = (x, 1.0);
    while x < LARGE {
        below *= x;
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    let series = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
    ];
    let correction = series
        .iter()
        .rev()
        .fold(0.0, |sum, term| sum * square + term)
        * inverse;
    (x - 0.5) * x.ln() - x + (2.0 * std::f64::consts::PI).ln() / 2.0 + correction - f64::ln(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upper quantiles as printed by H. Quené and H. van den Bergh, Quantitative Methods and Statistics, appendix C; those of
    /// 100 and of infinity as in the NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2.
    #[test]
    fn agrees_with_printed_tables() {
        const BEYOND: [f64; 6] = [0.10, 0.05, 0.025, 0.01, 0.005, 0.001];
        for (freedom, printed) in [
            (1.0, [3.078, 6.314, 12.706, 31.821, 63.657, 318.309]),
            (2.0, [1.886, 2.920, 4.303, 6.965, 9.925, 22.327]),
            (3.0, [1.638, 2.353, 3.182, 4.541, 5.841, 10.215]),
            (4.0, [1.533, 2.132, 2.776, 3.747, 4.604, 7.173]),
            (5.0, [1.476, 2.015, 2.571, 3.365, 4.032, 5.893]),
            (10.0, [1.372, 1.812, 2.228, 2.764, 3.169, 4.144]),
            (30.0, [1.310, 1.697, 2.042, 2.457, 2.750, 3.385]),
            (100.0, [1.290, 1.660, 1.984, 2.364, 2.626, 3.174]),
            (f64::INFINITY, [1.282, 1.645, 1.960, 2.326, 2.576, 3.090]),
        ] {
            for (beyond, printed) in BEYOND.into_iter().zip(printed) {
                let found = quantile_above(beyond, freedom);
                assert!(
                    (found - printed).abs() <= 0.000_51,
                    "{freedom} {beyond}: {found}, printed {printed}"
                );
            }
        }
    }

    /// For one and two degrees of freedom the quantiles have closed forms.
    #[test]
    fn agrees_with_closed_forms() {
        for beyond in [0.4, 0.2, 0.05, 0.005, 1e-4, 1e-9] {
            let one = (std::f64::consts::PI * (0.5 - beyond)).tan();
            let found = quantile_above(beyond, 1.0);
            assert!((found / one - 1.0).abs() < 1e-7, "{beyond}: {found} {one}");
            let p: f64 = 1.0 - 2.0 * beyond;
            let two = p * (2.0 / (1.0 - p * p)).sqrt();
            let found = quantile_above(beyond, 2.0);
            assert!((found / two - 1.0).abs() < 1e-7, "{beyond}: {found} {two}");
        }
    }

    #[test]
    fn a_quantile_is_where_its_tail_begins() {
        for freedom in [1.0, 1.7, 3.2, 9.99, 40.5, 1234.5, 1e6, 1e12] {
            for beyond in [0.5, 0.3, 0.05, 0.025, 1e-3, 1e-6] {
                let t = quantile_above(beyond, freedom);
                assert!(
                    (tail(t, freedom) / beyond - 1.0).abs() < 1e-9,
                    "{freedom} {beyond} {t}"
                );
                assert!(
                    (tail(-t, freedom) + beyond - 1.0).abs() < 1e-12,
                    "{freedom} {beyond} {t}"
                );
            }
        }
    }

    #[test]
    fn factorials() {
        let mut factorial = 1.0f64;
        for n in 1..=20 {
            let n = f64::from(n);
            assert!((ln_gamma(n) - factorial.ln()).abs() < 1e-13 * n, "{n}");
            factorial *= n;
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.ln() / 2.0).abs() < 1e-14);
    }
}
