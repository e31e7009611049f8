//! Copies of a store that is written meanwhile.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use plumb_history::{Reader, Settings, Tier, Writer};
use plumb_testkit::temp_dir;

use crate::support::{BEGIN, DAY, Load, MINUTE, exact, feed, ios, ios_of_tier};

#[test]
fn copies_are_for_their_owner_alone() {
    let room = temp_dir("backup-mode");
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    feed(&mut writer, &Load::new(1, BEGIN, 12, 10, 32));
    let copy = temp_dir("backup-mode-copy");
    let reader = Reader::open(room.path(), &Settings::default()).expect("a store");
    let made = reader.back_up(copy.path()).expect("a copy");
    // The order matters: see the next test.
    let expected: Vec<PathBuf> = ["history.db", "recent.db"]
        .map(|name| copy.path().join(name))
        .to_vec();
    assert_eq!(made, expected);
    for file in &made {
        let mode = fs::metadata(file).expect("its file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    assert_eq!(ios(copy.path()), ios(room.path()));
    assert!(
        reader.back_up(copy.path()).is_err(),
        "a copy is never replaced"
    );
}

/// A window that closes between the two copies is in one of them, and counts once.
#[test]
fn a_window_that_closes_meanwhile_is_kept() {
    let room = temp_dir("backup");
    let mut writer = Writer::open(room.path(), exact()).expect("a store");
    let before = Load::new(1, BEGIN, 8, 10, 32);
    feed(&mut writer, &before);
    let back_up = |name: &str| {
        let copy = temp_dir(name);
        let reader = Reader::open(room.path(), &exact()).expect("a store");
        reader.back_up(copy.path()).expect("a copy");
        copy
    };
    let first = back_up("backup-first");
    // The second window of 5 minutes closes.
    writer
        .checkpoint(BEGIN + 10 * MINUTE)
        .expect("a checkpoint");
    let second = back_up("backup-second");
    let all = before.whole().ios();
    for (history, recent, is_whole) in [(&first, &second, true), (&second, &first, false)] {
        let both = temp_dir("backup-both");
        for (name, from) in [("history.db", history), ("recent.db", recent)] {
            fs::copy(from.path().join(name), both.path().join(name)).expect("a copy");
        }
        assert_eq!(ios(both.path()), all);
        let mut writer = Writer::open(both.path(), exact()).expect("a store");
        writer.checkpoint(BEGIN + 2 * DAY).expect("a checkpoint");
        for tier in [Tier::Hour, Tier::Day] {
            assert_eq!(ios_of_tier(both.path(), tier), all, "{tier:?}");
        }
        let fine = ios_of_tier(both.path(), Tier::FiveMinutes);
        assert_eq!(fine == all, is_whole, "{fine} of {all}");
    }
}
