#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plumb_fuzz::compressed(plumb_fuzz::GZIP_HEAD, data));
