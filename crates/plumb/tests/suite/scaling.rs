//! `docs/scaling.md` has the figures that `bench/scaling.py` computes, and its simulation has those of schedules worked out by hand.

use std::process::Command;

use plumb_testkit::{require, wait};

#[track_caller]
fn ends_well(word: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/scaling.py");
    let done = wait::output_of(Command::new("python3").arg("-B").arg(script).arg(word));
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

#[test]
fn the_figures_are_those_of_the_program() {
    require!(Tool("python3"));
    ends_well("check");
}

#[test]
fn the_simulation_keeps_schedules_worked_out_by_hand() {
    require!(Tool("python3"));
    ends_well("test");
}
