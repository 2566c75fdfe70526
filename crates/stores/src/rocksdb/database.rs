//! A database of RocksDB and what is handed to it, as values that own what the C interface made: they free
//! it, and turn its errors into text.

use std::ffi::{CString, c_char};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use super::error::{RocksError, checked, take_text};
use super::functions::{
    Functions, RawBatch, RawDatabase, RawIterator, RawPinned, RawReadOptions, RawWriteOptions,
};
use super::library::Library;
use super::options::Options;

/// The pointer that functions take a key or a value by; its length goes beside it.
fn start(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// Lends bytes of RocksDB's.
///
/// # Safety
/// `data` is null or begins `length` bytes, which stay as they are for `'a`.
unsafe fn lent<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: by this function's own condition.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

/// An open database.
pub struct Database {
    functions: &'static Functions,
    database: *mut RawDatabase,
    /// Knows the counters of the open database.
    options: Options,
}

// SAFETY: RocksDB's database may be used by several threads at once (`rocksdb/db.h`), and so may its counters.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: what is lent by the database, as iterators, borrows it and is gone.
        unsafe { (self.functions.close)(self.database) }
    }
}

impl Database {
    /// Opens the database in a folder.
    ///
    /// # Errors
    /// If RocksDB declines.
    pub fn open(options: Options, folder: &Path) -> Result<Database, RocksError> {
        let functions = options.functions;
        let folder = CString::new(folder.as_os_str().as_bytes()).map_err(RocksError::new)?;
        // SAFETY: the options are there, and the path ends with a zero byte.
        let open = |e| unsafe { (functions.open)(options.raw, folder.as_ptr(), e) };
        let database = checked(functions, open)?;
        if database.is_null() {
            return Err(RocksError::new("RocksDB opens no database and says no more"));
        }
        Ok(Database { functions, database, options })
    }

    /// Tells the counters as text, if they were asked for.
    #[must_use]
    pub fn statistics(&self) -> Option<String> {
        self.options.statistics()
    }

    /// Gets the value of a record, where it lies in RocksDB's memory.
    ///
    /// # Errors
    /// If RocksDB fails.
    #[inline]
    pub fn get(
        &self,
        options: &ReadOptions,
        key: &[u8],
    ) -> Result<Option<PinnedValue<'_>>, RocksError> {
        let value = checked(self.functions, |e| {
            // SAFETY: database and options are there, and the key outlives the call.
            unsafe {
                (self.functions.get_pinned)(self.database, options.raw, start(key), key.len(), e)
            }
        })?;
        // Made only of a value that is there: dropping it frees the value.
        Ok((!value.is_null()).then(|| PinnedValue {
            functions: self.functions,
            value,
            database: PhantomData,
        }))
    }

    /// Gets several records with one call, and gives `each` its number and its value, if it is there.
    ///
    /// # Errors
    /// If RocksDB fails for one of them; `each` may have been given others.
    pub fn get_several(
        &self,
        options: &ReadOptions,
        keys: &[&[u8]],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), RocksError> {
        let starts: Vec<_> = keys.iter().map(|key| start(key)).collect();
        let sizes: Vec<usize> = keys.iter().map(|key| key.len()).collect();
        let mut found = Found::new(self.functions, keys.len());
        // SAFETY: each list has room for as many as there are keys, which outlive the call.
        unsafe {
            (self.functions.multi_get)(
                self.database,
                options.raw,
                keys.len(),
                starts.as_ptr(),
                sizes.as_ptr(),
                found.values.as_mut_ptr(),
                found.sizes.as_mut_ptr(),
                found.errors.as_mut_ptr(),
            );
        }
        for number in 0..keys.len() {
            let error = std::mem::replace(&mut found.errors[number], ptr::null_mut());
            if let Some(text) = take_text(self.functions, error) {
                return Err(RocksError::new(text));
            }
            let value = found.values[number];
            // SAFETY: the value is as long as RocksDB says, and is freed after this.
            let bytes = (!value.is_null()).then(|| unsafe { lent(value, found.sizes[number]) });
            each(number, bytes);
        }
        Ok(())
    }

    /// Gives `each` up to `count` records from a key on, in order.
    ///
    /// # Errors
    /// If RocksDB fails; `each` may have been given records.
    pub fn scan(
        &self,
        options: &ReadOptions,
        from: &[u8],
        count: usize,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), RocksError> {
        let f = self.functions;
        // SAFETY: database and options are there; both outlive the iterator.
        let raw = unsafe { (f.create_iterator)(self.database, options.raw) };
        let cursor = Cursor { functions: f, raw };
        // SAFETY: the iterator is there, and the key outlives the call.
        unsafe { (f.iter_seek)(cursor.raw, start(from), from.len()) };
        for _ in 0..count {
            // SAFETY: the iterator is there.
            if unsafe { (f.iter_valid)(cursor.raw) } == 0 {
                // SAFETY: as above.
                return checked(f, |e| unsafe { (f.iter_get_error)(cursor.raw, e) });
            }
            let (mut key_size, mut value_size) = (0, 0);
            // SAFETY: the iterator is at a record, whose bytes stay as they are until it moves.
            let (key, value) = unsafe {
                let key = (f.iter_key)(cursor.raw, &mut key_size);
                let value = (f.iter_value)(cursor.raw, &mut value_size);
                (lent(key, key_size), lent(value, value_size))
            };
            each(key, value);
            // SAFETY: the iterator is at a record; what it lent is not used any more.
            unsafe { (f.iter_next)(cursor.raw) };
        }
        Ok(())
    }

    /// Writes one record.
    ///
    /// # Errors
    /// If RocksDB fails.
    #[inline]
    pub fn put(&self, options: &WriteOptions, key: &[u8], value: &[u8]) -> Result<(), RocksError> {
        checked(self.functions, |e| {
            // SAFETY: database and options are there; key and value outlive the call.
            unsafe {
                (self.functions.put)(
                    self.database,
                    options.raw,
                    start(key),
                    key.len(),
                    start(value),
                    value.len(),
                    e,
                )
            }
        })
    }

    /// Deletes one record, if it is there.
    ///
    /// # Errors
    /// If RocksDB fails.
    pub fn delete(&self, options: &WriteOptions, key: &[u8]) -> Result<(), RocksError> {
        checked(self.functions, |e| {
            // SAFETY: database and options are there, and the key outlives the call.
            unsafe { (self.functions.delete)(self.database, options.raw, start(key), key.len(), e) }
        })
    }

    /// Writes all records of a batch or none.
    ///
    /// # Errors
    /// If RocksDB fails.
    pub fn write(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<(), RocksError> {
        checked(self.functions, |e| {
            // SAFETY: database, options and batch are there, and nobody else has the batch.
            unsafe { (self.functions.write)(self.database, options.raw, batch.raw, e) }
        })
    }
}

#[cfg(all(test, feature = "server-tests"))]
impl Database {
    /// Moves the memtable into a table.
    pub(super) fn flush(&self) -> Result<(), RocksError> {
        let f = self.functions;
        // SAFETY: the options are made, used and freed here.
        unsafe {
            let options = (f.flushoptions_create)();
            let answer = checked(f, |e| (f.flush)(self.database, options, e));
            (f.flushoptions_destroy)(options);
            answer
        }
    }

    /// Asks for one of RocksDB's properties that are numbers.
    pub(super) fn property(&self, name: &str) -> Option<u64> {
        let (name, mut value) = (CString::new(name).ok()?, 0);
        // SAFETY: the database is there; name and value outlive the call.
        let code =
            unsafe { (self.functions.property_int)(self.database, name.as_ptr(), &mut value) };
        (code == 0).then_some(value)
    }
}

/// Answers of a get of several: RocksDB's allocations, freed when this goes.
struct Found {
    functions: &'static Functions,
    values: Vec<*mut c_char>,
    sizes: Vec<usize>,
    errors: Vec<*mut c_char>,
}

impl Found {
    fn new(functions: &'static Functions, count: usize) -> Found {
        let nothing = || vec![ptr::null_mut(); count];
        Found { functions, values: nothing(), sizes: vec![0; count], errors: nothing() }
    }
}

impl Drop for Found {
    fn drop(&mut self) {
        for allocation in self.values.iter().chain(&self.errors).filter(|at| !at.is_null()) {
            // SAFETY: RocksDB has allocated it for its caller, and nothing has freed it.
            unsafe { (self.functions.free)(allocation.cast()) };
        }
    }
}

/// An iterator.
struct Cursor {
    functions: &'static Functions,
    raw: *mut RawIterator,
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // SAFETY: it came from `rocksdb_create_iterator`, and this is its only owner.
        unsafe { (self.functions.iter_destroy)(self.raw) }
    }
}

/// A value where RocksDB holds it.
pub struct PinnedValue<'a> {
    functions: &'static Functions,
    value: *mut RawPinned,
    database: PhantomData<&'a Database>,
}

impl std::ops::Deref for PinnedValue<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let mut size = 0;
        // SAFETY: the value is pinned until this is dropped, and as long as RocksDB says.
        unsafe {
            let data = (self.functions.pinnableslice_value)(self.value, &mut size);
            lent(data, size)
        }
    }
}

impl Drop for PinnedValue<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it came from `rocksdb_get_pinned`, and this is its only owner.
        unsafe { (self.functions.pinnableslice_destroy)(self.value) }
    }
}

/// Options of reads: RocksDB's own.
pub struct ReadOptions {
    functions: &'static Functions,
    raw: *mut RawReadOptions,
}

// SAFETY: RocksDB only reads them, and no thread owns them.
unsafe impl Send for ReadOptions {}

impl ReadOptions {
    /// Makes RocksDB's own.
    #[must_use]
    pub fn new(library: Library) -> ReadOptions {
        let functions = library.functions;
        // SAFETY: the function takes nothing and always makes something.
        ReadOptions { functions, raw: unsafe { (functions.readoptions_create)() } }
    }
}

impl Drop for ReadOptions {
    fn drop(&mut self) {
        // SAFETY: they came from `rocksdb_readoptions_create`, and this is their only owner.
        unsafe { (self.functions.readoptions_destroy)(self.raw) }
    }
}

/// Options of writes.
pub struct WriteOptions {
    functions: &'static Functions,
    raw: *mut RawWriteOptions,
}

// SAFETY: as ReadOptions.
unsafe impl Send for WriteOptions {}

impl WriteOptions {
    /// Makes options by which a write is synced before it is acknowledged, or is not logged at all.
    #[must_use]
    pub fn new(library: Library, sync: bool, log: bool) -> WriteOptions {
        let functions = library.functions;
        // SAFETY: the first function makes what the others change; nobody else has it.
        let raw = unsafe {
            let raw = (functions.writeoptions_create)();
            (functions.writeoptions_set_sync)(raw, sync.into());
            (functions.writeoptions_disable_WAL)(raw, (!log).into());
            raw
        };
        WriteOptions { functions, raw }
    }
}

impl Drop for WriteOptions {
    fn drop(&mut self) {
        // SAFETY: they came from `rocksdb_writeoptions_create`, and this is their only owner.
        unsafe { (self.functions.writeoptions_destroy)(self.raw) }
    }
}

/// Writes that are made together.
pub struct WriteBatch {
    functions: &'static Functions,
    raw: *mut RawBatch,
}

impl WriteBatch {
    /// Makes one without a write.
    #[must_use]
    pub fn new(library: Library) -> WriteBatch {
        let functions = library.functions;
        // SAFETY: the function takes nothing and always makes something.
        WriteBatch { functions, raw: unsafe { (functions.writebatch_create)() } }
    }

    /// Adds a record.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        // SAFETY: the batch is this one's alone; RocksDB copies key and value.
        unsafe {
            (self.functions.writebatch_put)(
                self.raw,
                start(key),
                key.len(),
                start(value),
                value.len(),
            );
        }
    }
}

impl Drop for WriteBatch {
    fn drop(&mut self) {
        // SAFETY: it came from `rocksdb_writebatch_create`, and this is its only owner.
        unsafe { (self.functions.writebatch_destroy)(self.raw) }
    }
}
