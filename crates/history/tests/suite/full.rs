//! A file system of 64 MiB without room: the writer goes on in memory, deletes nothing, and stores everything later.

use std::fs;
use std::path::Path;
use std::process::Command;

use plumb_history::{HistoryError, Settings, Tier, Writer};
use plumb_testkit::{require, temp_dir};

use crate::support::{BEGIN, DAY, Load, MINUTE, add, feed, ios, ios_of_tier, is_sound};

/// A file system in memory, which is unmounted in any case.
struct Mounted<'p>(&'p Path);

impl<'p> Mounted<'p> {
    fn new(folder: &'p Path) -> Option<Mounted<'p>> {
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64m,mode=0700", "plumb-history"])
            .arg(folder)
            .status();
        done.is_ok_and(|status| status.success())
            .then_some(Mounted(folder))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn without_room_nothing_is_lost() {
    require!(Root);
    let room = temp_dir("full");
    let Some(mounted) = Mounted::new(room.path()) else {
        panic!("cannot mount a tmpfs as root");
    };
    let folder = mounted.0;
    let mut writer = Writer::open(folder, Settings::default()).expect("a store");
    let before = Load::new(1, BEGIN, 60, 20, 64);
    feed(&mut writer, &before);
    let stored = ios_of_tier(folder, Tier::FiveMinutes);
    // Fill it to the last byte.
    let filler = folder.join("filler");
    let block = vec![1u8; 64 << 10];
    let mut file = fs::File::create(&filler).expect("a file");
    while std::io::Write::write_all(&mut file, &block).is_ok() {}
    drop(file);
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
