#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    plumb_fuzz::run("spc", data);
});
