//! Every fuzz target: `PLUMB_FUZZ_TARGET=msr cargo fuzz run reader fuzz/corpus/msr fuzz/seeds/msr`.

#![no_main]

use std::sync::LazyLock;

/// Read once: the environment of a process does not change, and an input takes microseconds.
static TARGET: LazyLock<String> = LazyLock::new(|| {
    std::env::var("PLUMB_FUZZ_TARGET").unwrap_or_else(|_| {
        panic!(
            "set PLUMB_FUZZ_TARGET to one of: {}",
            plumb_fuzz::targets().join(", ")
        )
    })
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    plumb_fuzz::run(&TARGET, data);
});
