//! Slow devices: like is compared with like, and a few classes or devices do not move the measure.

use plumb_fleet::{ClassMeans, Latencies, Slowness};
use plumb_profile::Profile;
use plumb_profile::table::{Row, Table};
use plumb_trace::{Layer, Op};

/// A device with reads of some lengths, each with 100 equal latencies in µs.
fn means(lengths: &[(u64, u64)]) -> ClassMeans {
    let mut profile = Profile::new("sda", Layer::Request, Table::default());
    for &(len, us) in lengths {
        let row = Row {
            ios: 100,
            timed: 100,
            ns_sum: u128::from(us) * 100_000,
            ..Row::default()
        };
        profile.add_residue(Op::Read, 0, len, false, &row);
    }
    ClassMeans::of(&profile)
}

fn slow(slowness: &Slowness) -> Vec<usize> {
    let all = 0..slowness.of.len();
    all.filter(|at| slowness.is_slow(*at) == Some(true))
        .collect()
}

#[test]
fn a_slow_device_is_found_among_like_ones() {
    let mut latencies = Latencies::default();
    for at in 0..40 {
        let us = 100 + at % 5;
        let us = if at == 17 { us * 4 } else { us };
        latencies.add(
            &format!("nvme{at}n1"),
            Layer::Request,
            &means(&[(4096, us), (65_536, 3 * us)]),
        );
    }
    let slowness = latencies.slowness();
    assert_eq!(slow(&slowness), [17]);
    let times = slowness.of[17].expect("compared").exp();
    assert!((3.8..4.2).contains(&times), "{times}");
}

/// Disks are ten times as slow as flash, and long I/O slower than short ones: neither is a fault.
#[test]
fn only_like_devices_and_lengths_are_compared() {
    let mut latencies = Latencies::default();
    for at in 0..20 {
        latencies.add(
            &format!("nvme{at}n1"),
            Layer::Request,
            &means(&[(4096, 100)]),
        );
        latencies.add(
            &format!("sd{}", char::from(b'a' + at)),
            Layer::Request,
            &means(&[(4096, 1000)]),
        );
        latencies.add(&format!("nvme{at}n1"), Layer::Bio, &means(&[(4096, 1000)]));
    }
    for at in 20..40 {
        latencies.add(
            &format!("nvme{at}n1"),
            Layer::Request,
            &means(&[(1 << 20, 1000)]),
        );
    }
    let slowness = latencies.slowness();
    assert_eq!(slow(&slowness), [0; 0]);
    assert!(slowness.of.iter().all(|value| *value == Some(0.0)));
}

#[test]
fn one_class_of_three_does_not_decide() {
    let mut latencies = Latencies::default();
    for at in 0..20 {
        let reads = if at == 3 { 900 } else { 100 };
        latencies.add(
            "sda",
            Layer::Request,
            &means(&[(4096, reads), (8192, 120), (16_384, 140)]),
        );
    }
    assert_eq!(slow(&latencies.slowness()), [0; 0]);
}

/// Seven devices are no norm, and fewer than 30 latencies no mean.
#[test]
fn too_few_are_not_compared() {
    let mut latencies = Latencies::default();
    for at in 0..7 {
        latencies.add("sda", Layer::Request, &means(&[(4096, 100 << at)]));
    }
    let slowness = latencies.slowness();
    assert!(slowness.of.iter().all(Option::is_none));
    assert_eq!((slowness.limit, slowness.is_slow(0)), (None, None));
    assert_eq!(Latencies::default().slowness(), Slowness::default());
}
