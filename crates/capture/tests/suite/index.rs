//! The kernel's programs and Rust put a number into the same bucket.

use std::fmt::Write as _;
use std::process::Command;

use plumb_profile::histogram::{log_linear_index, power_index};
use plumb_testkit::wait::RunLimited;

/// Times from which on the programs use one bucket for all.
const LAST: usize = 591;

#[test]
fn buckets_in_c_are_those_in_rust() {
    let room = tempfile::tempdir().expect("a directory");
    let (source, program) = (room.path().join("index.c"), room.path().join("index"));
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/index.h");
    let code = format!(
        "#include \"{header}\"\n#include <stdio.h>\n\
         int main(void) {{ u64 v; while (scanf(\"%llu\", &v) == 1) printf(\"%u %u %u\\n\", log_linear(v), power(v), zeros_below(v)); }}\n"
    );
    std::fs::write(&source, code).expect("room");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let built = Command::new(clang)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .limited_status();
    assert!(built.success());

    let mut values: Vec<u64> = (0..70_000).collect();
    values.extend((0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]));
    let mut value = 1u64;
    while value < u64::MAX / 2 {
        values.push(value);
        value += value / 41 + 1;
    }
    let mut text = String::new();
    values
        .iter()
        .for_each(|value| writeln!(text, "{value}").expect("room"));
    let input = room.path().join("values");
    std::fs::write(&input, text).expect("room");
    let done = Command::new(&program)
        .stdin(std::fs::File::open(&input).expect("values"))
        .limited_output();
    let printed = String::from_utf8(done.stdout).expect("text");
    assert_eq!(printed.lines().count(), values.len());
    for (line, &value) in printed.lines().zip(&values) {
        let zeros = value.trailing_zeros().min(11);
        let expected = format!(
            "{} {} {zeros}",
            log_linear_index(value).min(LAST),
            power_index(value)
        );
        assert_eq!(line, expected, "of {value}");
    }
}
