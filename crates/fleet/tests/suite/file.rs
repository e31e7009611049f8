//! Fleet files: a reader gets the hosts that were written, and refuses damage at any byte.

use std::io::Cursor;

use plumb_fleet::file::decode;
use plumb_fleet::{FleetError, FleetReader, HostFacts};

use crate::support::{host, input, written};

fn two_hosts() -> Vec<plumb_fleet::HostIo> {
    let mut db = host(&[
        input("db1", "db1/a", "sda", 3),
        input("db1", "db1/b", "sdb", 4),
    ]);
    db.facts.unread.insert("db1/c".to_owned());
    vec![db, input("web", "web/a", "sda", 5)]
}

#[test]
fn hosts_are_read_back() {
    let hosts = two_hosts();
    let bytes = written(&hosts);
    assert_eq!(decode(&bytes).expect("whole"), hosts);
    assert_eq!(bytes, written(&decode(&bytes).expect("whole")));
    assert_eq!(decode(&written(&[])).expect("whole"), []);
    let facts = &hosts[0].facts;
    let time = facts.observed.values().map(|time| time.known_ns());
    assert!(time.eq([Some(3_000_000_000), Some(4_000_000_000)]));
}

#[test]
fn every_damage_is_refused() {
    let bytes = written(&two_hosts());
    for at in 0..bytes.len() {
        assert!(decode(&bytes[..at]).is_err(), "cut at byte {at}");
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(decode(&flipped).is_err(), "byte {at} flipped");
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(matches!(decode(&longer), Err(FleetError::Damaged { .. })));
}

#[test]
fn other_files_are_named() {
    let mut bytes = written(&[]);
    bytes[8] = 9;
    assert!(matches!(
        decode(&bytes),
        Err(FleetError::Version { found: 9 })
    ));
    for other in [&b""[..], b"PLUMB", b"PLUMBPRF\x03\0\0\0"] {
        assert!(matches!(decode(other), Err(FleetError::Magic { .. })));
    }
}

#[test]
fn records_have_one_order() {
    let [one, other] = [input("a", "a/x", "sda", 1), input("b", "b/x", "sda", 1)];
    // Records of two files, one behind the other in the wrong order: the check depends on the bytes before.
    let first = written(&[one.clone(), other.clone()]);
    let alone = written(&[other]);
    let record = alone.len() - 12 - 24;
    let swapped = [
        &first[..12],
        &alone[12..12 + record],
        &first[12..first.len() - 24 - record],
        &first[first.len() - 24..],
    ]
    .concat();
    assert_eq!(swapped.len(), first.len());
    assert!(decode(&swapped).is_err());
}

#[test]
fn lengths_are_checked_before_room_is_made() {
    let head = &written(&[])[..12];
    for lengths in [[u32::MAX, 0], [1 << 26, 1 << 30], [0, u32::MAX]] {
        let lengths = lengths.map(u32::to_le_bytes).concat();
        assert!(decode(&[head, &lengths].concat()).is_err());
    }
}

/// Facts without profiles are those of a whole read, and damage of facts, lengths and the end is found.
#[test]
fn facts_are_read_without_profiles() {
    let hosts = two_hosts();
    let bytes = written(&hosts);
    let facts = |bytes: &[u8]| -> Result<Vec<HostFacts>, FleetError> {
        let mut reader = FleetReader::new(Cursor::new(bytes))?;
        std::iter::from_fn(|| reader.skip_profiles().transpose()).collect()
    };
    let known: Vec<HostFacts> = hosts.iter().map(|host| host.facts.clone()).collect();
    assert_eq!(facts(&bytes).expect("whole"), known);
    for at in 0..bytes.len() {
        assert!(facts(&bytes[..at]).is_err(), "cut at byte {at}");
    }
    // The profiles of the first host begin behind its lengths and facts.
    let facts_len = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
    let mut flipped = bytes.clone();
    flipped[20 + facts_len as usize + 9] ^= 1;
    let read = facts(&flipped).expect("facts are whole");
    assert_eq!(read, known);
    assert!(decode(&flipped).is_err());
}
