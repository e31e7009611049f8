//! iosnoop of the DTraceToolkit: its options, the example that ships with it, and damage.

use plumb_testkit::{real_trace, require};
use plumb_trace::{Latency, Layer, Op, UNKNOWN_NS};

use crate::common::tool::{
    count, no_cut_and_no_flipped_bit_panics as no_cut_or_bit_panics, read, read_file, sums,
};

#[test]
fn iosnoop_of_dtrace_with_its_options() {
    let tail = "  UID   PID D    BLOCK   SIZE       COMM PATHNAME\n";
    let row = "  100 15795 R     3808   8192        tar /usr/bin/my eject\n";
    for (head, cells, time_ns, device_ns, device) in [
        ("", "", UNKNOWN_NS, None, "unknown"),
        (
            "DELTA(us)  ",
            "25         ",
            UNKNOWN_NS,
            Some(25_000),
            "unknown",
        ),
        ("DTIME(us)  ", "25         ", UNKNOWN_NS, None, "unknown"),
        ("STIME(us)  ", "1000       ", 1_000_000, None, "unknown"),
        ("TIME(us)   ", "1025       ", 1_025_000, None, "unknown"),
        (
            "STIME(us) TIME(us) ",
            "1000 1025 ",
            1_000_000,
            Some(25_000),
            "unknown",
        ),
        (
            "TIME(us) DEVICE DELTA(us) ",
            "1025 cmdk0 25 ",
            1_000_000,
            Some(25_000),
            "cmdk0",
        ),
        (
            "STRTIME DEVICE MAJ MIN ",
            "2005 Jul 18 21:02:39 dad1 136 8 ",
            UNKNOWN_NS,
            None,
            "dad1",
        ),
        ("MAJ MIN ", "136   8 ", UNKNOWN_NS, None, "136,8"),
    ] {
        let all = read(&format!("# ./iosnoop\n{head}{tail}{cells}{row}"));
        let (name, comm, event) = &all.events[0];
        assert_eq!(
            (name.as_str(), comm.as_str(), event.pid),
            (device, "tar", Some(15_795)),
            "{head}"
        );
        assert_eq!(
            (event.time_ns, event.device_ns),
            (time_ns, device_ns),
            "{head}"
        );
        assert_eq!((event.layer, event.op), (Layer::Bio, Op::Read));
        assert_eq!((event.start_bytes, event.len_bytes), (3808 * 512, 8192));
        assert_eq!(
            all.info.latency == Latency::Known,
            device_ns.is_some(),
            "{head}"
        );
    }
}

#[test]
fn the_dump_of_iosnoop_and_its_form_with_arguments() {
    let dump = "TIME STIME DELTA DEVICE INS MAJ MIN UID PID PPID D BLOCK SIZE MOUNT FILE PATH COMM ARGS\n\
                2025 2000 25 cmdk0 0 102 0 0 443 1 W 1067 512 / ls /usr/bin/ls Xsun Xsun -nobanner\\0\n";
    let all = read(dump);
    let (device, comm, event) = &all.events[0];
    assert_eq!(
        (device.as_str(), comm.as_str(), event.pid),
        ("cmdk0", "Xsun", Some(443))
    );
    assert_eq!(
        (event.time_ns, event.device_ns, event.op),
        (2_000_000, Some(25_000), Op::Write)
    );
    let arguments = "UID PID D BLOCK SIZE PATHNAME ARGS\n0 3 W 64 512 <none> fsflush\\0\n";
    let (_, comm, event) = &read(arguments).events[0];
    assert_eq!((comm.as_str(), event.file, event.op), ("", 0, Op::Write));
}

#[test]
fn example_output_of_dtrace_iosnoop() {
    require!(RealTraces);
    let path = real_trace("dtrace/iosnoop_example.txt");
    let all = read_file(&path);
    assert_eq!(sums(&all), (30, 297_472, 0));
    let sectors: u64 = all
        .events
        .iter()
        .map(|(_, _, event)| event.start_bytes / 512)
        .sum();
    assert_eq!(sectors, 22_985_399);
    for (name, ios) in [("tar", 23), ("sched", 4), ("Xsun", 2), ("fsflush", 1)] {
        assert_eq!(count(&all, |(_, comm, _)| comm == name), ios, "{name}");
    }
    assert_eq!(count(&all, |(_, _, event)| event.op == Op::Write), 5);
    assert!(all.info.completions_only && all.info.counts.damaged == 0);
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    no_cut_or_bit_panics(
        "STRTIME UID PID D BLOCK SIZE COMM PATHNAME\n2005 Jul 18 21:02:39 0 0 W 1067 512 sched <none>\n",
    );
}
