//! Pairs the devices of one side with those of the other.

use std::collections::BTreeMap;

use plumb_diagnose::compare::LeftOut;
use plumb_geometry::{SmallSort, natural};
use plumb_trace::names::partition_number;

use super::side::Side;
use crate::cli;
use crate::failure::Failure;

/// A device with less of the I/O of both sides is left out, unless it was asked for.
const SHARE_MIN: f64 = 0.01;

/// Names that are listed in a message.
const LISTED: usize = 12;

/// A device before and after.
#[derive(Debug, PartialEq, Eq)]
pub struct Pair {
    pub before: String,
    pub after: String,
    /// Whether the user named it.
    pub is_by_user: bool,
}

impl Pair {
    /// A note on two names that the user did not pair.
    pub fn note(&self) -> Option<String> {
        (!self.is_by_user && self.before != self.after).then(|| {
            format!(
                "{} and {} are compared as the only busy ones of their sides",
                self.before, self.after
            )
        })
    }
}

/// The pairs, and the devices without a partner.
#[derive(Debug, Default)]
pub struct Pairs {
    pub pairs: Vec<Pair>,
    pub left_out: Vec<LeftOut>,
}

type Devices = BTreeMap<String, f64>;

/// Pairs devices by the user's flags, by their names, or as the only busy ones.
///
/// # Errors
/// When a device that was asked for is missing, or no pairing is certain.
pub fn pair_devices(sides: &[Side; 2], asked: &[cli::DevicePair]) -> Result<Pairs, Failure> {
    let devices = [sides[0].devices(), sides[1].devices()];
    if asked.is_empty() {
        return found(&devices, [sides[0].path(), sides[1].path()]);
    }
    let mut pairs = Pairs::default();
    for pair in asked {
        for (name, side, of) in [
            (&pair.before, &sides[0], &devices[0]),
            (&pair.after, &sides[1], &devices[1]),
        ] {
            if !of.contains_key(name) {
                return Err(
                    Failure::missing(format!("no device `{name}` in {}", side.path()))
                        .with_help(format!("these are: {}", listed(of))),
                );
            }
        }
        let (before, after) = (pair.before.clone(), pair.after.clone());
        pairs.pairs.push(Pair {
            before,
            after,
            is_by_user: true,
        });
    }
    Ok(pairs)
}

fn found(devices: &[Devices; 2], paths: [&str; 2]) -> Result<Pairs, Failure> {
    let mut pairs = Pairs::default();
    let mut busy: [Vec<&str>; 2] = Default::default();
    for (at, side) in ["before", "after"].into_iter().enumerate() {
        let whole: f64 = devices[at]
            .iter()
            .filter(|(name, _)| disk_of(name, &devices[at]).is_none())
            .map(|(_, ios)| ios)
            .sum();
        for (device, ios) in &devices[at] {
            let elsewhere = devices[1 - at].get(device).copied();
            let mut leave = |why: String| {
                pairs.left_out.push(LeftOut {
                    side,
                    device: device.clone(),
                    why,
                })
            };
            if let Some(disk) = disk_of(device, &devices[at]) {
                leave(format!("a part of {disk}"));
            } else if *ios >= SHARE_MIN * whole && *ios > 0.0 {
                busy[at].push(device);
            } else if elsewhere.is_none() && *ios > 0.0 {
                leave(format!("less than {:.0} % of the I/O", SHARE_MIN * 100.0));
            }
        }
    }
    let is_common = |name: &&str| devices[0].contains_key(*name) && devices[1].contains_key(*name);
    let mut common: Vec<&str> = busy.iter().flatten().copied().filter(is_common).collect();
    common.small_sort_by(|one, other| natural(one, other));
    common.dedup();
    match (&common[..], &busy[0][..], &busy[1][..]) {
        ([], [before], [after]) => {
            let (before, after) = ((*before).to_owned(), (*after).to_owned());
            pairs.pairs.push(Pair {
                before,
                after,
                is_by_user: false,
            });
            return Ok(pairs);
        }
        ([], ..) => {
            let which = [0, 1].map(|at| format!("{} has {}", paths[at], listed(&devices[at])));
            return Err(Failure::unknown(format!(
                "no busy device is on both sides: {}",
                which.join("; ")
            ))
            .with_help("--device BEFORE=AFTER says which belong together"));
        }
        _ => {}
    }
    for (at, side) in ["before", "after"].into_iter().enumerate() {
        let alone = busy[at].iter().filter(|name| !common.contains(*name));
        let why = "not on the other side: --device BEFORE=AFTER would pair it".to_owned();
        pairs.left_out.extend(alone.map(|name| LeftOut {
            side,
            device: (*name).to_owned(),
            why: why.clone(),
        }));
    }
    let pair = |name: &str| Pair {
        before: name.to_owned(),
        after: name.to_owned(),
        is_by_user: false,
    };
    pairs.pairs = common.into_iter().map(pair).collect();
    Ok(pairs)
}

/// The disk of a partition or slice that is listed beside it, so that its I/O are there twice.
fn disk_of<'a>(name: &str, devices: &'a Devices) -> Option<&'a str> {
    let end = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let stem = end.strip_suffix(['s', 'p']).unwrap_or(end);
    let (disk, _) = devices.get_key_value(stem)?;
    let is_slice = name.len() > end.len() && end.len() > stem.len();
    (is_slice || partition_number(disk, name).is_some()).then_some(disk)
}

fn listed(devices: &Devices) -> String {
    let names: Vec<&str> = devices.keys().take(LISTED).map(String::as_str).collect();
    let more = if devices.len() > LISTED { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(of: &[(&str, f64)]) -> Devices {
        of.iter()
            .map(|(name, ios)| ((*name).to_owned(), *ios))
            .collect()
    }

    /// Pairs as `before=after`, then the devices without a partner.
    fn pairs(before: &[(&str, f64)], after: &[(&str, f64)]) -> Result<[Vec<String>; 2], Failure> {
        let pairs = found(&[devices(before), devices(after)], ["a", "b"])?;
        let named = pairs
            .pairs
            .into_iter()
            .map(|pair| format!("{}={}", pair.before, pair.after));
        let left = pairs
            .left_out
            .into_iter()
            .map(|left| format!("{} {}", left.device, left.side));
        Ok([named.collect(), left.collect()])
    }

    #[test]
    fn devices_of_both_sides_are_paired_and_idle_ones_left_out() {
        let [named, left] = pairs(
            &[("c0t6d0", 15_681.0), ("c2t0d0", 1.0)],
            &[("c0t6d0", 20_289.0), ("sd7", 30_000.0)],
        )
        .expect("one in common");
        assert_eq!(named, ["c0t6d0=c0t6d0"]);
        assert_eq!(left, ["c2t0d0 before", "sd7 after"]);
    }

    #[test]
    fn the_only_busy_ones_belong_together() {
        let [named, left] =
            pairs(&[("sda", 9.0)], &[("sdb", 9.0), ("sdc", 0.0)]).expect("one each");
        assert_eq!(named, ["sda=sdb"]);
        assert!(left.is_empty(), "{left:?}");
        let error =
            pairs(&[("sda", 9.0)], &[("sdb", 9.0), ("sdc", 9.0)]).expect_err("which of both?");
        assert_eq!(error.exit(), crate::exit::Exit::Unknown);
    }

    #[test]
    fn parts_are_not_counted_twice() {
        let of = devices(&[
            ("c0t6d0", 1.0),
            ("c0t6d0s0", 1.0),
            ("sda", 1.0),
            ("sda1", 1.0),
            ("nvme0n1", 1.0),
            ("nvme0n1p2", 1.0),
            ("dm-0", 1.0),
            ("sd1", 1.0),
            ("sd12", 1.0),
        ]);
        for (name, disk) in [
            ("c0t6d0s0", Some("c0t6d0")),
            ("sda1", Some("sda")),
            ("nvme0n1p2", Some("nvme0n1")),
            ("c0t6d0", None),
            ("sda", None),
            ("dm-0", None),
            ("sd12", None),
        ] {
            assert_eq!(disk_of(name, &of), disk, "{name}");
        }
    }
}
