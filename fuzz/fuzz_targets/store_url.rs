//! libFuzzer's way into [`kvdyno_fuzz::store_url`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kvdyno_fuzz::store_url(data));
