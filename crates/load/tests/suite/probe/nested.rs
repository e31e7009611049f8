//! Two grids that both charge, the coarser one at boundaries of the finer one: array blocks of 8 or 16 KiB over sectors
//! of 4 KiB, behind a partition that begins 4 KiB off. That is never aligned.

use plumb_load::probe::{Candidate, ProbeVerdict, Probed, Reason, probe};

use super::array::SimulatedArray;
use super::device::{Charge, Noise, Second, SimulatedDevice};
use super::settings;

/// The cells of both devices.
const FINE: u64 = 4096;
const RUNS: u64 = 10;

/// The results of the runs of one device.
#[derive(Debug, Default)]
struct Said {
    /// The second grid is named, with its offset.
    named: u64,
    aligned: u64,
    inconclusive: u64,
    others: u64,
}

/// Probes a device that takes `fine` of its shortest time for a boundary of 4 KiB, and `more` for one of the second grid.
fn probed(fine: f64, second: Second, seed: u64) -> Probed {
    let mut device = SimulatedDevice::new(
        FINE,
        0,
        Charge::Commands {
            more: fine,
            bytes_for_1: 2e6,
        },
        seed,
    );
    device.second = Some(second);
    device.noise = Noise {
        spread: 0.05,
        outliers: 5,
        ..Noise::default()
    };
    probe(&mut device, &settings(seed + 1000)).expect("no read fails")
}

fn probe_all(fine: f64, (granularity, offset): (u64, u64), more: f64) -> Said {
    let second = Candidate {
        granularity_bytes: granularity,
        offset_bytes: offset,
    };
    let mut said = Said::default();
    for seed in 0..RUNS {
        let probed = probed(
            fine,
            Second {
                granularity,
                offset,
                more,
            },
            seed,
        );
        match probed.verdict {
            ProbeVerdict::Misaligned if probed.grid == Some(second) => said.named += 1,
            ProbeVerdict::Aligned => {
                said.aligned += 1;
                assert_eq!(probed.coarser_within, None, "little noise, and enough time");
            }
            ProbeVerdict::Inconclusive(_) => said.inconclusive += 1,
            _ => said.others += 1,
        }
    }
    eprintln!("{fine} at 4 KiB, {more} at {granularity} from {offset}: {said:?}");
    said
}

/// The cost of either boundary makes no difference, as long as the margin notices: reads across both take (1 + fine +
/// more) / (1 + fine) as long as those across one.
#[test]
fn a_coarser_grid_elsewhere_is_never_aligned() {
    for (fine, more) in [(0.1, 0.1), (0.1, 0.5), (0.8, 0.1), (0.8, 0.5), (0.8, 2.0)] {
        for second in [
            (8192, 4096),
            (16_384, 4096),
            (16_384, 8192),
            (16_384, 12_288),
        ] {
            let said = probe_all(fine, second, more);
            assert_eq!((said.aligned, said.others), (0, 0), "{second:?}");
            assert!(said.named >= RUNS - 1, "{second:?}: {said:?}");
        }
    }
}

/// A twentieth more beside 1.8 is 2.8 %: too near to the margin of 3 % for either answer.
#[test]
fn results_near_the_margin_are_undecided() {
    let second = Second {
        granularity: 8192,
        offset: 4096,
        more: 0.05,
    };
    for seed in 0..RUNS {
        let probed = probed(0.8, second, seed);
        assert_eq!(probed.verdict, ProbeVerdict::Inconclusive(Reason::Coarser));
        assert_eq!(
            probed.grid,
            Some(Candidate {
                granularity_bytes: FINE,
                offset_bytes: 0
            })
        );
    }
}

/// Larger blocks are looked for in the time that is left: found, open, and not aligned.
#[test]
fn much_larger_blocks_elsewhere_are_seen() {
    for more in [0.5, 2.0] {
        let said = probe_all(0.8, (65_536, 4096), more);
        assert_eq!((said.aligned, said.others), (0, 0));
        assert!(said.named > 0);
    }
}

/// A second grid at 0 leaves both aligned.
#[test]
fn a_coarser_grid_at_0_is_aligned() {
    for more in [0.1, 0.5, 2.0] {
        for second in [(8192, 0), (16_384, 0)] {
            let said = probe_all(0.8, second, more);
            assert_eq!(said.aligned, RUNS, "{second:?}: {said:?}");
        }
    }
}

/// Of one grid alone the place is found, as before.
#[test]
fn a_sole_coarser_grid_is_found() {
    for second in [(8192, 4096), (16_384, 4096), (16_384, 12_288)] {
        let said = probe_all(0.0, second, 0.5);
        assert_eq!(said.named, RUNS, "{second:?}: {said:?}");
    }
}

/// Chunks at 0 over cells of 4 KiB: reads within one chunk keep one member busy, those across two share them. By number the
/// boundaries within are slower, and begin off 0; that is no grid.
#[test]
fn boundaries_within_busy_members_are_no_coarser_grid() {
    let mut noted = 0;
    for (chunk, members, spread) in [
        (8192, 2, 0.1),
        (8192, 2, 0.01),
        (16_384, 2, 0.02),
        (8192, 4, 0.05),
        (65_536, 2, 0.05),
    ] {
        for seed in 0..RUNS {
            let mut array = SimulatedArray::new(chunk, members, seed);
            (array.has_parity, array.cell_bytes, array.spread) = (false, FINE, spread);
            array.part_ns = 1e5;
            let probed = probe(&mut array, &settings(seed)).unwrap_or_else(|never| match never {});
            assert_ne!(
                probed.verdict,
                ProbeVerdict::Misaligned,
                "{:?} of {chunk} by {members}",
                probed.grid
            );
            if probed.verdict == ProbeVerdict::Aligned {
                // The question that alternating members leave open is reported.
                let within = probed.coarser_within.expect("more than the margin");
                assert!((0.03..0.2).contains(&within), "{within}");
                noted += 1;
            }
        }
    }
    assert!(noted > 0);
}
