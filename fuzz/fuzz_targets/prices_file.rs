//! libFuzzer's way into [`kvdyno_fuzz::prices_file`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kvdyno_fuzz::prices_file(data));
