//! Dumps that nobody's tool printed: no panic, no time that grows faster than the text.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use plumb_stack::dump::{self, Input};
use plumb_stack::{Builder, Stack};
use proptest::prelude::*;
use proptest::sample::Index;

/// A piece of each format, with every kind of line: the seeds of the fuzzer, by the names of their files.
static SAMPLES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/dump");
    let files = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|file| file.expect("a file"));
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("text");
    let mut samples: Vec<_> = files
        .map(|file| {
            (
                file.file_name().to_string_lossy().into_owned(),
                read(file.path()),
            )
        })
        .collect();
    samples.sort();
    samples
});

fn sample(index: &Index) -> &'static str {
    &SAMPLES[index.index(SAMPLES.len())].1
}

/// Most tops that are followed down.
const TOPS_MAX: usize = 64;

fn finish(mut builder: Builder) -> Stack {
    dump::join(&mut builder);
    let stack = builder.finish();
    for top in stack.tops().into_iter().take(TOPS_MAX) {
        let landings = stack.landings(top);
        let _ = stack.standings_of(&landings);
    }
    stack
}

/// Every reader, also of input that it would not accept by itself.
fn read_as_all(name: &str, text: &str) {
    for format in dump::formats() {
        let mut builder = Builder::default();
        let input = Input { name, text };
        let _ = (format.sniff)(&input);
        if let Err(error) = (format.read)(&input, &mut builder) {
            assert!(!error.to_string().is_empty());
        }
        finish(builder);
    }
    let mut builder = Builder::default();
    let _ = dump::read(&Input { name, text }, &mut builder);
    finish(builder);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in "\\PC{0,200}(\n\\PC{0,80}){0,5}", name in "\\PC{0,20}") {
        read_as_all(&name, &text);
    }

    /// Words of the formats in any order.
    #[test]
    fn words_in_any_order(picks in prop::collection::vec((any::<Index>(), any::<Index>(), 0..4u8), 0..60)) {
        let mut text = String::new();
        for (sample_at, word, end) in picks {
            let words: Vec<&str> = sample(&sample_at).split_whitespace().collect();
            text.push_str(words[word.index(words.len())]);
            text.push(if end == 0 { '\n' } else { ' ' });
        }
        read_as_all("c1t0d0s2", &text);
    }

    /// A real print with characters exchanged, and cut off; `\u{663}` is a digit, but not one of ours.
    #[test]
    fn damaged_prints(
        sample_at in any::<Index>(),
        changes in prop::collection::vec((any::<Index>(), prop::char::any()), 0..8),
        end in any::<Index>(),
    ) {
        let mut text: Vec<char> = sample(&sample_at).chars().collect();
        for (at, change) in changes {
            let at = at.index(text.len());
            text[at] = change;
        }
        text.truncate(end.index(text.len() + 1));
        read_as_all("dump", &text.into_iter().collect::<String>());
    }

    /// Numbers too large for anything.
    #[test]
    fn large_numbers(sample_at in any::<Index>(), number in prop_oneof![Just(u64::MAX), Just(1 << 55), Just(0), any::<u64>()], at in any::<Index>()) {
        let words: Vec<&str> = sample(&sample_at).split_inclusive(char::is_whitespace).collect();
        let at = at.index(words.len());
        let mut text = words[..at].concat();
        let _ = write!(text, "{number} ");
        text.push_str(&words[at + 1..].concat());
        read_as_all("dump", &text);
    }
}

/// Each sample is read to its last line. The snapshot has the tool that reads each, so that no format takes the sample of another one.
#[test]
fn samples_are_read() {
    let mut readers = String::new();
    for (name, text) in SAMPLES.iter().filter(|(name, _)| name != "host") {
        let read = dump::read(&Input { name, text }, &mut Builder::default()).expect("reads");
        assert_eq!(read.taken.passed_over, 0, "{name}");
        writeln!(readers, "{name}: {}", read.tool).expect("room");
    }
    insta::assert_snapshot!(readers);
}

/// Longest time of a processor for a mebibyte of a long text. A build without optimization takes up to 2.5 s; it takes minutes if the
/// time grows with the square of the text.
const CPU_PER_MIB_MAX: Duration = Duration::from_secs(8);

/// Lines up to this length in all.
fn lines(len_bytes: usize, line: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for at in 0.. {
        if text.len() >= len_bytes {
            break;
        }
        text.push_str(&line(at));
    }
    text
}

/// Time that a processor has spent on this thread: other programs do not lengthen it.
fn cpu_time() -> Duration {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).expect("the statistics of this thread");
    let ns = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(ns.unwrap_or_else(|| panic!("{path}: found {text:?}")))
}

fn check_long(what: &str, text: &str, mib: usize) {
    let begun = cpu_time();
    let mut builder = Builder::default();
    let _ = dump::read(&Input { name: "long", text }, &mut builder);
    finish(builder);
    let took = cpu_time() - begun;
    let longest = CPU_PER_MIB_MAX * u32::try_from(mib).expect("some mebibytes");
    assert!(took < longest, "{what}: {took:?}, at most {longest:?}");
}

/// A test that takes minutes for the full length; `make soak` runs it.
#[test]
#[ignore = "two minutes: make soak"]
fn time_grows_with_a_text_of_ten_mebibytes() {
    check_long_texts(10);
}

#[test]
fn time_grows_with_the_text() {
    plumb_testkit::require!(Patience);
    check_long_texts(2);
}

/// Reads texts of lines that contradict each other, are above each other, or never end.
fn check_long_texts(mib: usize) {
    let len = mib << 20;
    let lines = |line: fn(usize) -> String| lines(len, line);
    // Rows of a volume in one line, about as long as the other texts.
    let row_count = len / 35;
    let rows = |row: fn(usize) -> String| (0..row_count).map(row).collect::<String>();
    let texts = [
        (
            "contradictions",
            lines(|at| format!("d{} 1 1 c{at}d0s0\n", at % 50_000)),
        ),
        (
            "a chain",
            lines(|at| format!("d{at} -p d{} -o 1 -b 9\n", at + 1)),
        ),
        (
            "rows",
            format!(
                "d1 {row_count} {}",
                rows(|at| format!("2 c{at}d0s0 c{at}d1s0 "))
            ),
        ),
        (
            "no interlace",
            lines(|at| format!("d{at} 1 2 c{at}d0s0 c{at}d1s0\n")),
        ),
        (
            "continued",
            format!("d1 1 1 c1t0d0s0\n{}", lines(|_| "d1 \\\n".to_owned())),
        ),
        (
            "a long word",
            format!("d{} 1 1 c1t0d0s0\n", "1".repeat(len)),
        ),
        (
            "labels",
            lines(|at| format!("* c{at}d0s2 partition map\n0 0 00 0 5 4\n")),
        ),
        (
            "tables",
            lines(|_| {
                "Part Tag Flag Cylinders Size Blocks\n0 root wm 0 - 1 1.00MB (2/0/0) 4\n".to_owned()
            }),
        ),
        (
            "rates",
            format!(
                "device r/s w/s actv\n{}",
                lines(|at| format!("md{at} 1 1 1\n"))
            ),
        ),
        (
            "replicas",
            format!(
                "first blk block count\n{}",
                lines(|at| format!("a 16 8192 /dev/dsk/c{at}d0s0\n"))
            ),
        ),
        (
            "rows of a label",
            format!(
                "device: /dev/sda\n{}",
                lines(|at| format!("/dev/sda{at} : start= {at}, size= 9\n"))
            ),
        ),
        (
            "a dm chain",
            lines(|at| format!("vg-a{at}: 0 8 linear 253:{} 0\n", at + 1)),
        ),
        (
            "a dm table",
            lines(|at| format!("vg-a: {} 8 linear 8:1 {at}\n", at * 8)),
        ),
        (
            "arrays",
            lines(|at| {
                format!("md{at} : active raid5 sda[0] sdb[1]\n 9 blocks super 1.0 4k chunk [2/2]\n")
            }),
        ),
        (
            "members",
            format!(
                "md0 : active raid0 {}\n 9 blocks 4k chunk [9999/9]\nunused devices: <none>\n",
                rows(|at| format!("sd{at}[{at}] "))
            ),
        ),
        (
            "superblocks",
            lines(|at| {
                format!(
                    "/dev/d{at}:\n Magic : a\n Array UUID : a\n Raid Level : raid5\n Raid Devices : 3\n"
                )
            }),
        ),
        (
            "a pool",
            format!(
                "pool: a\nconfig:\nNAME x\na x\n{}",
                lines(|at| format!("  mirror-{at}\n    d{at}\n"))
            ),
        ),
        (
            "a deep pool",
            format!(
                "name: 'a'\nvdev_tree:\n{}",
                (0..3000)
                    .map(|at| format!("{}children[0]:\n", " ".repeat(at + 1)))
                    .collect::<String>()
            ),
        ),
        (
            "mounts",
            lines(|at| format!("/dev/sda{} /m{at} ext4 rw 0 0\n", at % 9)),
        ),
        (
            "paths",
            format!(
                "size=1 features= hwhandler=\na (b) dm-1\n{}",
                lines(|at| format!(" `- 1:0:0:0 sd{at} 8:{at} active\n"))
            ),
        ),
    ];
    for (what, text) in &texts {
        check_long(what, text, mib);
    }
}
