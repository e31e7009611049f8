//! biosnoop of bcc: shapes of lines written by hand, the example that ships with it, and damage.

use plumb_testkit::{real_trace, require};
use plumb_trace::{Clock, Error, Layer, LayerChoice, Op, ReadOptions, flags};

use crate::common::tool::{
    count, no_cut_and_no_flipped_bit_panics as no_cut_or_bit_panics, read, read_file, read_with,
    sums, the_text_before_an_endless_line_stays as before_an_endless_line,
};

const BCC: &str = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)\n";

#[test]
fn biosnoop_of_bcc_gives_times_of_issue() {
    let all = read(&format!(
        "{BCC}0.500000    Web Content    77     sda     R 2048       4096       0.25\n"
    ));
    let (device, comm, event) = &all.events[0];
    assert_eq!((device.as_str(), comm.as_str()), ("sda", "Web Content"));
    assert_eq!(
        (event.layer, event.op, event.pid),
        (Layer::Request, Op::Read, Some(77))
    );
    assert_eq!((event.start_bytes, event.len_bytes), (1_048_576, 4096));
    assert_eq!(
        (event.time_ns, event.device_ns, event.queue_ns),
        (499_750_000, Some(250_000), None)
    );
    assert_eq!(
        (all.info.format, all.info.clock),
        ("bcc-biosnoop", Clock::Start)
    );
}

#[test]
fn biosnoop_of_bcc_with_more_columns_and_several_runs() {
    let text = "prose\nTIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms) PATTERN\n\
                1.0 a b/c 1 nvme0n1 WSM 8 512 0.01 0.55 random\n\
                TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.0 x 2 sda W 16 512 0.10\n";
    let all = read(text);
    let (_, comm, first) = &all.events[0];
    assert_eq!(
        (comm.as_str(), first.queue_ns, first.device_ns),
        ("a b/c", Some(10_000), Some(550_000))
    );
    assert_eq!(first.flags, flags::SYNC | flags::META);
    // The second run begins one second after the last completion of the first.
    assert_eq!(all.events[1].2.time_ns, 2_000_000_000 - 100_000);
    assert_eq!(all.info.tallies["other line"], 1);
}

#[test]
fn events_of_biosnoop_are_put_into_order_of_issue() {
    let all = read(&format!(
        "{BCC}0.1 a 1 sda R 0 512 0.01\n0.2 b 1 sda R 8 512 150.00\n"
    ));
    let comms: Vec<_> = all
        .events
        .iter()
        .map(|(_, comm, _)| comm.as_str())
        .collect();
    assert_eq!(comms, ["b", "a"]);
}

#[test]
fn damaged_rows_of_biosnoop_are_counted_and_prose_is_not() {
    let good = "0.1 a 1 sda R 0 512 0.01\n";
    for (bad, damaged) in [
        ("NaN a 1 sda R 0 512 0.01\n", 1),
        ("0.1 a 1 sda R 0 512 NaN\n", 1),
        ("0.1 a 1 sda R 0 512 -0.01\n", 1),
        ("-0.1 a 1 sda R 0 512 0.01\n", 1),
        ("0.1 a 1 sda R -8 512 0.01\n", 1),
        ("0.1 a 1 sda R 36028797018963968 512 0.01\n", 1),
        ("0.1 a 1 sda R 0 512 99999999999999\n", 1),
        ("9223372037 a 1 sda R 0 512 0.01\n", 1),
        ("0.1 a 1 sda R 99999999999999999999 512 0.01\n", 1),
        ("0.1 a 1 sd", 1),
        (
            "This includes the PID and comm of the process that was running at the time\n",
            0,
        ),
        (
            "xvda      0.00    0.00   0.00   4.00   0.00  16.00   0.00   0.00   0.00\n",
            0,
        ),
        ("[...]\n", 0),
    ] {
        let all = read(&format!("{BCC}{good}{bad}"));
        assert_eq!(
            (all.events.len(), all.info.counts.damaged),
            (1, damaged),
            "{bad}"
        );
        if damaged > 0 {
            assert_eq!(all.info.damages[0].place.to_string(), "line 3", "{bad}");
        }
    }
}

#[test]
fn example_output_of_bcc_biosnoop() {
    require!(RealTraces);
    let path = real_trace("bcc/biosnoop_example.txt");
    let all = read_file(&path);
    assert_eq!(sums(&all), (21, 176_128, 13_310_000));
    for (disk, ios) in [("xvda1", 10), ("xvdb", 4), ("xvdc", 1), ("nvme1n1", 6)] {
        assert_eq!(count(&all, |(device, _, _)| device == disk), ios, "{disk}");
    }
    assert_eq!(count(&all, |(_, _, event)| event.queue_ns.is_some()), 6);
    assert_eq!(
        (all.info.counts.damaged, all.info.counts.out_of_order),
        (0, 0)
    );
}

#[test]
fn a_layer_that_the_tool_does_not_show_is_refused() {
    let options = ReadOptions {
        layer: LayerChoice::Only(Layer::Bio),
        ..ReadOptions::default()
    };
    let error = read_with(
        format!("{BCC}0.1 a 1 sda R 0 512 0.01\n").as_bytes(),
        &options,
    )
    .err();
    assert!(matches!(error, Some(Error::NoLayer { present, .. }) if present == "request"));
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    no_cut_or_bit_panics(&format!(
        "{BCC}0.500000    Web Content    77     sda     R 2048       4096       0.25\n"
    ));
}

#[test]
fn the_text_before_an_endless_line_stays() {
    before_an_endless_line(
        "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.1 a 1 sda R 0 512 0.01\n",
    );
}
