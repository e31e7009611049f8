//! The cap and the times of the tiers.

use std::path::Path;

use plumb_history::{Notice, Reader, Settings, Tier, Writer};
use plumb_testkit::{require, temp_dir};

use crate::support::{BEGIN, DAY, EVER, HOUR, Load, MINUTE, add, feed, ios_of_tier, is_sound};

fn bytes_of(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).expect("its folder");
    files
        .map(|file| file.expect("a file").metadata().expect("its size").len())
        .sum()
}

#[test]
fn the_cap_holds_and_the_oldest_of_the_finest_tier_goes() {
    require!(Patience);
    let room = temp_dir("cap");
    let settings = Settings {
        bytes_max: 8 << 20,
        ..Settings::default()
    };
    let mut writer = Writer::open(room.path(), settings.clone()).expect("a store");
    let mut evicted = 0;
    let mut expected = 0;
    for day in 0..12 {
        let load = Load::new(day, BEGIN + day as i64 * 6 * HOUR, 6 * 60, 60, 600);
        expected += load.whole().ios();
        for (span, profile) in &load.increments {
            add(&mut writer, *span, profile);
            if span.to_ns % (5 * MINUTE) == 0 {
                writer.checkpoint(span.to_ns).expect("a checkpoint");
                assert!(bytes_of(room.path()) <= settings.bytes_max);
            }
        }
        for notice in writer.take_notices() {
            match notice {
                Notice::Evicted { windows } => evicted += windows,
                other => panic!("{other:?}"),
            }
        }
    }
    writer.checkpoint(BEGIN + 4 * DAY).expect("a checkpoint");
    assert!(
        evicted > 0,
        "the cap was not reached: {}",
        bytes_of(room.path())
    );
    // The coarse tiers have everything.
    assert_eq!(ios_of_tier(room.path(), Tier::Day), expected);
    assert!(ios_of_tier(room.path(), Tier::FiveMinutes) < expected);
    assert!(is_sound(room.path()));
    let reader = Reader::open(room.path(), &settings).expect("a store");
    let estimate = reader.estimate(&settings).expect("an estimate");
    assert!(estimate.used_bytes <= estimate.cap_bytes);
    assert!(
        estimate
            .full_bytes
            .is_some_and(|full| full > estimate.cap_bytes)
    );
    assert!(estimate.reach_ns[0] < settings.tiers[0].keep_ns);
}

#[test]
fn windows_past_their_time_go_and_a_wrong_clock_takes_few() {
    let room = temp_dir("aged");
    let load = Load::new(1, BEGIN, 12 * 60, 3, 16);
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    feed(&mut writer, &load);
    let rows = |tier| {
        let reader = Reader::open(room.path(), &Settings::default()).expect("a store");
        reader.glance(tier, EVER, None).expect("rows").len()
    };
    writer.checkpoint(BEGIN + DAY).expect("a checkpoint");
    assert_eq!((rows(Tier::FiveMinutes), rows(Tier::Hour)), (144, 12));
    // A clock that is years ahead for one checkpoint takes four windows of each tier.
    writer.checkpoint(BEGIN + 5000 * DAY).expect("a checkpoint");
    assert_eq!((rows(Tier::FiveMinutes), rows(Tier::Hour)), (140, 8));
    // At its time, all of the fine tier goes.
    for minute in 0..60 {
        let now = BEGIN + 4 * DAY + minute * MINUTE;
        writer.checkpoint(now).expect("a checkpoint");
    }
    assert_eq!((rows(Tier::FiveMinutes), rows(Tier::Hour)), (0, 8));
}
