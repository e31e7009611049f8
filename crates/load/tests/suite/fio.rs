//! fio's job files. Expectations are those of its manual.

use std::time::Duration;

use plumb_load::fio;
use plumb_load::job_file::JobFileError;
use plumb_load::series::{Edge, Rate, Run, RunPart, Series, offsets};

fn parse(text: &str) -> Result<Series, JobFileError> {
    fio::parse("j", text, &|_| None)
}

fn runs(text: &str) -> Vec<Run> {
    parse(text)
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
        .runs
}

/// The part of a single job with these options.
#[track_caller]
fn part(options: &str) -> RunPart {
    let mut runs = runs(&format!("[a]\nfilename=/dev/x\n{options}"));
    assert_eq!((runs.len(), runs[0].parts.len()), (1, 1), "{options}");
    runs.remove(0).parts.remove(0)
}

#[test]
fn defaults_are_fios() {
    let run = &runs("[a]\nfilename=/dev/x")[0];
    assert_eq!(
        (run.rate, run.elapsed, run.is_one_pass),
        (Rate::Max, None, true)
    );
    assert_eq!(
        (run.warmup, run.interval, run.seed),
        (Duration::ZERO, Duration::from_secs(1), Some(1))
    );
    let part = &run.parts[0];
    assert_eq!(
        (part.streams, part.depth, &part.lengths[..]),
        (1, 1, &[(4096, 1.0)][..])
    );
    assert_eq!(
        (part.read_percent, part.random_percent, part.offset),
        (100, 0, 0),
        "rw=read"
    );
    assert_eq!(
        (part.area.from, part.area.to),
        (Edge::Bytes(0), Edge::Percent(100.0))
    );
}

#[test]
fn patterns() {
    for (rw, reads, random) in [
        ("read", 100, 0),
        ("write", 0, 0),
        ("rw", 50, 0),
        ("readwrite", 50, 0),
        ("randread", 100, 100),
        ("randwrite", 0, 100),
        ("randrw", 50, 100),
    ] {
        let part = part(&format!("rw={rw}"));
        assert_eq!(
            (part.read_percent, part.random_percent),
            (reads, random),
            "{rw}"
        );
    }
    assert_eq!(part("rw=randrw\nrwmixread=70").read_percent, 70);
    assert_eq!(part("rw=randrw\nrwmixwrite=30").read_percent, 70);
    assert_eq!(part("rw=randread\npercentage_random=60").random_percent, 60);
    assert_eq!(
        part("rw=randread\nrandom_distribution=zipf:1.2").zipf,
        Some(1.2)
    );
}

#[test]
fn lengths() {
    assert_eq!(part("bs=64k").lengths, [(65536, 1.0)]);
    assert_eq!(
        part("bs=4k,8k").lengths,
        [(4096, 1.0)],
        "the first is that of reads"
    );
    assert_eq!(
        part("rw=write\nbs=4k,8k").lengths,
        [(8192, 1.0)],
        "the second is that of writes"
    );
    assert_eq!(
        part("bssplit=4k/10:64k/90").lengths,
        [(4096, 10.0), (65536, 90.0)]
    );
    assert_eq!(
        part("bssplit=4k/50:1k/:32k/").lengths,
        [(4096, 50.0), (1024, 25.0), (32768, 25.0)]
    );
    assert_eq!(part("ba=512").align, Some(512));
}

#[test]
fn engines_that_wait_have_one_in_flight() {
    for (options, depth) in [
        ("ioengine=libaio\niodepth=16", 16),
        ("ioengine=io_uring\niodepth=32", 32),
        ("ioengine=psync\niodepth=16", 1),
        ("iodepth=16", 1),
    ] {
        assert_eq!(part(options).depth, depth, "{options}");
    }
    let notes = parse("[a]\nfilename=/x\nioengine=psync\niodepth=16\ndirect=1")
        .expect("a job")
        .notes;
    let expected = [
        "j:3: ioengine=psync: I/O are sent by io_uring here",
        "j:1: [a]: iodepth=16 has no meaning with an engine that waits for each I/O; one is in flight",
    ];
    assert_eq!(notes, expected);
    let notes = parse("[a]\nfilename=/x\nioengine=io_uring\ndirect=1\nrw=randread\nnorandommap")
        .expect("a job")
        .notes;
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn places() {
    let area = |options: &str| {
        let part = part(options);
        (part.area.from, part.area.to, part.offset)
    };
    assert_eq!(area("size=1g"), (Edge::Bytes(0), Edge::Bytes(1 << 30), 0));
    assert_eq!(
        area("offset=1m\nsize=1m"),
        (Edge::Bytes(1 << 20), Edge::Bytes(2 << 20), 0)
    );
    // Blocks are counted from the offset on.
    assert_eq!(
        area("offset=512"),
        (Edge::Bytes(0), Edge::Percent(100.0), 512)
    );
    assert_eq!(
        area("offset=9k\nbs=4k\nsize=8k"),
        (Edge::Bytes(8192), Edge::Bytes(17 << 10), 1024)
    );
    assert_eq!(area("size=50%"), (Edge::Bytes(0), Edge::Percent(50.0), 0));
    assert_eq!(
        area("offset=25%\nsize=50%"),
        (Edge::Percent(25.0), Edge::Percent(75.0), 0)
    );
}

#[test]
fn times_and_rates() {
    let run = &runs(
        "[a]\nfilename=/x\nruntime=90\ntime_based\nramp_time=500ms\nrate_iops=100\nnumjobs=3\nrw=randread",
    )[0];
    assert_eq!(
        (run.elapsed, run.is_one_pass),
        (Some(Duration::from_secs(90)), false)
    );
    assert_eq!(
        (run.warmup, run.rate, run.arrivals),
        (Duration::from_millis(500), Rate::PerSecond(300.0), None)
    );
    assert_eq!(run.parts[0].streams, 3);
    let run = &runs("[a]\nfilename=/x\nruntime=2m\nrandseed=77")[0];
    assert_eq!(
        (run.elapsed, run.is_one_pass, run.seed),
        (Some(Duration::from_secs(120)), true, Some(77))
    );
    assert_eq!(runs("[a]\nfilename=/x\nrandrepeat=0")[0].seed, None);
}

#[test]
fn jobs_go_on_at_once_unless_walled_off() {
    let text = "[global]\nfilename=/x\nbs=8k\n[a]\nrate_iops=100\n[b]\nrate_iops=300\nbs=16k\n[c]\nstonewall\n[d]\n";
    let runs = runs(text);
    let names: Vec<&str> = runs.iter().map(|run| &*run.name).collect();
    assert_eq!(names, ["a + b", "c + d"]);
    let parts: Vec<(u64, f64)> = runs[0]
        .parts
        .iter()
        .map(|part| (part.lengths[0].0, part.share))
        .collect();
    assert_eq!(parts, [(8192, 0.25), (16384, 0.75)]);
}

#[test]
fn a_sweep_of_offsets() {
    let job = |at: u64| format!("[o{at}]\nstonewall\noffset={at}\n");
    let head = "[global]\nfilename=/x\nrw=randread\nruntime=2\ntime_based\n";
    let text = head.to_owned() + &(0..8).map(|at| job(at * 512)).collect::<String>();
    let sweep = offsets(&parse(&text).expect("jobs")).expect("they differ in their offset");
    assert_eq!(
        (sweep.unit, sweep.offsets),
        (4096, (0..8).map(|at| at * 512).collect())
    );
}

#[test]
fn errors_name_place_and_expectation() {
    let job = "[a]\nfilename=/x\n";
    for (begin, line, expected) in [
        ("", "", "j: found nothing to run, expected a job: [NAME]"),
        (
            "",
            "[global]\nbs=4k",
            "j: found nothing to run, expected a job: [NAME]",
        ),
        (
            "",
            "[a]\nbs=4k",
            "j:1: found [a] without filename=, expected the device or file",
        ),
        (
            job,
            "fred=1",
            "j:3: found unknown parameter `fred` of [a], expected one of: filename, rw",
        ),
        (
            job,
            "startdelay=5",
            "j:3: found `startdelay` of [a], which lets jobs begin one after the other: see stonewall",
        ),
        (
            job,
            "verify=md5",
            "j:3: found `verify` of [a], which checks data; expected the file without it",
        ),
        (
            job,
            "filename=/a:/b",
            "j:3: filename of [a]: found `/a:/b`, expected one device or file a job",
        ),
        (
            job,
            "rw=trim",
            "j:3: rw of [a]: found `trim`, expected one of: read, write, rw",
        ),
        (
            job,
            "rw=randread:8",
            "j:3: rw of [a]: found `randread:8`, expected one of",
        ),
        (
            job,
            "bs=1000",
            "j:3: bs of [a]: found `1000`, expected lengths that are multiples of 512",
        ),
        (
            job,
            "bs=64ki",
            "j:3: bs of [a]: found `64ki`, expected lengths",
        ),
        (
            job,
            "rw=randrw\nbs=4k,8k",
            "j:1: bs of [a]: found `one for reads and another for writes`, expected the same",
        ),
        (
            job,
            "bssplit=4k/50:8k/40",
            "j:3: bssplit of [a]: found `4k/50:8k/40`, expected lengths with percentages",
        ),
        (
            job,
            "iodepth=0",
            "j:3: iodepth of [a]: found `0`, expected a whole number from 1 to 4096",
        ),
        (
            job,
            "numjobs=x",
            "j:3: numjobs of [a]: found `x`, expected a whole number from 1 to 1024",
        ),
        (
            job,
            "ioengine=mmap",
            "j:3: ioengine of [a]: found `mmap`, expected one of: io_uring, libaio",
        ),
        (
            job,
            "direct=0",
            "j:3: direct of [a]: found `0`, expected 1: a measurement of a device goes past the page cache",
        ),
        (
            job,
            "direct=yes",
            "j:3: direct of [a]: found `yes`, expected 0 or 1",
        ),
        (
            job,
            "runtime=soon",
            "j:3: runtime of [a]: found `soon`, expected a time: seconds",
        ),
        (
            job,
            "time_based",
            "j:1: found [a] without runtime=, expected runtime=SECONDS with time_based",
        ),
        (
            job,
            "size=200%",
            "j:3: size of [a]: found `200%`, expected a size",
        ),
        (
            job,
            "size=10%\noffset=1m",
            "j:1: size and offset of [a]: found `a percentage and bytes`, expected both in bytes",
        ),
        (
            job,
            "random_distribution=pareto:1",
            "j:3: random_distribution of [a]: found `pareto:1`, expected random, or zipf",
        ),
        (
            job,
            "[b]\nfilename=/y\nruntime=5",
            "j:3: runtime of [b]: found `another than in [a]`, expected the same in all",
        ),
        (
            job,
            "[b]\nfilename=/y\nrate_iops=5",
            "j:3: rate_iops, given for all or none of [b]: found `another than in [a]`",
        ),
    ] {
        let text = format!("{begin}{line}\n");
        let error = parse(&text).err().map(|error| error.to_string());
        let error = error.unwrap_or_else(|| panic!("{text:?} was taken"));
        assert!(
            error.starts_with(expected),
            "{text:?}\n found    {error}\n expected {expected}"
        );
    }
}
