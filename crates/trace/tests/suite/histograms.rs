//! Ready-made histograms and totals, and traces of Solaris: shapes of lines written by hand, real outputs
//! (counted apart with Python, see `EXPECTED.json` beside them), and damaged input.

use plumb_testkit::{real_trace, require};
use std::path::Path;

use plumb_trace::input::Input;
use plumb_trace::open::{open_input, pieces};
use plumb_trace::{
    AlignTotals, Batch, Bucket, Distribution, Event, Fill, Layer, Measured, Op, ReadOptions,
    SourceInfo,
};

struct All {
    events: Vec<(String, Event)>,
    histograms: Vec<Distribution>,
    totals: Vec<AlignTotals>,
    info: SourceInfo,
}

fn drain(mut reader: Box<dyn plumb_trace::Reader>) -> Result<All, plumb_trace::Error> {
    let info = SourceInfo::default();
    let mut all = All {
        events: Vec::new(),
        histograms: Vec::new(),
        totals: Vec::new(),
        info,
    };
    let mut batch = Batch::default();
    loop {
        match reader.fill(&mut batch)? {
            Fill::End => break,
            Fill::Events => all.events.extend(batch.events().map(|event| {
                (
                    batch.names.devices()[event.device as usize].name.clone(),
                    event,
                )
            })),
            Fill::Distribution(histogram) => all.histograms.push(histogram),
            Fill::Totals(totals) => all.totals.push(totals),
            Fill::Residue(_) => panic!("no residue table here"),
        }
    }
    all.info = reader.info().clone();
    Ok(all)
}

fn try_read(text: &[u8]) -> Result<All, plumb_trace::Error> {
    let input = Input::from_reader("test", Box::new(std::io::Cursor::new(text.to_vec())))?;
    drain(open_input(input, &ReadOptions::default())?)
}

fn read(text: &str) -> All {
    try_read(text.as_bytes()).expect(text)
}

fn try_file(path: &Path) -> Result<All, plumb_trace::Error> {
    let piece = pieces(&[path.to_owned()]).remove(0);
    drain(plumb_trace::open::open(&piece, &ReadOptions::default())?)
}

fn sum(histogram: &Distribution) -> u64 {
    histogram.buckets.iter().map(|bucket| bucket.ios).sum()
}

fn bucket(low: i64, high: i64, ios: u64) -> Bucket {
    Bucket {
        low: Some(low),
        high: Some(high),
        ios,
    }
}

const VSCSI_HEAD: &str = ",virtual machine worldGroupID,20,virtual disk handleID,8 (scsi0:0)\n";

fn vscsi(what: &str, count: u64, rows: &str) -> String {
    format!(
        "Histogram: {what}{VSCSI_HEAD}min,-3\nmax,9\nmean,1\ncount,{count}\nFrequency,Histogram Bucket Limit\n{rows}"
    )
}

#[test]
fn limits_of_vscsistats_become_buckets_in_bytes_and_ns() {
    let open = |low, high, ios| Bucket { low, high, ios };
    for (what, measured, op, first, second, last, extremes) in [
        (
            "IO lengths of Write commands",
            Measured::LenBytes,
            Some(Op::Write),
            (Some(0), Some(1)),
            (Some(2), Some(4)),
            Some(5),
            (-3, 9, 1),
        ),
        // One block from the last block of the command before is 0 bytes from its end.
        (
            "distance (in LBNs) between successive commands",
            Measured::SeekBytes,
            None,
            (None, Some(0)),
            (Some(512), Some(1536)),
            Some(2048),
            (-2048, 4096, 0),
        ),
        (
            "latency of Read IOs in Microseconds (us)",
            Measured::DeviceNs,
            Some(Op::Read),
            (Some(0), Some(1999)),
            (Some(2000), Some(4999)),
            Some(5000),
            (-3000, 9000, 1000),
        ),
        (
            "latency of IO interarrival time for Reads in Microseconds (us)",
            Measured::InterarrivalNs,
            Some(Op::Read),
            (Some(0), Some(1999)),
            (Some(2000), Some(4999)),
            Some(5000),
            (-3000, 9000, 1000),
        ),
        (
            "number of outstanding IOs when a new IO is issued",
            Measured::Depth,
            None,
            (Some(0), Some(1)),
            (Some(2), Some(4)),
            Some(5),
            (-3, 9, 1),
        ),
    ] {
        let all = read(&vscsi(what, 15, "1,1\n4,4\n10,4\n"));
        let [histogram] = &all.histograms[..] else {
            panic!("{what}")
        };
        assert_eq!((histogram.measured, histogram.op), (measured, op), "{what}");
        assert_eq!(
            histogram.buckets,
            [
                open(first.0, first.1, 1),
                open(second.0, second.1, 4),
                open(last, None, 10)
            ],
            "{what}"
        );
        assert_eq!(histogram.min_max_mean, Some(extremes), "{what}");
        assert_eq!(histogram.subject, "vm 20 disk 8 (scsi0:0)");
    }
}

#[test]
fn damaged_sections_of_vscsistats_are_left_out_and_counted() {
    let good = vscsi("IO lengths of commands", 5, "1,1\n4,4\n0,4\n");
    for (bad, damaged) in [
        (vscsi("IO lengths of commands", 6, "1,1\n4,4\n0,4\n"), 1),
        (vscsi("IO lengths of commands", 1, "1,1\nNaN,4\n"), 1),
        (vscsi("IO lengths of commands", 5, "1,4\n4,1\n"), 1),
        (
            vscsi("IO lengths of commands", 0, "18446744073709551615,1\n1,2\n"),
            1,
        ),
        (vscsi("latency of IOs", 1, "1,9223372036854775807\n"), 1),
        (
            vscsi(
                "distance (in LBNs) between successive commands",
                1,
                "1,-9223372036854775808\n",
            ),
            1,
        ),
        ("Histogram: cut".to_owned(), 1),
    ] {
        let all = read(&format!("{good}{bad}"));
        assert_eq!(
            (all.histograms.len(), all.info.counts.damaged),
            (1, damaged),
            "{bad}"
        );
    }
}

#[test]
fn real_output_of_vscsistats_matches_its_own_counts() {
    require!(RealTraces);
    let (path, expected) = (
        real_trace("vscsiStats/algonquin.csv"),
        real_trace("EXPECTED.json"),
    );
    let text = std::fs::read_to_string(expected).expect("reads");
    let expected: serde_json::Value = serde_json::from_str(&text).expect("parses");
    let detail = expected["vscsiStats/algonquin.csv"]["detail"]
        .as_object()
        .expect("an object");
    let all = try_file(&path).expect("reads");
    // The distance to the closest of 16 is the one that is left out.
    assert_eq!(
        (detail.len(), all.histograms.len(), all.info.counts.damaged),
        (16, 15, 0)
    );
    for (name, figures) in detail.iter().filter(|(name, _)| !name.contains("closest")) {
        let op = match name {
            name if name.contains("Read") => Some(Op::Read),
            name if name.contains("Write") => Some(Op::Write),
            _ => None,
        };
        let (measured, scale, shift) = match name {
            name if name.contains("lengths") => (Measured::LenBytes, 1, 0),
            name if name.contains("distance") => (Measured::SeekBytes, 512, -1),
            name if name.contains("outstanding") => (Measured::Depth, 1, 0),
            name if name.contains("interarrival") => (Measured::InterarrivalNs, 1000, 0),
            _ => (Measured::DeviceNs, 1000, 0),
        };
        let found: Vec<_> = all
            .histograms
            .iter()
            .filter(|found| (found.measured, found.op) == (measured, op))
            .collect();
        let [found] = found[..] else {
            panic!("{name}: {} histograms", found.len())
        };
        let figure = |key: &str| (figures[key].as_i64().expect(key) + shift) * scale;
        assert_eq!(Some(sum(found)), figures["count"].as_u64(), "{name}");
        assert_eq!(
            Some(found.buckets.len() as u64),
            figures["nbins"].as_u64(),
            "{name}"
        );
        assert_eq!(
            found.min_max_mean,
            Some((figure("min"), figure("max"), figure("mean"))),
            "{name}"
        );
        assert!(
            found.buckets.last().is_some_and(|last| last.high.is_none()),
            "{name}"
        );
    }
    // 42 of 512 B or less, 13 in 2049..=4095, 608 of 4096: read off the file.
    let lengths = &all.histograms[0].buckets;
    assert_eq!(
        (lengths[0], lengths[3], lengths[4]),
        (
            bucket(0, 512, 42),
            bucket(2049, 4095, 13),
            bucket(4096, 4096, 608)
        )
    );
    // 213 sequential commands.
    let seeks = all
        .histograms
        .iter()
        .find(|found| found.measured == Measured::SeekBytes)
        .expect("one");
    assert!(seeks.buckets.contains(&bucket(0, 0, 213)));
}

const DISTRIBUTION: &str = "           value  ------------- Distribution ------------- count    \n";

#[test]
fn rows_of_quantize_are_ranges_of_what_the_tool_counts() {
    let table = format!(
        "  22349  tar cf /dev/null\\0\n\n{DISTRIBUTION}  -4 | 1\n  -1 |@ 2\n  0 |@@ 3\n  1 | 4\n  8 | 5\n"
    );
    let all = read(&format!(
        "# ./seeksize.d\nTracing... Hit Ctrl-C to end.\n^C\n{table}"
    ));
    let [seeks] = &all.histograms[..] else {
        panic!("one")
    };
    assert_eq!(
        (seeks.measured, seeks.subject.as_str()),
        (Measured::SeekBytes, "22349 tar cf /dev/null")
    );
    assert_eq!(
        seeks.buckets,
        [
            bucket(-7 * 512, -4 * 512, 1),
            bucket(-512, -512, 2),
            bucket(0, 0, 3),
            bucket(512, 512, 4),
            bucket(8 * 512, 15 * 512, 5),
        ]
    );
    // The same table under no tool's name may be anything.
    let all = read(&table);
    assert!(
        all.histograms.is_empty() && all.info.notes[0].contains("write `bitesize` or `seeksize`")
    );
}

#[test]
fn a_bare_histogram_of_lengths_is_taken_for_that_with_a_note() {
    let all = read(&format!(
        "\n  sd\n{DISTRIBUTION}  256 | 0\n  512 |@ 7\n  65536 |@@ 9\n  131072 | 0\n"
    ));
    let [lengths] = &all.histograms[..] else {
        panic!("one")
    };
    assert_eq!(
        (lengths.measured, lengths.subject.as_str(), sum(lengths)),
        (Measured::LenBytes, "sd", 16)
    );
    assert_eq!(lengths.buckets[2], bucket(65_536, 131_071, 9));
    assert!(all.info.notes[0].contains("no tool is named"));
    for other in [
        "  8 | 1\n  16 | 1\n",
        "  134217728 | 1\n",
        "  < 0 | 0\n  0 | 5\n  >= 9 | 1\n",
        "  2303 | 5\n",
    ] {
        assert!(
            read(&format!("sd\n{DISTRIBUTION}{other}"))
                .histograms
                .is_empty(),
            "{other}"
        );
    }
}

#[test]
fn damaged_rows_of_a_histogram_are_counted() {
    for bad in [
        "x | 5",
        "1024 | NaN",
        "1024 |",
        "1023 | 5",
        "256 | 5",
        "9223372036854775808 | 1",
        "1024 | -5",
    ] {
        let all = read(&format!("bitesize\n{DISTRIBUTION} 512 |@ 7\n {bad}\n"));
        assert_eq!(
            (all.histograms.len(), all.info.counts.damaged),
            (1, 1),
            "{bad}"
        );
        assert_eq!(sum(&all.histograms[0]), 7, "{bad}");
    }
    let head = "Process Name = 'x y'\n     Kbytes              : count     distribution\n";
    for bad in [
        "4 -> 2 : 1",
        "-4 -> 7 : 1",
        "4 -> 9223372036854775807 : 1",
        "4 -> 7 : x",
        "0 -> 1 : 1 |*|",
    ] {
        let all = read(&format!(
            "{head}  0 -> 1          : 3        |****|\n  {bad}\n"
        ));
        assert_eq!(all.info.counts.damaged, 1, "{bad}");
        assert_eq!(
            (all.histograms[0].subject.as_str(), sum(&all.histograms[0])),
            ("x y", 3)
        );
        assert_eq!(all.histograms[0].buckets, [bucket(0, 2047, 3)]);
    }
}

#[test]
fn example_outputs_of_quantize_and_bitesize() {
    require!(RealTraces);
    for (path, histograms, ios, measured, layer) in [
        (
            "dtrace/bitesize_example.txt",
            6,
            7364,
            Measured::LenBytes,
            Layer::Bio,
        ),
        (
            "dtrace/seeksize_example.txt",
            5,
            8523,
            Measured::SeekBytes,
            Layer::Bio,
        ),
        (
            "bcc/bitesize_example.txt",
            9,
            2540,
            Measured::LenBytes,
            Layer::Request,
        ),
    ] {
        let path = real_trace(path);
        let all = try_file(&path).expect("reads");
        assert_eq!(
            (
                all.histograms.len(),
                all.histograms.iter().map(sum).sum::<u64>()
            ),
            (histograms, ios)
        );
        assert!(
            all.histograms
                .iter()
                .all(|found| found.measured == measured && !found.subject.is_empty())
        );
        assert_eq!(
            (all.info.layers.as_slice(), all.info.counts.damaged),
            (&[layer][..], 0)
        );
    }
    let path = real_trace("bcc/bitesize_example.txt");
    let all = try_file(&path).expect("reads");
    let of = |name: &str| {
        all.histograms
            .iter()
            .find(|found| found.subject == name)
            .map(sum)
    };
    assert_eq!(
        (of("dd"), of("cat"), of("ntpd"), of("kworker/u128:1")),
        (Some(500), Some(1926), Some(104), Some(3))
    );
}

fn interval(seconds: &str, ios: u64, misaligned: u64, byte_offset: u64, odd: u64) -> String {
    format!(
        "{seconds} seconds elapsed\n\n{ios:8} IOs issued\n{misaligned:8} IOs misaligned, {:8} block offset \
         {byte_offset:8} byte offset\n{odd:8} IOs non-multiple of 8KB\n{:8} Percent non-8k IOs\n\n\n",
        byte_offset / 512,
        odd * 100 / ios
    )
}

fn histogram(rows: [u64; 3]) -> String {
    format!(
        "\n{DISTRIBUTION}  -1 |   0\n   0 |@@@ {}\n   1 |@ {}\n   2 |@ {}\n   4 |  0\n\n",
        rows[0], rows[1], rows[2]
    )
}

#[test]
fn a_run_of_align_d_with_its_slips() {
    let text = format!(
        "{}{}{}{}Totals\n\n IO size Count\n\n  512  30\n  8192  270\n\n IO misalignment Count\n{}{}",
        interval("50.000000284", 100, 60, 512, 7),
        histogram([40, 20, 40]),
        interval("5.100000000", 150, 100, 400, 2),
        histogram([90, 60, 100]),
        histogram([110, 70, 120]),
        interval("120.000000005", 300, 190, 437, 10),
    );
    let all = read(&text);
    let totals = |elapsed_ns, ios, misaligned_ios, mean_offset_bytes, odd_length_ios| AlignTotals {
        elapsed_ns: Some(elapsed_ns),
        ios,
        misaligned_ios,
        start_unit_bytes: 4096,
        mean_offset_bytes,
        odd_length_ios,
        len_unit_bytes: 8192,
    };
    assert_eq!(
        all.totals,
        [
            totals(5_000_000_284, 100, 60, 512, 7),
            totals(5_100_000_000, 150, 100, 400, 2)
        ]
    );
    let [lengths, residues] = &all.histograms[..] else {
        panic!("{:?}", all.histograms)
    };
    assert_eq!(lengths.measured, Measured::LenBytes);
    assert_eq!(
        lengths.buckets,
        [bucket(512, 512, 30), bucket(8192, 8192, 270)]
    );
    assert_eq!(residues.measured, Measured::ResidueBytes);
    assert_eq!(
        residues.buckets[1..4],
        [
            bucket(0, 0, 110),
            bucket(512, 512, 70),
            bucket(1024, 1536, 120)
        ]
    );
    assert_eq!(all.info.counts.damaged, 0);
    for note in ["wrong divisor", "count 300 I/O, its intervals 250"] {
        assert!(
            all.info.notes.iter().any(|found| found.contains(note)),
            "{note}"
        );
    }
}

#[test]
fn align_d_without_a_whole_interval_gives_its_totals() {
    let text = format!(
        "Totals\n{}{}",
        histogram([1, 1, 1]),
        interval("0.300000000", 3, 2, 300, 1)
    );
    let all = read(&text);
    let [totals] = &all.totals[..] else {
        panic!("one")
    };
    assert_eq!(
        (totals.ios, totals.misaligned_ios, totals.elapsed_ns),
        (3, 2, None)
    );
    assert_eq!(all.histograms.iter().map(sum).collect::<Vec<_>>(), [3]);
}

#[test]
fn counts_of_align_d_that_cannot_be_are_damage() {
    let good = interval("5.000000000", 100, 60, 512, 7);
    for bad in [
        interval("5.000000000", 100, 101, 512, 7),
        interval("5.000000000", 100, 60, 4096, 7),
        interval("5.000000000", 100, 0, 512, 7),
        interval("5.000000000", 100, 60, 512, 101),
        interval("5.000000000", 100, 60, 512, 7).replace("     100 IOs", "     1oo IOs"),
        interval("NaN", 100, 60, 512, 7),
        interval("5.000000000", 100, 60, 512, 7).replace("100 IOs issued", "-100 IOs issued"),
        "     100 IOs issued\n".to_owned(),
    ] {
        let all = read(&format!("{good}{bad}{good}"));
        assert!(all.info.counts.damaged > 0, "{bad}");
        assert!(matches!(all.totals.len(), 2 | 3), "{bad}");
        assert!(
            all.totals.iter().all(|totals| totals.misaligned_ios == 60),
            "{bad}"
        );
    }
}

#[test]
fn the_figures_of_the_paper() {
    require!(RealTraces);
    let path = real_trace("../seeds/000_a8bb8adeb2159d78.txt");
    let all = try_file(&path).expect("reads");
    let found: Vec<_> = all
        .totals
        .iter()
        .map(|t| {
            (
                t.elapsed_ns,
                t.ios,
                t.misaligned_ios,
                t.mean_offset_bytes,
                t.odd_length_ios,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (Some(5_000_000_284), 72_627, 71_682, 1011, 484),
            (Some(5_000_007_182), 94_878, 0, 0, 629)
        ]
    );
    assert_eq!(all.info.counts.damaged, 0);
}

const TNF_HEAD: &str = "probe\ttnf_name: \"strategy\" tnf_string: \"keys io blockio;\\\n\
    \tfile ../../common/os/bio.c;line 1\"\n\
    ---------------- ---------------- ----- ----- ---------- --- ------------------------- ------------------------\n\
    \x20   Elapsed (ms)       Delta (ms)   PID LWPID    TID     CPU Probe Name                Data / Description . . .\n\
    ---------------- ---------------- ----- ----- ---------- --- ------------------------- ------------------------\n";

#[test]
fn strategy_and_biodone_of_tnfdump_are_paired_by_buffer() {
    let text = format!(
        "{TNF_HEAD}        0.000000         0.000000   323     1 0xf5a 0 strategy device: 8388610 block: 34\n\
         \x20                          size: 8192 buf: 0xf5b0 flags: 34078801\n\
         \x20       0.250001         0.250001     0     0 0xf5a 1 strategy device: 8388610 block: 64 size: 1024 buf: 0xf5c0 flags: 257\n\
         \x20       0.300000         0.049999     7     1 0xf5a - pagefault address: 0x0 fault_type: 1\n\
         \x20       4.123456         3.823456     0     0 0xf5a 1 biodone device: 8388610 block: 64 buf: 0xf5c0\n\
         \x20       5.000000         0.876544     0     0 0xf5a 1 biodone device: 8388610 block: 34 buf: 0xf5b0\n\
         \x20       6.000000         1.000000     9     1 0xf5a 1 physio_start device: 8388611 offset: 17408 size: 512 rw: 64\n\
         \x20       7.000000         1.000000     9     1 0xf5a 1 biodone device: 8388611 block: 34 buf: 0xf5d0\n\
         \x20       8.000000         1.000000     9     1 0xf5a 1 aphysio_start bp: 0xe0 device: 8388610 blkno: 8 size: 512 rw: 64\n"
    );
    let all = read(&text);
    let found: Vec<_> = all
        .events
        .iter()
        .map(|(device, event)| {
            (
                device.as_str(),
                event.time_ns,
                event.op,
                event.start_bytes,
                event.len_bytes,
                event.device_ns,
                event.pid,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (
                "32,2",
                0,
                Op::Read,
                17_408,
                8192,
                Some(5_000_000),
                Some(323)
            ),
            (
                "32,2",
                250_001,
                Op::Write,
                32_768,
                1024,
                Some(3_873_455),
                Some(0)
            ),
            ("32,3", 6_000_000, Op::Read, 17_408, 512, None, Some(9)),
            ("32,2", 8_000_000, Op::Read, 4096, 512, None, Some(9)),
        ]
    );
    let counts = &all.info.counts;
    assert_eq!(
        (
            counts.damaged,
            counts.unmatched_completions,
            counts.unmatched_issues
        ),
        (0, 1, 1)
    );
    assert!(
        !all.info.verified
            && all
                .events
                .iter()
                .all(|(_, event)| event.layer == Layer::Bio)
    );
}

#[test]
fn damaged_lines_of_tnfdump_are_counted() {
    let good = "1.000000 1.000000 1 1 0x1 0 strategy device: 8388610 block: 34 size: 8192 buf: 0x1 flags: 64\n";
    for bad in [
        "NaN 1.0 1 1 0x1 0 biodone device: 1 block: 1 buf: 0x1",
        "-1.0 1.0 1 1 0x1 0 biodone device: 1 block: 1 buf: 0x1",
        "99999999999999 1.0 1 1 0x1 0 biodone device: 1 block: 1 buf: 0x1",
        "2.0 1.0 x 1 0x1 0 biodone device: 1 block: 1 buf: 0x1",
        "2.0 1.0 1 1 0x1 0 biodone device: 1 block: 1",
        "2.0 1.0 1 1 0x1 0 strategy device: 1 block: 36028797018963968 size: 1 buf: 0x2 flags: 64",
        "2.0 1.0 1 1 0x1 0 strategy device: 1 block: 1 size: 18446744073709551615 buf: 0x2 flags: 64",
        "2.0 1.0 1 1 0x1 0 strategy device: 1 block: -1 size: 1 buf: 0x2 flags: 64",
        "2.0 1.0 1 1",
    ] {
        let all = read(&format!("{TNF_HEAD}{good}{bad}\n"));
        assert_eq!((all.events.len(), all.info.counts.damaged), (1, 1), "{bad}");
    }
    // A buffer that is used again without an end in between.
    let all = read(&format!(
        "{TNF_HEAD}{good}{}",
        good.replace("1.000000 1", "2.000000 1")
    ));
    assert_eq!((all.events.len(), all.info.counts.unmatched_issues), (2, 2));
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    let samples = [
        vscsi("distance (in LBNs) between successive commands", 15, "1,-1\n4,4\n10,4\n"),
        format!("# ./seeksize.d\n 1  x\\0\n{DISTRIBUTION}  -4 | 1\n  0 |@@ 3\n  8 | 5\n"),
        format!(
            "Totals\n IO size Count\n 512 3\n{}{}",
            histogram([1, 1, 1]),
            interval("0.300000000", 3, 2, 300, 1)
        ),
        "Elapsed (ms) Delta (ms)\n1.0 1.0 1 1 1 0 strategy device: 1 block: 3 size: 8 buf: 0x1\n flags: 64\n\
         2.0 1.0 1 1 1 0 biodone device: 1 block: 3 buf: 0x1\n"
            .to_owned(),
    ];
    for sample in &samples {
        for at in 0..sample.len() {
            let _ = try_read(&sample.as_bytes()[..at]);
            for bit in 0..8 {
                let mut flipped = sample.clone().into_bytes();
                flipped[at] ^= 1 << bit;
                let _ = try_read(&flipped);
            }
        }
    }
}

#[test]
fn what_came_before_an_endless_line_stays() {
    let endless = "9".repeat(2 << 20);
    for good in [
        vscsi("IO lengths of commands", 5, "1,1\n4,4\n0,4\n"),
        format!("bitesize\n{DISTRIBUTION}  512 | 1\n"),
        interval("5.000000000", 100, 60, 512, 7),
        format!(
            "{TNF_HEAD}1.0 1.0 1 1 0x1 0 strategy device: 1 block: 34 size: 8192 buf: 0x1 flags: 64\n"
        ),
    ] {
        let all = read(&format!("{good}{endless}"));
        assert_eq!(
            all.events.len() + all.histograms.len() + all.totals.len(),
            1,
            "{good}"
        );
        assert!(!all.info.is_whole(), "{good}");
    }
}

/// What each real file is taken for among the formats of tools; `None` where one of another kind must claim it.
fn tool_format(path: &str) -> Option<&'static str> {
    Some(match path {
        "bcc/biosnoop_example.txt" => "bcc-biosnoop",
        "bpftrace/biosnoop_example.txt" => "bpftrace-biosnoop",
        "perf-tools/iosnoop_example.txt" => "perf-tools-iosnoop",
        "dtrace/iosnoop_example.txt" => "dtrace-iosnoop",
        "vscsiStats/algonquin.csv" => "vscsistats",
        // The last two print histograms, of which none says how much it counts; both are left out.
        "bcc/bitesize_example.txt"
        | "dtrace/bitesize_example.txt"
        | "dtrace/seeksize_example.txt"
        | "dtrace/diskhits_example.txt"
        | "dtrace/iopending_example.txt" => "quantize",
        _ => return None,
    })
}

#[test]
fn no_trace_is_taken_for_the_output_of_another_tool() {
    require!(RealTraces);
    let root = real_trace("");
    let tools = [
        "residue",
        "vscsistats",
        "tnfdump",
        "bcc-biosnoop",
        "bpftrace-biosnoop",
        "perf-tools-iosnoop",
        "dtrace-iosnoop",
        "align.d",
        "quantize",
    ];
    let mut files = 0;
    for folder in std::fs::read_dir(&root)
        .expect("lists")
        .flatten()
        .filter(|entry| entry.path().is_dir())
    {
        for file in std::fs::read_dir(folder.path()).expect("lists").flatten() {
            let name = format!(
                "{}/{}",
                folder.file_name().display(),
                file.file_name().display()
            );
            let piece = pieces(&[file.path()]).remove(0);
            let opened = plumb_trace::open::open(&piece, &ReadOptions::default());
            let format = opened.as_ref().ok().map(|reader| reader.info().format);
            let format = format.filter(|format| tools.contains(format));
            let said = opened
                .as_ref()
                .err()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert_eq!(format, tool_format(&name), "{name}");
            assert!(!said.contains("plumb-residue"), "{name}: {said}");
            files += 1;
        }
    }
    assert!(files >= 60, "{files} files");
}
