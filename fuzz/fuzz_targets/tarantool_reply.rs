//! libFuzzer's way into [`kvdyno_fuzz::tarantool_reply`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kvdyno_fuzz::tarantool_reply(data));
