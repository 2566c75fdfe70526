//! Options that a database of RocksDB is opened with, as a value that owns what the C interface made.

use std::ffi::CString;

use super::error::{RocksError, checked, take_text};
use super::functions::{Functions, RawCache, RawOptions, RawTableOptions};
use super::library::Library;

/// Ways to compress blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// The number in `rocksdb/c.h`.
    fn number(self) -> i32 {
        match self {
            Compression::None => 0,
            Compression::Snappy => 1,
            Compression::Lz4 => 4,
            Compression::Zstd => 7,
        }
    }
}

/// Options of a database; a new one has RocksDB's own.
pub struct Options {
    pub(super) functions: &'static Functions,
    pub(super) raw: *mut RawOptions,
}

// SAFETY: no thread owns them.
unsafe impl Send for Options {}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: they came from `rocksdb_options_create`, and this is their only owner.
        unsafe { (self.functions.options_destroy)(self.raw) }
    }
}

impl Options {
    /// Makes RocksDB's own, but that a database is made where there is none if `create` says so.
    #[must_use]
    pub fn new(library: Library, create: bool) -> Options {
        let functions = library.functions;
        // SAFETY: the function takes nothing and always makes something.
        let options = Options { functions, raw: unsafe { (functions.options_create)() } };
        // SAFETY: the options are there and this one's alone.
        unsafe { (functions.options_set_create_if_missing)(options.raw, create.into()) };
        options
    }

    /// Reads and writes tables past the system's page cache.
    pub(super) fn set_direct(&mut self) {
        // SAFETY: the options are there and this one's alone.
        unsafe {
            (self.functions.options_set_use_direct_reads)(self.raw, 1);
            (self.functions.options_set_use_direct_io_for_flush_and_compaction)(self.raw, 1);
        }
    }

    /// Counts what the database does.
    pub(super) fn enable_statistics(&mut self) {
        // SAFETY: the options are there and this one's alone.
        unsafe { (self.functions.options_enable_statistics)(self.raw) }
    }

    /// Tells what was counted, if it was asked for.
    pub(super) fn statistics(&self) -> Option<String> {
        // SAFETY: the options are there; the text is the caller's.
        let text = unsafe { (self.functions.options_statistics_get_string)(self.raw) };
        take_text(self.functions, text)
    }

    /// Sets how blocks are compressed.
    pub(super) fn set_compression(&mut self, compression: Compression) {
        // SAFETY: the options are there and this one's alone.
        unsafe { (self.functions.options_set_compression)(self.raw, compression.number()) }
    }

    /// Sets the bytes of a memtable.
    pub(super) fn set_memtable(&mut self, bytes: usize) {
        // SAFETY: the options are there and this one's alone.
        unsafe { (self.functions.options_set_write_buffer_size)(self.raw, bytes) }
    }

    /// Sets how many threads flush and compact.
    pub(super) fn set_jobs(&mut self, count: u16) {
        // SAFETY: the options are there and this one's alone.
        unsafe { (self.functions.options_set_max_background_jobs)(self.raw, count.into()) }
    }

    /// Sets how tables are made and read.
    pub(super) fn set_tables(&mut self, tables: &TableOptions) {
        // SAFETY: both are there; RocksDB copies the options of tables.
        unsafe { (self.functions.options_set_block_based_table_factory)(self.raw, tables.raw) }
    }

    /// Gives tables a bloom filter. What was set of tables before stays.
    pub(super) fn set_bloom_filter(&mut self, bits: f64) -> Result<(), RocksError> {
        // `false`: one filter for the whole table, the only kind from 7.0 on.
        let text = format!("block_based_table_factory={{filter_policy=bloomfilter:{bits}:false}}");
        let text = CString::new(text).map_err(RocksError::new)?;
        let f = self.functions;
        // SAFETY: the function takes nothing and always makes something.
        let with = Options { functions: f, raw: unsafe { (f.options_create)() } };
        checked(f, |e| {
            // SAFETY: both options are there, and the text ends with a zero byte.
            unsafe { (f.get_options_from_string)(self.raw, text.as_ptr(), with.raw, e) }
        })?;
        *self = with;
        Ok(())
    }
}

/// Options of tables; a new one has RocksDB's own.
pub(super) struct TableOptions {
    functions: &'static Functions,
    raw: *mut RawTableOptions,
}

impl Drop for TableOptions {
    fn drop(&mut self) {
        // SAFETY: they came from `rocksdb_block_based_options_create`, and this is their only owner.
        unsafe { (self.functions.block_based_options_destroy)(self.raw) }
    }
}

impl TableOptions {
    pub(super) fn new(library: Library) -> TableOptions {
        let functions = library.functions;
        // SAFETY: the function takes nothing and always makes something.
        TableOptions { functions, raw: unsafe { (functions.block_based_options_create)() } }
    }

    /// Sets the bytes of the cache of blocks.
    pub(super) fn set_cache(&mut self, bytes: usize) -> Result<(), RocksError> {
        let f = self.functions;
        // SAFETY: the function takes a number only.
        let cache: *mut RawCache = unsafe { (f.cache_create_lru)(bytes) };
        if cache.is_null() {
            return Err(RocksError::new("RocksDB makes no block cache"));
        }
        // SAFETY: both are there; the options hold a share of the cache of their own.
        unsafe {
            (f.block_based_options_set_block_cache)(self.raw, cache);
            (f.cache_destroy)(cache);
        }
        Ok(())
    }

    /// Holds index and filter blocks in the cache of blocks.
    pub(super) fn cache_index(&mut self) {
        // SAFETY: the options are there and this one's alone.
        unsafe {
            (self.functions.block_based_options_set_cache_index_and_filter_blocks)(self.raw, 1);
        }
    }

    /// Sets the bytes of a block before compression.
    pub(super) fn set_block(&mut self, bytes: usize) {
        // SAFETY: the options are there and this one's alone.
        unsafe { (self.functions.block_based_options_set_block_size)(self.raw, bytes) }
    }
}
