//! Copies of a store, and links to one.

use std::fs;
use std::os::unix::fs::symlink;

use plumb_history::{Reader, SeriesFacts, Settings, Tier, Window, Writer};
use plumb_testkit::temp_dir;
use plumb_trace::Layer;

use crate::support::{BEGIN, DAY, EVER, HOUR, Load, feed, ios, is_sound, plain, read};

/// Bytes 18 and 19 of a file are 1 without a log and 2 with one. A file with a log can only be read in a folder that its reader may write.
#[test]
fn a_copy_has_no_log() {
    let (store, copy) = (temp_dir("copied"), temp_dir("copy"));
    let mut writer = Writer::open(store.path(), Settings::default()).expect("a store");
    feed(&mut writer, &Load::new(7, BEGIN, 180, 20, 8));
    let reader = Reader::open(store.path(), &Settings::default()).expect("a store");
    let made = reader.back_up(copy.path()).expect("a copy");
    assert_eq!(made.len(), 2);
    for file in made {
        let bytes = std::fs::read(&file).expect("a file");
        assert_eq!(bytes.get(18..20), Some(&[1, 1][..]), "{}", file.display());
    }
    let entries = std::fs::read_dir(copy.path()).expect("a folder");
    assert_eq!(entries.count(), 2);
    assert_eq!(ios(copy.path()), ios(store.path()));
    assert!(ios(copy.path()) > 0);
}

/// A window that is copied to another store has the I/O of the original, at its own time and under its own device.
#[test]
fn a_copied_window_has_its_own_device_and_time() {
    let (room, other) = (temp_dir("original"), temp_dir("copied"));
    let load = Load::new(5, BEGIN, 60, 4, 16);
    let mut writer = Writer::open(room.path(), Settings::default()).expect("a store");
    feed(&mut writer, &load);
    writer.checkpoint(BEGIN + DAY).expect("a checkpoint");
    let reader = Reader::open(room.path(), &Settings::default()).expect("a store");
    let device = SeriesFacts {
        number: 9,
        identity: "naa.5000c500".to_owned(),
        layer: Layer::Request,
        names: vec![(0, "sdq".to_owned())],
        span: None,
    };
    let (hour, copied) = (
        Window::at(Tier::Hour, BEGIN),
        Window::at(Tier::Hour, BEGIN + 30 * HOUR),
    );
    let mut writer = Writer::open(other.path(), Settings::default()).expect("a store");
    let none = Window::at(Tier::Hour, BEGIN + HOUR);
    assert!(
        !writer
            .copy_window(&reader, (0, none), &device, copied)
            .expect("no window")
    );
    assert!(
        writer
            .copy_window(&reader, (0, hour), &device, copied)
            .expect("a window")
    );
    writer.checkpoint(BEGIN + 31 * HOUR).expect("a checkpoint");
    let mut expected = reader
        .profile(&reader.series().expect("devices")[0], hour.span())
        .expect("files")
        .expect("I/O");
    let found = read(other.path(), EVER).expect("I/O");
    assert_eq!((found.span, found.damaged), (copied.span(), 0));
    assert_eq!(found.profile.device, "sdq");
    expected.profile.device.clone_from(&found.profile.device);
    for time in [
        &mut expected.profile.first_ns,
        &mut expected.profile.last_ns,
    ] {
        *time = time.map(|ns| ns + 30 * HOUR);
    }
    assert_eq!(plain(found.profile), plain(expected.profile));
    assert!(is_sound(other.path()));
}

/// systemd makes the folder of a unit with `DynamicUser` a link to a private one. A link in place of a file stays refused.
#[test]
fn a_folder_may_be_a_link() {
    let room = temp_dir("linked");
    let (folder, link) = (room.path().join("private"), room.path().join("store"));
    fs::create_dir(&folder).expect("room");
    symlink(&folder, &link).expect("room");
    let mut writer = Writer::open(&link, Settings::default()).expect("a store");
    feed(&mut writer, &Load::new(7, BEGIN, 180, 20, 8));
    drop(writer);
    assert!(ios(&link) > 0);
    assert_eq!(ios(&link), ios(&folder));
    let (file, elsewhere) = (folder.join("recent.db"), room.path().join("elsewhere.db"));
    fs::rename(&file, &elsewhere).expect("the file");
    symlink(&elsewhere, &file).expect("room");
    assert!(Writer::open(&folder, Settings::default()).is_err());
}
