//! A file system of 64 MiB without room, or read-only: the writer goes on in memory, deletes nothing, and stores everything later.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_history::{
    DeviceIncrement, FindingKey, FindingStep, HistoryError, Reader, Settings, Tier, Writer,
};
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, temp_dir};

use crate::support::{
    BEGIN, DAY, EVER, IDENTITY, Load, MINUTE, add, exact, feed, ios, ios_of_tier, is_sound,
};

/// A file system in memory, which is unmounted in any case.
struct SmallDisk<'p>(&'p Path);

impl<'p> SmallDisk<'p> {
    fn new(folder: &'p Path) -> Option<SmallDisk<'p>> {
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64m,mode=0700", "plumb-history"])
            .arg(folder)
            .status();
        done.is_ok_and(|status| status.success())
            .then_some(SmallDisk(folder))
    }
}

impl SmallDisk<'_> {
    /// Mounts it again with an option.
    fn remount(&self, option: &str) {
        let mut command = Command::new("mount");
        let done = command
            .args(["-o", &format!("remount,{option}")])
            .arg(self.0);
        assert!(done.limited_status().success());
    }
}

/// Fills a file system to the last byte.
fn fill(folder: &Path) -> PathBuf {
    let filler = folder.join("filler");
    let block = vec![1u8; 64 << 10];
    let mut file = fs::File::create(&filler).expect("a file");
    while std::io::Write::write_all(&mut file, &block).is_ok() {}
    filler
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn without_room_nothing_is_lost() {
    require!(Root);
    let room = temp_dir("full");
    let Some(mounted) = SmallDisk::new(room.path()) else {
        panic!("cannot mount a tmpfs as root");
    };
    let folder = mounted.0;
    let mut writer = Writer::open(folder, Settings::default()).expect("a store");
    let before = Load::new(1, BEGIN, 60, 20, 64);
    feed(&mut writer, &before);
    let stored = ios_of_tier(folder, Tier::FiveMinutes);
    let filler = fill(folder);
    let during = Load::new(2, BEGIN + 60 * MINUTE, 60, 20, 64);
    let mut failed = 0;
    for (span, profile) in &during.increments {
        add(&mut writer, *span, profile);
        match writer.checkpoint(span.to_ns) {
            Ok(()) => {}
            Err(HistoryError::Sql { .. }) => failed += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(failed > 0, "the file system never was full");
    assert!(ios_of_tier(folder, Tier::FiveMinutes) >= stored);
    fs::remove_file(&filler).expect("room again");
    writer.checkpoint(BEGIN + 2 * DAY).expect("a checkpoint");
    let expected = before.whole().ios() + during.whole().ios();
    assert_eq!(ios(folder), expected);
    for tier in Tier::ALL {
        assert_eq!(ios_of_tier(folder, tier), expected, "{tier:?}");
    }
    assert!(is_sound(folder));
}

/// A writer that begins without room counts in memory, and adds its I/O to those of the run before as soon as there is room.
#[test]
fn a_start_without_room_begins_in_memory() {
    require!(Root);
    for is_full in [true, false] {
        let room = temp_dir("full-start");
        let Some(mounted) = SmallDisk::new(room.path()) else {
            panic!("cannot mount a tmpfs as root");
        };
        let folder = mounted.0.join("store");
        // A run that ended within a window of each tier; in it the other device has the first number.
        let before = Load::new(3, BEGIN, 67, 20, 64);
        let (mut writer, refused) =
            Writer::open_or_begin_in_memory(&folder, exact()).expect("a store");
        assert!(refused.is_none() && !writer.is_in_memory());
        let other = DeviceIncrement {
            identity: "other",
            name: "sdb",
            profile: &before.increments[0].1,
            senders: None,
        };
        writer.add(before.increments[0].0, &other).expect("room");
        feed(&mut writer, &before);
        drop(writer);
        let filler = is_full.then(|| fill(mounted.0));
        if !is_full {
            mounted.remount("ro");
        }
        let (mut writer, refused) =
            Writer::open_or_begin_in_memory(&folder, exact()).expect("memory");
        assert!(refused.is_some_and(|why| why.is_refused_write()));
        // Windows of each tier close meanwhile; the first one of 5 minutes is that of the run before.
        let during = Load::new(4, BEGIN + 68 * MINUTE, 24 * 60, 5, 64);
        for (span, profile) in &during.increments {
            add(&mut writer, *span, profile);
            if span.to_ns % (5 * MINUTE) == 0 {
                let refused = writer.checkpoint(span.to_ns).expect_err("no room");
                assert!(refused.is_refused_write(), "{refused}");
            }
        }
        let key = FindingKey {
            rule: "misaligned-io".to_owned(),
            place: "sda".to_owned(),
        };
        let step = FindingStep::Found {
            severity: "warning".to_owned(),
            facts: "{}".to_owned(),
        };
        writer.note_finding(BEGIN + DAY, key.clone(), step);
        assert!(writer.is_in_memory());
        match filler {
            Some(filler) => fs::remove_file(filler).expect("room again"),
            None => mounted.remount("rw"),
        }
        writer.checkpoint(BEGIN + 3 * DAY).expect("a checkpoint");
        assert!(!writer.is_in_memory());
        let reader = Reader::open(&folder, &exact()).expect("a store");
        let series = reader.series().expect("devices");
        let identities: Vec<&str> = series.iter().map(|one| one.identity.as_str()).collect();
        assert_eq!(identities, ["other", IDENTITY]);
        let expected = before.whole().ios() + during.whole().ios();
        for tier in Tier::ALL {
            let rows = reader.glance(tier, EVER, Some(1)).expect("rows");
            let sum: u64 = rows.iter().map(|row| row.glance.ios).sum();
            assert_eq!(sum, expected, "{tier:?}");
        }
        let findings = reader.findings().expect("findings");
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].key, key);
        assert!(is_sound(&folder));
    }
}

/// Other reasons than refused writes end a start.
#[test]
fn a_start_for_other_reasons_fails() {
    let room = temp_dir("full-other");
    let _first = Writer::open(room.path(), Settings::default()).expect("a store");
    let second = Writer::open_or_begin_in_memory(room.path(), Settings::default());
    assert!(matches!(second, Err(HistoryError::InUse { .. })));
}
