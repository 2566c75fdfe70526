//! The functions of RocksDB's C interface (`rocksdb/c.h`) that the driver calls, found in a library that is
//! loaded at run time.
//!
//! All of them are in releases 6.11 to 10 with the types that stand here. That is why a bloom filter is asked
//! for by text (`rocksdb_get_options_from_string`): the function that makes one takes an `int` up to 6.29, and a
//! `double` from 7.0 on.

use std::ffi::{c_char, c_int, c_uchar, c_void};

use libloading::os::unix::Library;

use crate::shared_library::Finder;

/// Types of which only RocksDB knows what is in them.
macro_rules! opaque {
    ($($name:ident)*) => {$(
        #[repr(C)]
        pub(super) struct $name {
            _opaque: [u8; 0],
        }
    )*};
}

opaque! {
    RawDatabase RawOptions RawTableOptions RawCache RawWriteOptions RawReadOptions RawPinned RawIterator RawBatch
}
#[cfg(all(test, feature = "server-tests"))]
opaque! { RawFlushOptions }

/// `char**`: where a function that fails leaves a text of its own.
pub(super) type Trouble = *mut *mut c_char;

/// Makes a struct of pointers to functions, each under its name behind `rocksdb_`, and finds them in a library.
macro_rules! functions {
    ($($(#[$condition:meta])* fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Pointers to the functions. They stay callable while the library is loaded, which this holds.
        // As the header spells them.
        #[allow(non_snake_case)]
        pub(super) struct Functions {
            $($(#[$condition])* pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            _library: Library,
        }

        impl Functions {
            /// Finds the functions in `library`.
            ///
            /// # Safety
            /// A function of the library that bears a name of `rocksdb/c.h` has the type that it has there.
            ///
            /// # Errors
            /// The names that the library lacks.
            #[allow(non_snake_case)]
            pub(super) unsafe fn find(library: Library) -> Result<Functions, Vec<&'static str>> {
                let mut finder = Finder::new(&library);
                $(
                    $(#[$condition])*
                    // SAFETY: the type beside the name is the header's, by the caller's word.
                    let $name = unsafe { finder.find(concat!("rocksdb_", stringify!($name))) };
                )*
                let missing = finder.missing;
                let found = || {
                    Some(Functions { $($(#[$condition])* $name: $name?,)* _library: library })
                };
                found().ok_or(missing)
            }
        }
    };
}

functions! {
    fn open(*const RawOptions, *const c_char, Trouble) -> *mut RawDatabase;
    fn close(*mut RawDatabase);
    fn free(*mut c_void);

    fn get_pinned(*mut RawDatabase, *const RawReadOptions, *const c_char, usize, Trouble) -> *mut RawPinned;
    fn pinnableslice_value(*const RawPinned, *mut usize) -> *const c_char;
    fn pinnableslice_destroy(*mut RawPinned);
    fn multi_get(
        *mut RawDatabase, *const RawReadOptions, usize, *const *const c_char, *const usize, *mut *mut c_char,
        *mut usize, *mut *mut c_char
    );
    fn put(*mut RawDatabase, *const RawWriteOptions, *const c_char, usize, *const c_char, usize, Trouble);
    fn delete(*mut RawDatabase, *const RawWriteOptions, *const c_char, usize, Trouble);
    fn write(*mut RawDatabase, *const RawWriteOptions, *mut RawBatch, Trouble);
    fn writebatch_create() -> *mut RawBatch;
    fn writebatch_put(*mut RawBatch, *const c_char, usize, *const c_char, usize);
    fn writebatch_destroy(*mut RawBatch);
    fn create_iterator(*mut RawDatabase, *const RawReadOptions) -> *mut RawIterator;
    fn iter_seek(*mut RawIterator, *const c_char, usize);
    fn iter_valid(*const RawIterator) -> c_uchar;
    fn iter_key(*const RawIterator, *mut usize) -> *const c_char;
    fn iter_value(*const RawIterator, *mut usize) -> *const c_char;
    fn iter_next(*mut RawIterator);
    fn iter_get_error(*const RawIterator, Trouble);
    fn iter_destroy(*mut RawIterator);

    fn readoptions_create() -> *mut RawReadOptions;
    fn readoptions_destroy(*mut RawReadOptions);
    fn writeoptions_create() -> *mut RawWriteOptions;
    fn writeoptions_set_sync(*mut RawWriteOptions, c_uchar);
    fn writeoptions_disable_WAL(*mut RawWriteOptions, c_int);
    fn writeoptions_destroy(*mut RawWriteOptions);

    fn options_create() -> *mut RawOptions;
    fn options_destroy(*mut RawOptions);
    fn options_set_create_if_missing(*mut RawOptions, c_uchar);
    fn options_set_use_direct_reads(*mut RawOptions, c_uchar);
    fn options_set_use_direct_io_for_flush_and_compaction(*mut RawOptions, c_uchar);
    fn options_set_compression(*mut RawOptions, c_int);
    fn options_set_write_buffer_size(*mut RawOptions, usize);
    fn options_set_max_background_jobs(*mut RawOptions, c_int);
    fn options_set_block_based_table_factory(*mut RawOptions, *mut RawTableOptions);
    fn options_enable_statistics(*mut RawOptions);
    fn options_statistics_get_string(*mut RawOptions) -> *mut c_char;
    fn get_options_from_string(*const RawOptions, *const c_char, *mut RawOptions, Trouble);
    fn block_based_options_create() -> *mut RawTableOptions;
    fn block_based_options_destroy(*mut RawTableOptions);
    fn block_based_options_set_block_cache(*mut RawTableOptions, *mut RawCache);
    fn block_based_options_set_cache_index_and_filter_blocks(*mut RawTableOptions, c_uchar);
    fn block_based_options_set_block_size(*mut RawTableOptions, usize);
    fn cache_create_lru(usize) -> *mut RawCache;
    fn cache_destroy(*mut RawCache);

    #[cfg(all(test, feature = "server-tests"))]
    fn property_int(*mut RawDatabase, *const c_char, *mut u64) -> c_int;
    #[cfg(all(test, feature = "server-tests"))]
    fn flush(*mut RawDatabase, *const RawFlushOptions, Trouble);
    #[cfg(all(test, feature = "server-tests"))]
    fn flushoptions_create() -> *mut RawFlushOptions;
    #[cfg(all(test, feature = "server-tests"))]
    fn flushoptions_destroy(*mut RawFlushOptions);
}
