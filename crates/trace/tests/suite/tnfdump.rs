//! Kernel traces of Solaris: I/O paired by buffer, and damage.

use plumb_trace::{Layer, Op};

use crate::common::counts::{
    no_cut_and_no_flipped_bit_panics as no_cut_or_bit_panics, read,
    the_text_before_an_endless_line_stays as before_an_endless_line,
};

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
                event.tid,
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
                Some(323),
                Some(1)
            ),
            (
                "32,2",
                250_001,
                Op::Write,
                32_768,
                1024,
                Some(3_873_455),
                Some(0),
                // 0xf5a / 8
                Some(0x1eb)
            ),
            (
                "32,3",
                6_000_000,
                Op::Read,
                17_408,
                512,
                None,
                Some(9),
                Some(1)
            ),
            (
                "32,2",
                8_000_000,
                Op::Read,
                4096,
                512,
                None,
                Some(9),
                Some(1)
            ),
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
    no_cut_or_bit_panics(
        "Elapsed (ms) Delta (ms)\n1.0 1.0 1 1 1 0 strategy device: 1 block: 3 size: 8 buf: 0x1\n flags: 64\n\
         2.0 1.0 1 1 1 0 biodone device: 1 block: 3 buf: 0x1\n",
    );
}

#[test]
fn the_text_before_an_endless_line_stays() {
    before_an_endless_line(&format!(
        "{TNF_HEAD}1.0 1.0 1 1 0x1 0 strategy device: 1 block: 34 size: 8192 buf: 0x1 flags: 64\n"
    ));
}
