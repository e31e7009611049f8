//! The encoded form: written profiles come back; truncated, changed or forged ones are refused or harmless.

use std::collections::BTreeSet;
use std::process::Command;

use plumb_geometry::Grid;
use plumb_profile::codec::{CodecError, MAGIC, Saved, VERSION, decode, encode};
use plumb_profile::infer::infer;
use plumb_profile::{Select, what_if};
use plumb_testkit::Rng;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::workload::Mixed;

use crate::model::support::{Recording, Spread, random};

/// Byte at which the compressed frame begins.
const HEAD_BYTES: usize = 12;

fn saved(recording: &Recording) -> Saved {
    Saved {
        profiles: recording.profiles(100),
        sources: BTreeSet::from(["a.trace: 300 events".to_owned(), "b.trace".to_owned()]),
        notes: BTreeSet::from(["lost: 3".to_owned()]),
    }
}

fn small() -> Saved {
    saved(&random(
        Spread {
            events: 60,
            ..Spread::SMALL
        },
        4,
    ))
}

fn packed(body: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(&zstd::encode_all(body, 1).expect("room to pack"));
    bytes
}

fn body_of(bytes: &[u8]) -> Vec<u8> {
    zstd::decode_all(&bytes[HEAD_BYTES..]).expect("just packed")
}

/// Asks everything of profiles from an untrusted source: no content may break anything.
fn use_it_all(saved: &Saved) {
    let mut twice = saved.clone();
    twice.merge(saved);
    for profile in twice.profiles.iter() {
        let _ = (
            profile.ios(),
            profile.placed_ios(),
            profile.bytes(),
            profile.timed_ios(),
        );
        let _ = (
            profile.top.most(5),
            profile.timeline.iter().count(),
            profile.ordered.runs(),
        );
        let _ = profile.ordered.in_flight.depth_ns.log_linear_quantile(1, 2);
        for places in std::iter::once(&profile.places).chain(profile.partitions.values()) {
            let _ = infer(places);
            let table = &places.table;
            let _ = table
                .fit(&Grid::ASSUMED, Select::DATA)
                .map(|tally| tally.cells_ratio());
            let _ = (
                table.latency_by_fit(&Grid::ASSUMED),
                table.lengths(Select::DATA),
            );
            let _ = what_if::striped(table, &Grid::ASSUMED, Some(4));
        }
    }
    let bytes = encode(&twice).expect("room to encode");
    assert!(bytes.starts_with(MAGIC));
}

#[test]
fn profiles_read_back_and_equal_ones_have_equal_bytes() {
    let mixed = Mixed {
        events: 60_000,
        devices: 2,
        ..Mixed::default()
    };
    for saved in [
        Saved::default(),
        small(),
        saved(&Recording::from_workload(mixed.iter())),
    ] {
        let bytes = encode(&saved).expect("room to encode");
        let back = decode(&bytes).expect("just written");
        assert_eq!(back, saved);
        let again = encode(&back).expect("room to encode");
        assert_eq!(again, bytes);
    }
}

#[test]
fn a_head_must_be_ours() {
    let bytes = encode(&small()).expect("room to encode");
    assert!(matches!(decode(b""), Err(CodecError::Magic { .. })));
    assert!(matches!(
        decode(b"PLUMBPRx\x01\0\0\0"),
        Err(CodecError::Magic { .. })
    ));
    for version in [0u16, 4, 256, u16::MAX] {
        let mut other = bytes.clone();
        other[8..10].copy_from_slice(&version.to_le_bytes());
        assert!(matches!(decode(&other), Err(CodecError::Version { found }) if found == version));
    }
    for byte in [10, 11] {
        let mut other = bytes.clone();
        other[byte] = 1;
        assert!(matches!(decode(&other), Err(CodecError::Contents { .. })));
    }
}

/// A profile that `plumb analyze --save` of version 1 wrote of 20 generated I/O. Its tables had a cap of 16,384 rows,
/// which merging has to keep.
#[test]
fn version_1_is_read() {
    let bytes = include_bytes!("../../data/version-1.plumb");
    assert_eq!(bytes[8..10], [1, 0]);
    let saved = decode(bytes).expect("version 1 is read");
    let ios: u64 = saved.profiles.iter().map(|profile| profile.ios()).sum();
    assert_eq!(ios, 20);
    let rows_max = |set: &plumb_profile::ProfileSet| -> Vec<usize> {
        set.iter()
            .map(|profile| profile.places.table.rows_max())
            .collect()
    };
    assert!(rows_max(&saved.profiles).iter().all(|&rows| rows == 16_384));
    let mut merged = saved.profiles.clone();
    for profile in saved.profiles.iter() {
        let mut again = profile.clone();
        again.places.table = plumb_profile::Table::default();
        merged.add(&again);
    }
    assert!(rows_max(&merged).iter().all(|&rows| rows == 16_384));
    is_written_anew(bytes, &saved);
}

/// Asserts that a profile of an earlier version is written as the present one, and that the bytes of one version are not
/// those of the next.
fn is_written_anew(bytes: &[u8], saved: &Saved) {
    let now = encode(saved).expect("room to encode");
    assert_eq!(now[8..10], [3, 0]);
    assert_eq!(decode(&now).expect("just written"), *saved);
    let mut bent = bytes.to_vec();
    bent[8] += 1;
    assert!(matches!(decode(&bent), Err(CodecError::Contents { .. })));
}

/// A profile that `plumb analyze --save` of version 2 wrote of 20 generated I/O and a line `# plumb: lost=3
/// missing_files=2`. Its losses have no count of doubtful latencies.
#[test]
fn version_2_is_read() {
    let bytes = include_bytes!("../../data/version-2.plumb");
    assert_eq!(bytes[8..10], [2, 0]);
    let saved = decode(bytes).expect("version 2 is read");
    let [profile] = saved.profiles.iter().collect::<Vec<_>>()[..] else {
        panic!("one device");
    };
    assert_eq!(profile.ios(), 20);
    let losses = &profile.losses;
    assert_eq!(
        (losses.lost, losses.doubtful_latencies, losses.missing_files),
        (3, 0, 2)
    );
    is_written_anew(bytes, &saved);
}

#[test]
fn cut_off_anywhere_it_is_refused() {
    let bytes = encode(&small()).expect("room to encode");
    for len in 0..bytes.len() {
        assert!(
            decode(&bytes[..len]).is_err(),
            "cut after {len} of {} bytes",
            bytes.len()
        );
    }
    let body = body_of(&bytes);
    for len in 0..body.len() {
        assert!(
            decode(&packed(&body[..len])).is_err(),
            "body cut after {len} of {} bytes",
            body.len()
        );
    }
    let longer: Vec<u8> = body.iter().copied().chain([0]).collect();
    assert!(
        decode(&packed(&longer)).is_err(),
        "something follows the profiles"
    );
    let twice: Vec<u8> = bytes.iter().chain(&bytes[HEAD_BYTES..]).copied().collect();
    assert!(decode(&twice).is_err(), "a second frame follows the first");
}

#[test]
fn a_changed_bit_is_found_or_harmless() {
    let saved = small();
    let bytes = encode(&saved).expect("room to encode");
    for bit in 0..bytes.len() * 8 {
        let mut other = bytes.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        if let Ok(found) = decode(&other) {
            assert_eq!(found, saved, "bit {bit}: the checksum must have noticed");
        }
    }
}

/// Behind the checksum: bodies that somebody made up.
#[test]
fn made_up_contents_do_no_harm() {
    let body = body_of(&encode(&small()).expect("room to encode"));
    let mut rng = Rng::announced("made_up_contents", 21);
    let mut read = 0;
    for at in 0..body.len() {
        for byte in [
            0,
            1,
            0x7f,
            0x80,
            0xff,
            body[at] ^ 1 << rng.below(8),
            rng.next_u64() as u8,
        ] {
            let mut other = body.clone();
            other[at] = byte;
            if let Ok(found) = decode(&packed(&other)) {
                read += 1;
                if read % 32 == 0 {
                    use_it_all(&found);
                }
            }
        }
    }
    assert!(
        read > 1_000,
        "{read} bodies could be read: too few to show anything"
    );
    // Several numbers as large as they go.
    for _ in 0..2_000 {
        let mut other = body.clone();
        for _ in 0..rng.between(1, 4) {
            let at = rng.below(other.len() as u64) as usize;
            let one = at + 1;
            other.splice(
                at..one,
                [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            );
        }
        if let Ok(found) = decode(&packed(&other)) {
            use_it_all(&found);
        }
    }
}

fn resident_peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Set in the process that runs this one test: the peak of a process includes the tests beside it.
const ALONE: &str = "PLUMB_CLAIMS_ALONE";

/// A few bytes that claim to be more: lengths that are not there, and lists longer than any profile has.
#[test]
fn claims_of_length_take_no_memory() {
    const MIB: usize = 1 << 20;
    if std::env::var_os(ALONE).is_none() {
        let output = Command::new(std::env::current_exe().expect("path of the test program"))
            .args(["--exact", "model::codec::claims_of_length_take_no_memory"])
            .env(ALONE, "1")
            .limited_output();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("1 passed"), "{said}");
        return;
    }
    let name = |len: usize| [&[1u8][..], &vec![b'x'; len]].concat();
    let before = resident_peak_kib();
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    for count in [
        &[0xff, 0xff, 0xff, 0xff, 0x0f][..],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
    ] {
        bodies.push(count.to_vec());
        bodies.push([count, &vec![0; MIB]].concat());
        bodies.push([count, &vec![1; MIB]].concat());
        bodies.push([&[0][..], count, &name(100)].concat());
    }
    let body = body_of(&encode(&small()).expect("room to encode"));
    let mut rng = Rng::new(3);
    for _ in 0..500 {
        // Any length in the body may become a huge one that a long run of small elements follows.
        let at = rng.below(body.len() as u64) as usize;
        let fill = rng.below(3) as u8;
        bodies.push(
            [
                &body[..at],
                &[0x80, 0x80, 0x80, 0x01],
                &vec![fill; MIB / 2],
                &body[at..],
            ]
            .concat(),
        );
    }
    for body in &bodies {
        let _ = decode(&packed(body));
    }
    if let (Some(before), Some(after)) = (before, resident_peak_kib()) {
        let bodies: usize = bodies.iter().map(Vec::len).sum();
        let grown = (after - before) as usize * 1024;
        assert!(
            grown < bodies + 64 * MIB,
            "{grown} bytes more in use at most"
        );
    }
}

/// A frame that wants a larger window than any that is written takes no memory for it.
#[test]
fn a_frame_with_a_huge_window_is_refused() {
    use std::io::Write;
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).expect("room to pack");
    encoder.window_log(27).expect("a window");
    let zeros = vec![0; 1 << 20];
    (0..5).for_each(|_| encoder.write_all(&zeros).expect("room to pack"));
    let mut bytes = packed(&[]);
    bytes.truncate(HEAD_BYTES);
    bytes.extend(encoder.finish().expect("room to pack"));
    assert!(matches!(decode(&bytes), Err(CodecError::Unpack { .. })));
}

/// Values that only a forger can have written.
mod unbelievable {
    use std::collections::BTreeMap;

    use plumb_profile::Table;
    use plumb_profile::histogram::Counts;
    use plumb_profile::table::{ROWS_MAX, Row};
    use plumb_profile::timeline::{Timeline, WINDOWS_MAX, Window};
    use plumb_profile::top::{NAMES_MAX, ProcessShare, Top};
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;

    fn read<T: DeserializeOwned>(given: &impl Serialize) -> Option<T> {
        postcard::from_bytes(&postcard::to_allocvec(given).expect("room to encode")).ok()
    }

    /// A grid as granularity, offset and kind.
    type GridFields = (u64, u64, u8);

    /// Unit, M to begin with, M, lengths rounded, moduli mixed, spread unknown, region shift, rows, their cap, grids and
    /// sums on them.
    type TableFields = (
        u64,
        u64,
        u64,
        bool,
        bool,
        bool,
        u32,
        Vec<(u64, Row)>,
        (u32, (Vec<GridFields>, Vec<u8>)),
    );

    /// A read of 8 sectors at a residue.
    fn key(residue: u64) -> u64 {
        residue << 35 | 8
    }

    #[test]
    fn tables() {
        let row = Row {
            ios: 2,
            timed: 1,
            ns_sum: 5,
            ns_squared_sum: 25,
            regions: 1,
        };
        let good = || -> TableFields {
            (
                512,
                2048,
                1024,
                false,
                false,
                false,
                20,
                vec![(key(1), row), (key(2), row)],
                (1_024, (vec![(4096, 0, 0), (4096, 512, 0)], Vec::new())),
            )
        };
        let table: Table = read(&good()).expect("nothing is wrong with it");
        assert_eq!((table.modulus_bytes(), table.len()), (1 << 19, 2));
        // A disk ends I/O that an earlier table counted.
        let mut late = good();
        late.7[0].1.timed = 3;
        let late: Table = read(&late).expect("latencies of earlier I/O");
        let timed: Vec<_> = late.iter().map(|(_, row)| row.timed).collect();
        assert_eq!(timed, [3, 1]);
        type Bend = fn(&mut TableFields);
        let refused: [(&str, Bend); 19] = [
            ("unit", |table| table.0 = 256),
            ("M of nothing", |table| table.2 = 0),
            ("M too large", |table| {
                (table.1, table.2) = (1 << 16, 1 << 16)
            }),
            ("M that the first one is no multiple of", |table| {
                table.2 = 1000
            }),
            ("region shift", |table| table.6 = 59),
            ("rows out of order", |table| table.7.swap(0, 1)),
            ("a row twice", |table| table.7[1].0 = table.7[0].0),
            ("residue not below M", |table| table.7[1].0 = key(1024)),
            ("operation", |table| table.7[1].0 = key(2) | 6 << 61),
            ("exact length where lengths are rounded", |table| {
                table.3 = true;
                table.7[1].0 += 1;
            }),
            ("length beyond the longest exact one", |table| {
                table.7[1].0 |= 1 << 34
            }),
            ("a cap too small", |table| table.8.0 = 1_023),
            ("a cap below the rows", |table| {
                let row = table.7[0].1;
                table.7 = (0..1_024)
                    .flat_map(|n| [(key(n), row), (key(n) + 1, row)])
                    .collect();
            }),
            ("a cap too large", |table| table.8.0 = (1 << 20) + 1),
            ("a grid twice", |table| table.8.1.0[1] = (4096, 0, 0)),
            ("grids out of order", |table| table.8.1.0.swap(0, 1)),
            ("a grid that does not divide M", |table| {
                table.8.1.0[1] = (5120, 0, 0);
            }),
            ("sums of a table that is exact", |table| {
                table.8.1.1 = vec![0; 2]
            }),
            ("a rounded table without its sums", |table| table.3 = true),
        ];
        for (what, change) in refused {
            let mut table = good();
            change(&mut table);
            assert!(read::<Table>(&table).is_none(), "{what}");
        }
        let rows = |count| -> TableFields {
            let rows = (0..count)
                .map(|n| (key(n as u64 % 1024) | (n as u64 / 1024) << 60, row))
                .collect();
            let cap = (ROWS_MAX as u32, (Vec::new(), Vec::new()));
            (512, 2048, 1024, false, false, false, 20, rows, cap)
        };
        let mut most = rows(ROWS_MAX);
        most.7
            .iter_mut()
            .enumerate()
            .for_each(|(n, row)| row.0 = key(n as u64 / 512) + n as u64 % 512);
        assert_eq!(
            read::<Table>(&most).map(|table| table.len()),
            Some(ROWS_MAX)
        );
        most.7.push((key(1000), row));
        assert!(read::<Table>(&most).is_none(), "a row too many");
    }

    #[test]
    fn lists_and_maps() {
        assert!(read::<Counts>(&vec![1u64; 976]).is_some());
        assert!(read::<Counts>(&vec![1u64; 977]).is_none());
        let names = |count: usize| (0..count).map(|n| (format!("{n:05}"), ProcessShare::default()));
        let top = |names: Vec<(String, ProcessShare)>| {
            let map = Entries(names);
            read::<Top>(&(0u8, map)).is_some()
        };
        assert!(top(names(NAMES_MAX).collect()));
        assert!(!top(names(NAMES_MAX + 1).collect()));
        assert!(!top(names(2)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect()));
        let windows = |count: i64| -> BTreeMap<i64, Window> {
            (0..count).map(|n| (n, Window::default())).collect()
        };
        assert!(read::<Timeline>(&(20u32, 20u32, windows(WINDOWS_MAX as i64))).is_some());
        assert!(read::<Timeline>(&(20u32, 20u32, windows(WINDOWS_MAX as i64 + 1))).is_none());
    }

    /// A map in the order given.
    struct Entries(Vec<(String, ProcessShare)>);

    impl Serialize for Entries {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(name, share)| (name, share)))
        }
    }

    #[test]
    fn a_profile_under_another_name() {
        let body = body_of(&encode(&small()).expect("room to encode"));
        let at = body
            .windows(3)
            .position(|bytes| bytes == b"sda")
            .expect("a device of that name");
        let mut other = body.clone();
        other[at + 2] = b'A';
        let Err(CodecError::Contents { what }) = decode(&packed(&other)) else {
            panic!("it is taken");
        };
        insta::assert_snapshot!(what);
    }
}
