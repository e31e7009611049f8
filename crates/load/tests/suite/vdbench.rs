//! Vdbench's parameter files. Expectations come from its manual and its parser, not from our reader.

use plumb_load::job_file::JobFileError;
use plumb_load::series::{Edge, Rate, Run, RunPart, Series, offsets};
use plumb_load::{Arrivals, vdbench};

fn parse(text: &str) -> Result<Series, JobFileError> {
    let mut include = |name: &str| {
        Err(JobFileError::Unreadable {
            path: name.to_owned(),
            source: std::io::Error::from(std::io::ErrorKind::NotFound),
        })
    };
    vdbench::parse("p", text, &[], &mut include)
}

fn runs(text: &str) -> Vec<Run> {
    parse(text)
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
        .runs
}

/// The only part of the only run of a file with this storage, workload and run.
#[track_caller]
fn part(sd: &str, wd: &str, rd: &str) -> RunPart {
    let text = format!("sd=s,lun=/dev/x{sd}\nwd=w,sd=s{wd}\nrd=r,wd=w,iorate=max{rd}\n");
    let mut runs = runs(&text);
    assert_eq!(runs.len(), 1, "{text}");
    assert_eq!(runs[0].parts.len(), 1, "{text}");
    runs.remove(0).parts.remove(0)
}

#[test]
fn the_published_sweep() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/offset-sweep.vdb"
    ));
    let series = parse(&text.expect("the example")).expect("it is understood");
    assert_eq!(series.runs.len(), 9);
    for (at, run) in series.runs.iter().enumerate() {
        let [part] = &run.parts[..] else {
            panic!("one part")
        };
        assert_eq!(run.name, format!("rd_{:04}", at * 512));
        assert_eq!(
            (part.offset, part.depth, part.streams),
            (at as u64 * 512, 32, 1)
        );
        assert_eq!(
            (&part.lengths[..], part.read_percent, part.random_percent),
            (&[(4096, 1.0)][..], 100, 100)
        );
        assert_eq!((run.rate, run.arrivals), (Rate::Max, Some(Arrivals::Even)));
        assert_eq!(run.elapsed.map(|time| time.as_secs()), Some(60));
        assert_eq!(
            (
                run.interval.as_secs(),
                run.warmup.as_secs(),
                run.pause.as_secs()
            ),
            (1, 0, 0)
        );
        assert!(run.overrides.is_empty());
    }
    let sweep = offsets(&series).expect("runs that differ in their offset");
    assert_eq!(sweep.unit, 4096);
    assert_eq!(
        sweep.offsets,
        (0..=8).map(|at| at * 512).collect::<Vec<u64>>()
    );
    insta::assert_snapshot!(series.notes.join("\n\n"));
}

#[test]
fn runs_that_differ_in_more_are_no_sweep() {
    let sds = "sd=a,lun=/dev/x,offset=0\nsd=b,lun=/dev/x,offset=512\nsd=c,lun=/dev/y,offset=512\nwd=w,sd=a\n";
    let sweep = |rds: &str| offsets(&parse(&format!("{sds}{rds}")).expect(rds));
    assert!(sweep("rd=1,wd=w,sd=a,iorate=max\nrd=2,wd=w,sd=b,iorate=max").is_some());
    assert!(
        sweep("rd=1,wd=w,sd=a,iorate=max\nrd=2,wd=w,sd=c,iorate=max").is_none(),
        "other devices"
    );
    assert!(
        sweep("rd=1,wd=w,sd=a,iorate=max\nrd=2,wd=w,sd=a,iorate=max").is_none(),
        "one offset"
    );
    assert!(
        sweep("rd=1,wd=w,sd=a,iorate=9\nrd=2,wd=w,sd=b,iorate=9").is_none(),
        "a rate hides the cost"
    );
    assert!(
        sweep("rd=1,wd=w,sd=a,iorate=max\nrd=2,wd=w,sd=b,iorate=max,xf=8k").is_none(),
        "other lengths"
    );
}

#[test]
fn defaults_are_vdbenchs() {
    let part = part("", "", "");
    assert_eq!((part.depth, &part.lengths[..]), (8, &[(4096, 1.0)][..]));
    assert_eq!((part.read_percent, part.random_percent), (100, 100));
    assert_eq!((part.offset, part.align, part.hits), (0, None, None));
    assert_eq!(
        (part.area.from, part.area.to),
        (Edge::Bytes(0), Edge::Percent(100.0))
    );
    assert!(
        part.area.spares_first,
        "block 0 of a device is never touched"
    );
    let run = &runs("sd=s,lun=/tmp/file\nwd=w,sd=s\nrd=r,wd=w,iorate=7")[0];
    assert_eq!(
        (
            run.elapsed.map(|time| time.as_secs()),
            run.interval.as_secs()
        ),
        (Some(30), 1)
    );
    assert_eq!(
        (run.rate, run.arrivals),
        (Rate::PerSecond(7.0), Some(Arrivals::Exponential))
    );
    assert!(!run.parts[0].area.spares_first, "a file has no label");
}

#[test]
fn keywords_may_be_cut_short() {
    let part = part(
        ",th=3,of=512,hi=2m,ra=(10,20)",
        ",xf=8k,rdp=70,see=seq,rh=50",
        "",
    );
    assert_eq!((part.depth, part.offset), (3, 512));
    assert_eq!(
        (&part.lengths[..], part.read_percent, part.random_percent),
        (&[(8192, 1.0)][..], 70, 0)
    );
    let hits = part.hits.expect("half of the reads");
    assert_eq!(
        (hits.bytes, hits.read_percent, hits.write_percent),
        (2 << 20, 50, 0)
    );
    assert_eq!(
        (part.area.from, part.area.to),
        (Edge::Percent(10.0), Edge::Percent(20.0))
    );
}

#[test]
fn lengths_have_three_forms() {
    assert_eq!(
        part("", ",xfersize=(4k,25,8k,75)", "").lengths,
        [(4096, 25.0), (8192, 75.0)]
    );
    assert_eq!(
        part("", ",xfersize=(4k,16k,4k)", "").lengths,
        [(4096, 1.0), (8192, 1.0), (12288, 1.0), (16384, 1.0)]
    );
    assert_eq!(part("", ",xfersize=2m", "").lengths, [(2 << 20, 1.0)]);
}

#[test]
fn places_are_percent_or_bytes() {
    let area = |sd: &str, wd: &str| {
        let area = part(sd, wd, "").area;
        (area.size, area.from, area.to)
    };
    assert_eq!(
        area(",range=(1m,2g)", ""),
        (None, Edge::Bytes(1 << 20), Edge::Bytes(2 << 30))
    );
    assert_eq!(
        area(",range=(10,2g)", ""),
        (None, Edge::Percent(10.0), Edge::Bytes(2 << 30))
    );
    assert_eq!(
        area(",range=(1m,2g)", ",range=(5,6)").1,
        Edge::Percent(5.0),
        "that of wd goes before that of sd"
    );
    assert_eq!(area(",size=1g", "").0, Some(Edge::Bytes(1 << 30)));
}

/// The manual: forxfersize=(1k,2k),forthreads=(1,2) gives 1k/1, 1k/2, 2k/1, 2k/2.
#[test]
fn the_last_list_is_the_fastest() {
    let text =
        "sd=s,lun=/dev/x\nwd=w,sd=s\nrd=r,wd=w,iorate=max,forxfersize=(1k,2k),forthreads=(1,2)";
    let seen: Vec<(u64, u32)> = runs(text)
        .iter()
        .map(|run| (run.parts[0].lengths[0].0, run.parts[0].depth))
        .collect();
    assert_eq!(seen, [(1024, 1), (1024, 2), (2048, 1), (2048, 2)]);
    let run = &runs(text)[3];
    assert_eq!(
        run.overrides,
        [("xfersize", "2k".to_owned()), ("threads", "2".to_owned())]
    );
}

#[test]
fn every_list_that_repeats() {
    let many = |rd: &str| {
        runs(&format!(
            "sd=s,lun=/dev/x\nwd=w,sd=s\nrd=r,wd=w,iorate=max,{rd}"
        ))
    };
    let depths: Vec<u32> = many("forthreads=(1-64,d)")
        .iter()
        .map(|run| run.parts[0].depth)
        .collect();
    assert_eq!(depths, [1, 2, 4, 8, 16, 32, 64]);
    let reads: Vec<u8> = many("forrdpct=(0-100,25)")
        .iter()
        .map(|run| run.parts[0].read_percent)
        .collect();
    assert_eq!(reads, [0, 25, 50, 75, 100]);
    let seeks: Vec<u8> = many("forseekpct=(0,100)")
        .iter()
        .map(|run| run.parts[0].random_percent)
        .collect();
    assert_eq!(seeks, [0, 100]);
    let areas: Vec<u64> = many("rhpct=10,forhitarea=(1m,4m)")
        .iter()
        .filter_map(|run| Some(run.parts[0].hits?.bytes))
        .collect();
    assert_eq!(areas, [1 << 20, 4 << 20]);
    // Without `for` in front a list of rd repeats too; of xfersize it is no distribution there.
    let lengths: Vec<u64> = many("xf=(4k,8k)")
        .iter()
        .map(|run| run.parts[0].lengths[0].0)
        .collect();
    assert_eq!(lengths, [4096, 8192]);
}

#[test]
fn rates_are_one_a_list_or_a_curve() {
    let rates = |rd: &str| -> Vec<Rate> {
        runs(&format!("sd=s,lun=/dev/x\nwd=w,sd=s\nrd=r,wd=w,{rd}"))
            .iter()
            .map(|run| run.rate)
            .collect()
    };
    assert_eq!(
        rates("iorate=(100,200)"),
        [Rate::PerSecond(100.0), Rate::PerSecond(200.0)]
    );
    assert_eq!(
        rates("io=(100-300,100)"),
        [100.0, 200.0, 300.0].map(Rate::PerSecond)
    );
    let points = |percent: &[f64]| -> Vec<Rate> {
        std::iter::once(Rate::Max)
            .chain(percent.iter().map(|point| Rate::PercentOfMax(*point)))
            .collect()
    };
    assert_eq!(
        rates("iorate=curve"),
        points(&[10.0, 50.0, 70.0, 80.0, 90.0, 100.0])
    );
    assert_eq!(rates("iorate=curve,curve=(20,40)"), points(&[20.0, 40.0]));
    assert_eq!(rates("iorate=(max,50%)"), points(&[50.0]));
    assert_eq!(
        rates("foriorate=(5,6)"),
        [Rate::PerSecond(5.0), Rate::PerSecond(6.0)]
    );
    // A list of rates varies slowest, at any position.
    let both = runs("sd=s,lun=/dev/x\nwd=w,sd=s\nrd=r,wd=w,iorate=(1,2),forthreads=(3,4)");
    let seen: Vec<(u32, Rate)> = both
        .iter()
        .map(|run| (run.parts[0].depth, run.rate))
        .collect();
    let expected = [(3, 1.0), (3, 2.0), (4, 1.0), (4, 2.0)]
        .map(|(depth, rate)| (depth, Rate::PerSecond(rate)));
    assert_eq!(seen, expected);
}

#[test]
fn times_have_units() {
    let run =
        &runs("sd=s,lun=/dev/x\nwd=w,sd=s\nrd=r,wd=w,iorate=max,el=1h,in=1m,wa=2m,pa=90,dist=exp")
            [0];
    assert_eq!(run.elapsed.map(|time| time.as_secs()), Some(3600));
    assert_eq!(
        (
            run.interval.as_secs(),
            run.warmup.as_secs(),
            run.pause.as_secs()
        ),
        (60, 120, 90)
    );
}

#[test]
fn defaults_hold_for_later_jobs() {
    let text = "sd=default,th=4\nsd=a,lun=/dev/a\nsd=default,th=5\nsd=b,lun=/dev/b\nsd=c,lun=/dev/c,th=6\n\
                wd=default,sd=*,xf=1k\nrd=default,iorate=max\nrd=r\n";
    let run = &runs(text)[0];
    let seen: Vec<(&str, u32, u64)> = run
        .parts
        .iter()
        .map(|part| (&*part.storage, part.depth, part.lengths[0].0))
        .collect();
    assert_eq!(seen, [("a", 4, 1024), ("b", 5, 1024), ("c", 6, 1024)]);
}

#[test]
fn names_end_in_a_star_or_come_in_ranges() {
    let names = |wd: &str| -> Vec<String> {
        let text = format!(
            "sd=s1,lun=/1\nsd=s2,lun=/2\nsd=s3,lun=/3\nsd=t,lun=/4\nwd=w,sd={wd}\nrd=r,wd=w,iorate=max"
        );
        runs(&text)[0]
            .parts
            .iter()
            .map(|part| part.storage.clone())
            .collect()
    };
    assert_eq!(names("s*"), ["s1", "s2", "s3"]);
    assert_eq!(names("(s1-s2,t)"), ["s1", "s2", "t"]);
    assert_eq!(names("*"), ["s1", "s2", "s3", "t"]);
}

#[test]
fn one_definition_counts_up_to_many() {
    let run = &runs("sd=s,lun=/dev/disk*,count=(3,2)\nwd=w,sd=s*\nrd=r,wd=w,iorate=max")[0];
    let seen: Vec<(&str, &str)> = run
        .parts
        .iter()
        .map(|part| (&*part.storage, part.path.to_str().expect("a name")))
        .collect();
    assert_eq!(seen, [("s3", "/dev/disk3"), ("s4", "/dev/disk4")]);
}

/// Several volumes, with threads added to each from run to run.
#[test]
fn threads_are_of_each_storage() {
    let text =
        "sd=s,lun=/dev/v,count=(1,18)\nwd=w,sd=s*,xf=8k\nrd=r,wd=w,iorate=max,forthreads=(8-16,4)";
    let seen: Vec<(usize, u32)> = runs(text)
        .iter()
        .map(|run| (run.parts.len(), run.parts[17].depth))
        .collect();
    assert_eq!(seen, [(18, 8), (18, 12), (18, 16)]);
}

#[test]
fn the_rate_is_shared_out() {
    let text =
        "sd=a,lun=/a\nsd=b,lun=/b\nwd=x,sd=(a,b),skew=80\nwd=y,sd=a\nrd=r,wd=(x,y),iorate=100";
    let run = &runs(text)[0];
    let seen: Vec<(&str, &str, f64, u32)> = run
        .parts
        .iter()
        .map(|part| (&*part.workload, &*part.storage, part.share, part.depth))
        .collect();
    // Two workloads share the 8 threads of a.
    assert_eq!(
        seen,
        [("x", "a", 0.4, 4), ("x", "b", 0.4, 8), ("y", "a", 0.2, 4)]
    );
}

#[test]
fn strides_count_from_start_to_start() {
    assert_eq!(
        part("", ",xf=512,stride=(1m,1m)", "").stride,
        Some((1 << 20) + 512)
    );
}

#[test]
fn arrivals_are_named_by_their_beginnings() {
    for (word, expected) in [
        ("e", Arrivals::Exponential),
        ("uni", Arrivals::Uniform),
        ("u", Arrivals::Uniform),
        ("deterministic", Arrivals::Even),
        ("d", Arrivals::Even),
    ] {
        let text = format!("sd=s,lun=/dev/x\nwd=w,sd=s\nrd=r,wd=w,iorate=9,dist={word}");
        assert_eq!(runs(&text)[0].arrivals, Some(expected), "{word}");
    }
}

/// In sequence: over and over, from anywhere on, or once to the end, but no longer than elapsed= says.
#[test]
fn sequences_begin_and_end_as_asked() {
    let seen = |seek: &str, rd: &str| {
        let text = format!("sd=s,lun=/dev/x\nwd=w,sd=s,seekpct={seek}\nrd=r,wd=w,iorate=max{rd}");
        let run = runs(&text).remove(0);
        let seconds = run.elapsed.map(|time| time.as_secs());
        (
            run.parts[0].random_percent,
            run.parts[0].from_anywhere,
            run.is_one_pass,
            seconds,
        )
    };
    assert_eq!(seen("0", ""), (0, false, false, Some(30)));
    assert_eq!(seen("seqnz", ""), (0, true, false, Some(30)));
    assert_eq!(seen("eof", ",el=90"), (0, false, true, Some(90)));
    assert_eq!(seen("EOF", ""), (0, false, true, Some(30)));
    // A list of the run overrides the workload.
    assert_eq!(
        seen("eof", ",forseekpct=(50)"),
        (50, false, false, Some(30))
    );
}

#[test]
fn redundant_options_are_accepted() {
    let text = "messagescan=no\nvalidate=no\nhd=localhost,system=localhost,jvms=4\n\
                sd=s,lun=/dev/x,host=localhost,openflags=o_direct\nwd=w,sd=s,host=*\nrd=r,wd=w,iorate=max,openflags=directio";
    assert_eq!(runs(text).len(), 1);
}

/// Each error by its words: line, the text found, the text expected.
#[test]
fn errors_name_place_and_expectation() {
    let sd = "sd=s,lun=/dev/x\n";
    let wd = "sd=s,lun=/dev/x\nwd=w,sd=s\n";
    for (begin, line, expected) in [
        (
            "",
            "fred=3",
            "p:1: found unknown parameter `fred=` of the general part, expected one of: messagescan",
        ),
        (
            "",
            "validate=yes",
            "p:1: validate of the general part: found `yes`, expected no",
        ),
        (
            "",
            "dedupratio=2",
            "p:1: found `dedupratio=` of the general part, which is about data that Vdbench writes",
        ),
        (
            "",
            "hd=h,system=far",
            "p:1: system of hd=h: found `far`, expected localhost: I/O are of this host",
        ),
        (
            "",
            "hd=h,shell=ssh",
            "p:1: found `shell=` of hd=h, which is about other hosts; expected the file without it",
        ),
        (
            "",
            "fsd=f,anchor=/x",
            "p:1: found `fsd=` of the file, which is about trees of files",
        ),
        (
            "",
            "sd=s,lun=/x,fred=1",
            "p:1: found unknown parameter `fred=` of sd=s, expected one of: host, hd, lun",
        ),
        (
            "",
            "sd=s,lun=/x,jo=/tmp",
            "p:1: found `journal= (jo=)` of sd=s, which is about data that Vdbench writes",
        ),
        (
            "",
            "sd=s,lun=/x,offset=100",
            "p:1: offset of sd=s: found `100`, expected bytes, a multiple of 512",
        ),
        (
            "",
            "sd=s,lun=/x,align=1000",
            "p:1: align of sd=s: found `1000`, expected bytes, a multiple of 512",
        ),
        (
            "",
            "sd=s,lun=/x,th=0",
            "p:1: threads of sd=s: found `0`, expected a whole number from 1 to 4096",
        ),
        (
            "",
            "sd=s,lun=/x,th=many",
            "p:1: threads of sd=s: found `many`, expected a whole number",
        ),
        (
            "",
            "sd=s,lun=/x,th=1,th=2",
            "p:1: found threads= of sd=s a second time, expected it once: it is in line 1",
        ),
        (
            "",
            "sd=s,lun=/x,host=far",
            "p:1: host of sd=s: found `far`, expected localhost",
        ),
        (
            "",
            "sd=s,lun=/x,openflags=o_sync",
            "p:1: openflags of sd=s: found `o_sync`, expected o_direct",
        ),
        (
            "",
            "sd=s,lun=/x,range=(5)",
            "p:1: range of sd=s: found `(5)`, expected two places that go up",
        ),
        (
            "",
            "sd=s,lun=/x,range=(90,110)",
            "p:1: range of sd=s: found `(90,110)`, expected a range that does not wrap",
        ),
        (
            "",
            "sd=s,lun=/x,count=3",
            "p:1: count of sd=s: found `3`, expected the first number and how many",
        ),
        (
            "",
            "sd=s,th=1\nwd=w,sd=s",
            "p:1: found sd=s without lun=, expected the device or file",
        ),
        (
            "",
            "sd=default,lun=/x",
            "p:1: lun of sd=default: found `/x`, expected no lun= of a default",
        ),
        ("", "sd=", "p:1: sd=: found ``, expected one name"),
        (
            sd,
            "sd=s,lun=/dev/y",
            "p:2: found sd=s a second time, expected it once: it is in line 1",
        ),
        (
            wd,
            "wd=w,sd=s",
            "p:3: found wd=w a second time, expected it once: it is in line 2",
        ),
        (
            sd,
            "wd=w,sd=s\nsd=t,lun=/y",
            "p:3: found sd= of wd=w a second time, expected it once: it is in line 2",
        ),
        (
            sd,
            "wd=w\nlun=/y",
            "p:3: found unknown parameter `lun=` of wd=w, expected one of: sd, skew",
        ),
        (
            sd,
            "wd=w,th=4",
            "p:2: found `threads= (th=)` of wd=w, which is for storages that were joined",
        ),
        (
            sd,
            "wd=w,xf=1000",
            "p:2: xfersize of wd=w: found `1000`, expected lengths that are multiples of 512",
        ),
        (
            sd,
            "wd=w,xf=(4k,50,8k,40)",
            "p:2: xfersize of wd=w: found `(4k,50,8k,40)`, expected percentages that add up",
        ),
        (
            sd,
            "wd=w,xf=(4k,50,8k,25,16k)",
            "p:2: xfersize of wd=w: found `(4k,50,8k,25,16k)`, expected lengths and perc",
        ),
        (
            sd,
            "wd=w,xf=(8k,4k,512)",
            "p:2: xfersize of wd=w: found `(8k,4k,512)`, expected (MIN,MAX,STEP)",
        ),
        (
            sd,
            "wd=w,rdpct=101",
            "p:2: rdpct of wd=w: found `101`, expected a whole number from 0 to 100",
        ),
        (
            sd,
            "wd=w,seekpct=poisson",
            "p:2: seekpct of wd=w: found `poisson`, expected a whole number from 0 (sequential) to 100 (random), seq or rand, \
             or seqnz or eof",
        ),
        (
            sd,
            "wd=w,seekpct=33.5",
            "p:2: seekpct of wd=w: found `33.5`, expected a whole number from 0 (sequential)",
        ),
        (
            sd,
            "wd=w,sd=s,see=eof\nwd=v,sd=s\nrd=r,wd=(v,w),iorate=max",
            "p:4: seekpct of wd=w in rd=r: found `eof`, expected eof for all workloads of a run, or for none",
        ),
        (
            sd,
            "wd=w,sd=s,see=eof,xf=(4k,50,8k,50)\nrd=r,wd=w,iorate=max",
            "p:3: seekpct of wd=w in rd=r: found `eof`, expected a single xfersize with it",
        ),
        (
            sd,
            "wd=w,sd=s,see=eof\nrd=r,wd=w,iorate=max,forrhpct=(10,20)",
            "p:3: seekpct of wd=w in rd=r: found `eof`, expected no rhpct and no whpct with it",
        ),
        (
            sd,
            "wd=w,sd=s,see=eof\nrd=r,wd=w,iorate=max,warmup=1",
            "p:3: seekpct of wd=w in rd=r: found `eof`, expected no warmup with it",
        ),
        (
            sd,
            "wd=w,sd=s,see=seqnz,stride=(1m,1m)\nrd=r,wd=w,iorate=max",
            "p:3: stride of wd=w: found `1048576`, expected a single xfersize and seekpct=100 with it",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,forseekpct=(0,eof)",
            "p:3: forseekpct of rd=r: found `(0,eof)`, expected a whole number from 0 (sequential) to 100 (random), seq or rand",
        ),
        (
            sd,
            "wd=w,stride=(1m,2m)",
            "p:2: stride of wd=w: found `(1m,2m)`, expected the same multiple of 512 twice",
        ),
        (
            sd,
            "wd=w,hotband=(1,2)",
            "p:2: found `hotband=` of wd=w, which skews starts by a law of its own",
        ),
        (
            wd,
            "rd=r,wd=w",
            "p:3: found rd=r without iorate=, expected iorate=max, iorate=curve or I/O a second",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=fast",
            "p:3: iorate of rd=r: found `fast`, expected max, curve, I/O a second above 0",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=0",
            "p:3: iorate of rd=r: found `0`, expected max, curve, I/O a second above 0",
        ),
        (
            wd,
            "rd=r,wd=v,iorate=max",
            "p:3: found wd=v, which is not defined, expected one of: w",
        ),
        (
            wd,
            "rd=r,wd=w,sd=t,iorate=max",
            "p:3: found sd=t, which is not defined, expected one of: s",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max\nrd=r,wd=w",
            "p:4: found rd=r a second time, expected it once: it is in line 3",
        ),
        (
            sd,
            "wd=w,sd=(s,s)\nrd=r,wd=w,iorate=max",
            "p:3: found sd=s for wd=w in rd=r a second time",
        ),
        (
            sd,
            "wd=w,xf=1k\nrd=r,wd=w,iorate=max",
            "p:3: found rd=r with wd=w without sd=, expected it in one of the two",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,el=1",
            "p:3: elapsed of rd=r: found `1`, expected a multiple of interval=1, and at least",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,el=5,in=2",
            "p:3: elapsed of rd=r: found `5`, expected a multiple of interval=2",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,in=2,el=4,wa=3",
            "p:3: warmup of rd=r: found `3`, expected a multiple of interval=2",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,el=1k",
            "p:3: elapsed of rd=r: found `1k`, expected whole seconds",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,dist=poisson",
            "p:3: distribution of rd=r: found `poisson`, expected exponential, uniform or deterministic, or the beginning",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,dist=variable",
            "p:3: distribution of rd=r: found `variable`, expected exponential",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,dist=(spike,9,9)",
            "p:3: distribution of rd=r: found `(spike,9,9)`, expected exponential, uniform or deterministic, or the beginning \
             of one; variable and spike change the rate",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,forth=(1-8)",
            "p:3: forthreads of rd=r: found `(1-8)`, expected a step behind a range",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,forth=(1,0)",
            "p:3: forthreads of rd=r: found `(1,0)`, expected whole numbers from 1",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,forxf=100",
            "p:3: forxfersize of rd=r: found `100`, expected lengths that are",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,forrdpct=200",
            "p:3: forrdpct of rd=r: found `200`, expected whole numbers from 0",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,maxdata=1g",
            "p:3: found `maxdata=` of rd=r, which ends a run after a number of bytes",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,fwdrate=5",
            "p:3: found `fwdrate=` of rd=r, which is about trees of files",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=curve,curve=(0,50)",
            "p:3: curve of rd=r: found `(0,50)`, expected percentages",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,startcmd=ls",
            "p:3: found `startcmd=` of rd=r, which runs a command",
        ),
        (
            wd,
            "rd=r,wd=w,iorate=max,forth=(1-1000,1),forxf=(512-64k,512)",
            "p:3: found more than 10000 runs of rd=r",
        ),
        (
            sd,
            "wd=w,sd=s,skew=50\nrd=r,wd=w,iorate=9",
            "p:3: skew of the workloads of rd=r: found `50`, expected percentages",
        ),
        (
            sd,
            "wd=w,sd=s,skew=100\nrd=r,wd=w,iorate=max",
            "p:3: skew of the workloads of rd=r: found `100`, expected none",
        ),
        (
            wd,
            "* nothing",
            "p: found nothing to run, expected a run: rd=NAME",
        ),
        ("", "", "p: found nothing to run, expected a run: rd=NAME"),
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
