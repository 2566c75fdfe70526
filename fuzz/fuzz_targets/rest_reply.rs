//! libFuzzer's way into [`kvdyno_fuzz::rest_reply`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kvdyno_fuzz::rest_reply(data));
