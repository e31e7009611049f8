#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    plumb_fuzz::run("wpa_csv", data);
});
