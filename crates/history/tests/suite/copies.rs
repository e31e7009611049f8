//! Copies of a store.

use plumb_history::{Reader, Settings, Writer};
use plumb_testkit::temp_dir;

use crate::support::{BEGIN, Load, feed, ios};

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
