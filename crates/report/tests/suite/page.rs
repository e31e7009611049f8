//! The page as a whole: well-formed, self-contained, safe against the names in a trace, complete, and true to
//! independently counted figures.

use plumb_testkit::wait::RunLimited;
use plumb_testkit::{real_trace, require};
use std::collections::BTreeSet;
use std::sync::Arc;

use plumb_diagnose::{Analysis, Diagnosis, Questions, analyze, diagnose};
use plumb_geometry::{Bytes, Grid};
use plumb_profile::timeline::Timeline;
use plumb_profile::{Collector, Profile, ProfileSet, Settings};
use plumb_report::html::html;
use plumb_report::verdict::Outcome;
use plumb_report::{Report, Section};
use plumb_trace::{
    AlignTotals, Batch, Bucket, Clock, CountedTime, Distribution, Event, Fill, Layer, Measured,
    Names, Op, ReadOptions, SourceInfo, open,
};

const SCRIPT: &str = "<script>alert('x')</script>\"&\u{202e}";

/// The page of profiles, with everything asked that can be.
fn render(profiles: &ProfileSet, questions: &Questions) -> String {
    let analyses: Vec<(&Profile, Analysis)> = profiles
        .iter()
        .map(|profile| (profile, analyze(profile, None, questions)))
        .collect();
    let mut diagnosis = Diagnosis::default();
    for (profile, analysis) in &analyses {
        diagnosis.absorb(diagnose(profile, analysis, questions));
    }
    let sections = analyses
        .iter()
        .map(|(profile, analysis)| Section { profile, analysis })
        .collect();
    html(&Report {
        title: format!("I/O of {SCRIPT}"),
        version: "0.0",
        command: format!("plumb analyze {SCRIPT}"),
        sources: &[SCRIPT.to_owned()],
        notes: &[format!("a note on {SCRIPT}")],
        sections,
        diagnosis: &diagnosis,
        outcome: Outcome::Clean,
    })
}

/// The questions of most tests: a grid, a chunk, a record and a shift.
fn questions() -> Questions {
    Questions {
        grids: vec![Grid::ASSUMED, Grid::unit(Bytes(1 << 20)).expect("a grid")],
        chunk: Grid::boundary(Bytes(64 << 10)).ok(),
        members: Some(4),
        record: Grid::unit(Bytes(8 << 10)).ok(),
        shift_bytes: Some(-512),
        ..Questions::default()
    }
}

/// A profile of events; each gets the first command of `names`.
fn collect(
    events: impl Iterator<Item = Event>,
    names: Names,
    clock: Clock,
    questions: &Questions,
) -> ProfileSet {
    let mut collector = Collector::new(&questions.settings()).expect("a modulus");
    collector.set_clock(clock);
    let mut batch = Batch {
        names: Arc::new(names),
        ..Batch::default()
    };
    events.for_each(|event| batch.push(&event));
    collector.fold(&batch);
    collector.finish(&SourceInfo::default())
}

/// `count` I/O at sector 63 of everything, spread over 50 GB, timed if asked.
fn mixed(count: u64, timed: bool) -> impl Iterator<Item = Event> {
    (0..count).map(move |n| {
        let op = [Op::Read, Op::Read, Op::Write, Op::Flush][(n % 4) as usize];
        let start = 63 * 512 + (n * 7_919 % 12_000_000) * 4096;
        let length = if op == Op::Flush { 0 } else { 512 << (n % 13) };
        let mut event = Event::new(n as i64 * 3_000_000, 0, Layer::Request, op, start, length);
        event.device_ns = timed.then_some(90_000 + (n as i64 * n as i64 % 77_777) * 100);
        event.queue_ns = timed.then_some(1_000);
        event.comm = 1;
        event.pid = Some(7);
        event
    })
}

fn names(device: &str) -> Names {
    let mut names = Names::default();
    names.device(device);
    names.word(SCRIPT);
    if let Some(device) = names.device_mut(0) {
        device.partitions = vec![
            (format!("p1 {SCRIPT}"), 32_256),
            ("p2".to_owned(), 20 << 30),
        ];
        device.size_bytes = Some(60 << 30);
    }
    names
}

/// Everything that must hold of every page.
fn check(page: &str) {
    balanced(page);
    let fetched = page.replace("<meta http-equiv=", "");
    for forbidden in [
        "<script",
        "<img",
        "http",
        "src=",
        "url(",
        "@import",
        "onload",
        "javascript:",
        "NaN",
        "\u{202e}",
    ] {
        assert!(!fetched.contains(forbidden), "found {forbidden}");
    }
    let values = |name: &str| {
        let before = format!(" {name}=\"");
        let parts = page.split(before.as_str()).skip(1);
        parts
            .map(|rest| rest.split('"').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let ids = values("id");
    assert_eq!(
        ids.iter().collect::<BTreeSet<_>>().len(),
        ids.len(),
        "an anchor is given twice"
    );
    for link in values("href") {
        assert!(
            link.strip_prefix('#')
                .is_some_and(|id| ids.iter().any(|known| known == id)),
            "{link} leads nowhere"
        );
    }
    for picture in page.split("<svg").skip(1) {
        let elements = picture
            .split("</svg>")
            .next()
            .unwrap_or_default()
            .matches('<')
            .count();
        assert!(elements < 1500, "{elements} elements in a picture");
    }
}

/// The texts and the values of attributes that have this word, one a line.
fn texts_with(page: &str, word: &str) -> String {
    let texts = page.split(['<', '>', '"']);
    let texts: Vec<&str> = texts.filter(|text| text.contains(word)).collect();
    texts.join("\n")
}

/// Every element that is opened is closed, in order, and attributes are quoted.
fn balanced(page: &str) {
    let mut open = Vec::new();
    let mut rest = page
        .strip_prefix("<!DOCTYPE html>")
        .expect("a document type");
    while let Some((_, tag)) = rest.split_once('<') {
        let (tag, after) = tag.split_once('>').expect("an end of the tag");
        assert!(
            tag.matches('"').count().is_multiple_of(2),
            "quotes in <{tag}>"
        );
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "at </{name}>"),
            None if tag.ends_with('/') || tag.starts_with("meta") => {}
            None => open.push(tag.split(' ').next().unwrap_or_default()),
        }
        rest = after;
    }
    assert!(open.is_empty(), "still open: {open:?}");
}

#[test]
fn a_full_page_has_every_part_and_no_name_gets_out() {
    let questions = questions();
    let profiles = collect(mixed(5_000, true), names(SCRIPT), Clock::Unix, &questions);
    let page = render(&profiles, &questions);
    check(&page);
    assert!(page.contains(
        "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;\\u{202e} (request layer)"
    ));
    for part in [
        "Findings",
        "misaligned-io",
        "Steps:",
        "Reads only.",
        "Confidence:",
        "estimated, not measured",
        "Not judged",
        "Size mix over time",
        "Throughput over time",
        "Places over time",
        "Starts within 4 KiB",
        "Starts within 1 MiB",
        "Best offset by granularity",
        "if starts were spread evenly, 99 of 100 cases",
        ">Latency<",
        "Latency, cumulative",
        "insert to issue",
        "Latency over time",
        "Seek distances",
        "Fit on the grids",
        "Offset of the I/O, device",
        "exact for these requests",
        "this takes a trace of the vfs layer",
        "Load by member of the stripe",
        "Sizes, by power of two",
        "Commonest lengths",
        "Random by request size",
        "Processes with the most I/O",
        "time of day, UTC, from 1970-01-01 00:00:00",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(!page.contains("Not known:"), "everything was known");
}

#[test]
fn missing_data_of_a_source_are_named_and_not_drawn() {
    let questions = Questions::default();
    let untimed = collect(mixed(1_000, false), names("sda"), Clock::Start, &questions);
    let page = render(&untimed, &questions);
    check(&page);
    let nothing = render(&ProfileSet::default(), &questions);
    check(&nothing);
    let texts = [
        texts_with(&page, "Not known"),
        texts_with(&page, "since the"),
        texts_with(&page, "over time"),
        texts_with(&nothing, "judged"),
    ];
    insta::assert_snapshot!(texts.join("\n\n"));
}

/// Sums of a kernel have no course over time: one sentence says so, and no box stands for a picture.
#[test]
fn without_a_course_nothing_is_drawn_over_time() {
    let questions = Questions::default();
    let mut sums = ProfileSet::default();
    for profile in collect(mixed(1_000, true), names("sda"), Clock::Start, &questions).iter() {
        sums.add(&Profile {
            timeline: Timeline::default(),
            ..profile.clone()
        });
    }
    let page = render(&sums, &questions);
    check(&page);
    // One sentence, and no title of a picture.
    insta::assert_snapshot!(texts_with(&page, "over time"));
    assert!(!page.contains("Not known:") && page.contains("Seek distances"));
}

#[test]
fn few_io_are_unknown_and_never_clean() {
    let questions = Questions::default();
    let page = render(
        &collect(mixed(3, true), names("sda"), Clock::Start, &questions),
        &questions,
    );
    check(&page);
    insta::assert_snapshot!(texts_with(&page, "not clean"));
}

#[test]
fn counts_of_a_source_are_shown_unchanged() {
    let mut collector = Collector::new(&Settings::default()).expect("a modulus");
    let bucket = |low, high, ios| Bucket { low, high, ios };
    let histogram = Distribution {
        subject: "vm".to_owned(),
        measured: Measured::SeekBytes,
        op: Some(Op::Write),
        buckets: vec![bucket(None, Some(-512), 7), bucket(Some(1), None, 11)],
        min_max_mean: Some((-4096, 8192, 12)),
        interval: None,
        bytes: None,
    };
    let totals = AlignTotals {
        subject: "vm".to_owned(),
        elapsed_ns: Some(10_000_000_000),
        ios: 1_011,
        misaligned_ios: 997,
        start_unit_bytes: 8192,
        mean_offset_bytes: 1024,
        odd_length_ios: 3,
        len_unit_bytes: 8192,
    };
    collector.fold_ready_made(&Fill::Distribution(histogram), Layer::Request);
    collector.fold_ready_made(&Fill::Totals(totals), Layer::Request);
    let page = render(
        &collector.finish(&SourceInfo::default()),
        &Questions::default(),
    );
    check(&page);
    for part in [
        "Distance to the next I/O, write",
        "Least −4 KiB",
        "1,011",
        "997 (98.6 %)",
        "1 KiB",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(
        !page.contains("<figure>"),
        "no picture of what was not told"
    );
}

/// Two intervals of 10 s: 3 and 5 reads of 4 KiB.
#[test]
fn counts_of_intervals_are_drawn_over_time() {
    let mut collector = Collector::new(&Settings::default()).expect("a modulus");
    for (number, ios) in [(0, 3), (1, 5)] {
        let interval = CountedTime {
            from_ns: number * 10_000_000_000,
            to_ns: (number + 1) * 10_000_000_000,
        };
        let histogram = Distribution {
            subject: "vm".to_owned(),
            measured: Measured::LenBytes,
            op: Some(Op::Read),
            buckets: vec![Bucket {
                low: Some(4096),
                high: Some(8191),
                ios,
            }],
            min_max_mean: None,
            interval: Some(interval),
            bytes: Some(4096 * ios),
        };
        collector.fold_ready_made(&Fill::Distribution(histogram), Layer::Request);
    }
    let profiles = collector.finish(&SourceInfo::default());
    let profile = profiles.iter().next().expect("a profile");
    let buckets: Vec<_> = profile
        .imported
        .histograms
        .iter()
        .map(|histogram| histogram.buckets.clone())
        .collect();
    assert_eq!(buckets, [[(Some(4096), Some(8191), 8)]], "they add up");
    let windows: Vec<_> = profile.timeline.iter().map(|(_, window)| window).collect();
    let read_bytes: u64 = windows.iter().map(|window| window.read_bytes).sum();
    assert_eq!(read_bytes, 8 * 4096);
    let page = render(&profiles, &Questions::default());
    check(&page);
    assert_eq!(
        page.matches("<figure>").count(),
        2,
        "lengths, and bytes a second"
    );
}

#[test]
fn hostile_numbers_are_drawn_within_the_picture() {
    let times = [i64::MIN + 1, -1, 0, 1, i64::MAX - 1];
    let starts = [0, 511, 1 << 40, u64::MAX - 1];
    let lengths = [0, 1, 513, 1 << 40];
    let mut events = Vec::new();
    for (n, time_ns) in times.into_iter().enumerate() {
        for start in starts {
            for length in lengths {
                let mut event = Event::new(time_ns, 0, Layer::Vfs, Op::ALL[n % 6], start, length);
                event.device_ns = [None, Some(0), Some(-5), Some(i64::MAX)][n % 4];
                events.push(event);
            }
        }
    }
    for clock in [Clock::Unix, Clock::Boot] {
        let profiles = collect(
            events.clone().into_iter(),
            names("sda"),
            clock,
            &questions(),
        );
        check(&render(&profiles, &questions()));
    }
    let one = std::iter::once(Event::new(5, 0, Layer::Bio, Op::Write, 512, 512));
    check(&render(
        &collect(one, names("sda"), Clock::Unix, &questions()),
        &questions(),
    ));
}

#[test]
fn many_devices_are_linked_and_the_page_stays_small() {
    let questions = Questions::default();
    let mut profiles = ProfileSet::default();
    for device in 0..60 {
        profiles.merge(&collect(
            mixed(400 + device, true),
            names(&format!("sd{device:02}")),
            Clock::Start,
            &questions,
        ));
    }
    let page = render(&profiles, &questions);
    check(&page);
    assert_eq!(page.matches("<b>Size mix").count(), 24);
    // One block for all 60 devices, whose list has the 59 others, each with an anchor.
    let blocks = page.matches("misaligned-io: 60 places, alike").count();
    assert_eq!(blocks, 1);
    for number in 1..=60 {
        let anchors = page.matches(&format!("id=\"finding-{number}\"")).count();
        assert_eq!(anchors, 1, "finding {number}");
    }
    assert!(page.contains("href=\"#section-60\""));
    assert!(page.len() < 8 << 20, "{} bytes", page.len());
}

#[test]
fn pictures_of_a_real_trace_agree_with_other_counts() {
    require!(RealTraces);
    let name = "vscsi/cloudPhysicsIO.vscsi";
    let (path, expected) = (real_trace(name), real_trace("EXPECTED.json"));
    let expected = std::fs::read_to_string(expected).expect("readable");
    let expected: serde_json::Value = serde_json::from_str(&expected).expect("JSON");
    let all = &expected[name]["all"];

    let questions = Questions::default();
    let mut reader =
        open::open(&open::pieces(&[path]).remove(0), &ReadOptions::default()).expect("opens");
    let mut collector = Collector::new(&Settings::default()).expect("a modulus");
    let mut batch = Batch::default();
    while reader.fill(&mut batch).expect("readable") == Fill::Events {
        collector.set_clock(reader.info().clock);
        collector.fold(&batch);
    }
    let page = render(&collector.finish(reader.info()), &questions);
    check(&page);

    let count =
        |value: &serde_json::Value| plumb_geometry::group_digits(value.as_u64().expect("a count"));
    assert!(page.contains(&format!("<dd>{}<", count(&all["n"]))));
    let sectors = all["start_mod_4096_in_sectors"]
        .as_object()
        .expect("counts by sector");
    assert_eq!(sectors.len(), 8);
    for (sector, ios) in sectors {
        let hint = format!("from sector {sector}\nall I/O {} (", count(ios));
        assert!(page.contains(&hint), "{hint} is missing");
    }
    let misaligned = count(&all["start_not_mod_4096"]["count"]);
    assert!(page.contains(&format!(
        "{misaligned} of {} (99.1 %) I/O on ",
        count(&all["n"])
    )));
    let lengths = all["size_hist_top20_exact"]
        .as_object()
        .expect("counts by length");
    let listed: Vec<_> = lengths
        .iter()
        .filter(|(_, ios)| ios.as_u64() > Some(1_000))
        .collect();
    assert_eq!(listed.len(), 10);
    for (length, ios) in listed {
        let row = format!(
            ">{}</td><td>{}<",
            Bytes(length.parse().expect("a length")),
            count(ios)
        );
        assert!(page.contains(&row), "{row} is missing");
    }
}

#[test]
fn the_page_allows_its_own_style_and_nothing_else() {
    require!(Tool("sha256sum"), Tool("base64"), Tool("xxd"));
    let page = render(&ProfileSet::default(), &Questions::default());
    let (_, behind) = page.split_once("<style>").expect("a style");
    let (style, _) = behind.split_once("</style>").expect("its end");
    let folder = plumb_testkit::temp_dir("policy");
    let file = folder.path().join("style");
    std::fs::write(&file, style).expect("a file");
    let script = format!(
        "sha256sum <{} | cut -d' ' -f1 | xxd -r -p | base64",
        file.display()
    );
    let done = std::process::Command::new("sh")
        .args(["-c", &script])
        .limited_output();
    let hash = String::from_utf8(done.stdout).expect("text");
    let policy = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; style-src &#39;sha256-{}&#39;; \
         base-uri &#39;none&#39;; form-action &#39;none&#39;\">",
        hash.trim()
    );
    let at = page.find("<meta http-equiv").expect("a policy");
    assert!(
        page.contains(&policy),
        "found {}\nexpected {policy}",
        &page[at..at + 250]
    );
    assert!(
        !page.contains("style=\"") && !page.contains("<script"),
        "no other style and no script"
    );
}
