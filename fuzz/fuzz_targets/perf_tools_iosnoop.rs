#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    plumb_fuzz::run("perf_tools_iosnoop", data);
});
