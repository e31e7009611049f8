//! Devices that answer slower than the like devices of a fleet.
//!
//! Like is compared with like: mean latencies of one operation, one class of lengths (up to a power of two), in or out of a stream, on devices
//! of one driver (the name without its number: `nvme`, `sd`) at one layer. The slowness of a device is the median over its classes of the
//! logarithm of its latency over the median of the fleet. Both medians keep a few slow devices or classes from moving the measure.
//!
//! A device is slow if it takes at least 1.5 times as long as the median device, and is more than five standard deviations away, taken from the
//! median absolute deviation (F. R. Hampel, JASA 69, 1974). Load is no class: a device with a longer queue is slower, too.

use std::collections::BTreeMap;

use plumb_geometry::SmallSort;
use plumb_profile::Profile;
use plumb_profile::histogram::power_index;
use plumb_profile::latency_fit::STRATUM_TIMED_MIN;
use plumb_trace::{Layer, Op};

/// Fewest devices that have a class: among fewer, the median is no norm.
pub const DEVICES_MIN: usize = 8;
/// Smallest ratio of a slow device to the median one.
pub const TIMES_MIN: f64 = 1.5;
/// Standard deviations from which a device is far from the others. Of a million devices that are alike, none is so far.
pub const DEVIATIONS_MIN: f64 = 5.0;
/// The standard deviation of a normal distribution over its median absolute deviation.
const SIGMA_OF_MAD: f64 = 1.4826;

/// The mean latencies of a device, as logarithms of ns, by class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassMeans(Vec<(u16, f32)>);

impl ClassMeans {
    /// Those of a profile. Latencies that may belong to other I/O are left out, and so are classes with fewer than 30 of them.
    #[must_use]
    pub fn of(profile: &Profile) -> ClassMeans {
        if profile.is_pairing_unsound() {
            return ClassMeans::default();
        }
        let mut sums = [(0u64, 0u128); 4 * 65];
        for (key, row) in profile.places.table.iter() {
            let op = match key.op() {
                Op::Read => 0,
                Op::Write => 1,
                _ => continue,
            };
            let class = (power_index(key.length()) * 2 + op) * 2 + usize::from(key.continues());
            let (timed, ns_sum) = &mut sums[class];
            *timed = timed.saturating_add(row.timed);
            *ns_sum = ns_sum.saturating_add(row.ns_sum);
        }
        let known = sums.into_iter().enumerate();
        let known = known.filter(|(_, (timed, ns))| *timed >= STRATUM_TIMED_MIN && *ns > 0);
        let mean = |(timed, ns): (u64, u128)| (ns as f64 / timed as f64).ln() as f32;
        ClassMeans(known.map(|(at, sums)| (at as u16, mean(sums))).collect())
    }
}

/// The mean latency of a device in one class.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ClassMean {
    driver: u32,
    class: u16,
    ln_ns: f32,
}

/// The latencies of all devices of a fleet, by class.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    drivers: BTreeMap<(String, Layer), u32>,
    /// Devices one after the other.
    means: Vec<ClassMean>,
    /// The end of each device in `means`.
    ends: Vec<usize>,
}

/// The slowness of the devices of a fleet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slowness {
    /// Logarithm of the latency over that of the median device, in the order of [`Latencies::add`]; `None` without a class that enough devices
    /// have.
    pub of: Vec<Option<f64>>,
    /// A device from here on is slow; a logarithm as well. `None` without any device.
    pub limit: Option<f64>,
}

impl Latencies {
    /// Adds a device.
    pub fn add(&mut self, device: &str, layer: Layer, means: &ClassMeans) {
        let next = self.drivers.len() as u32;
        let driver = (driver_of(device).to_owned(), layer);
        let driver = *self.drivers.entry(driver).or_insert(next);
        let means = means.0.iter();
        self.means.extend(means.map(|&(class, ln_ns)| ClassMean {
            driver,
            class,
            ln_ns,
        }));
        self.ends.push(self.means.len());
    }

    /// Compares all devices.
    #[must_use]
    pub fn slowness(&self) -> Slowness {
        let mut order: Vec<usize> = (0..self.means.len()).collect();
        let class = |at: usize| (self.means[at].driver, self.means[at].class);
        order.small_sort_by_key(|at| class(*at));
        let mut past: Vec<Option<f64>> = vec![None; self.means.len()];
        for alike in order.chunk_by(|one, other| class(*one) == class(*other)) {
            if alike.len() < DEVICES_MIN {
                continue;
            }
            let mut values: Vec<f64> = alike
                .iter()
                .map(|at| f64::from(self.means[*at].ln_ns))
                .collect();
            let middle = middle_of(&mut values);
            for at in alike {
                past[*at] = middle.map(|middle| f64::from(self.means[*at].ln_ns) - middle);
            }
        }
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let mut of: Vec<Option<f64>> = begins
            .zip(&self.ends)
            .map(|(begin, end)| {
                let mut known: Vec<f64> = past[begin..*end].iter().flatten().copied().collect();
                middle_of(&mut known)
            })
            .collect();
        let Some((middle, limit)) = limit_of(of.iter().flatten().copied().collect()) else {
            return Slowness { of, limit: None };
        };
        for value in of.iter_mut().flatten() {
            *value -= middle;
        }
        let limit = Some(limit);
        Slowness { of, limit }
    }
}

impl Slowness {
    /// Whether a device is slow; `None` if that is unknown.
    #[must_use]
    pub fn is_slow(&self, device: usize) -> Option<bool> {
        let value = (*self.of.get(device)?)?;
        Some(value >= self.limit?)
    }
}

/// The median, and the distance from it at which a device is slow.
fn limit_of(mut values: Vec<f64>) -> Option<(f64, f64)> {
    let middle = middle_of(&mut values)?;
    let mut distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let deviation = SIGMA_OF_MAD * middle_of(&mut distances)?;
    Some((middle, TIMES_MIN.ln().max(DEVIATIONS_MIN * deviation)))
}

/// The lower median; `None` of nothing.
fn middle_of(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let at = (values.len() - 1) / 2;
    let (_, middle, _) = values.select_nth_unstable_by(at, f64::total_cmp);
    Some(*middle)
}

/// The name of a device without the part that differs between devices of one driver: `sd` of `sdaa`, `nvme` of `nvme0n1`, `dm-` of `dm-7`.
fn driver_of(device: &str) -> &str {
    let lettered = ["sd", "vd", "xvd", "hd"];
    let is_letters = |rest: &str| rest.bytes().all(|letter| letter.is_ascii_lowercase());
    let found = lettered.into_iter().find(|driver| {
        let rest = device.strip_prefix(driver);
        rest.is_some_and(|rest| !rest.is_empty() && is_letters(rest))
    });
    found.unwrap_or_else(|| {
        let end = device.find(|letter: char| letter.is_ascii_digit());
        &device[..end.unwrap_or(device.len())]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_names_without_numbers() {
        for (device, driver) in [
            ("sda", "sd"),
            ("sdaa", "sd"),
            ("vdb", "vd"),
            ("nvme0n1", "nvme"),
            ("dm-7", "dm-"),
            ("md127", "md"),
            ("8,0", ""),
            ("sd", "sd"),
            ("sdé", "sdé"),
            ("host_0", "host_"),
        ] {
            assert_eq!(driver_of(device), driver, "{device}");
        }
    }

    /// Nine values 0 to 8 in tenths have the median 0.4. The distances are 0 once and 0.1 to 0.4 twice, with the median 0.2.
    #[test]
    fn a_limit_is_five_deviations_from_the_median() {
        let values = (0..9).map(|value| f64::from(value) / 10.0).collect();
        let (middle, limit) = limit_of(values).expect("values");
        assert_eq!(middle, 0.4);
        assert!((limit - 5.0 * 1.4826 * 0.2).abs() < 1e-9, "{limit}");
        let (_, limit) = limit_of(vec![0.0; 100]).expect("values");
        assert!((limit - 1.5f64.ln()).abs() < 1e-12, "{limit}");
        assert_eq!(limit_of(Vec::new()), None);
    }
}
