//! libFuzzer's way into [`kvdyno_fuzz::couchbase_reply`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kvdyno_fuzz::couchbase_reply(data));
