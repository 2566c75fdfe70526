//! The floor under `lmdb:` and `rocksdb:`: a loop over a folder of theirs that draws a record, writes
//! its decimal key, reads it and copies the value, and does nothing else: no clock, no check, no
//! count. `cargo xtask bench lmdb rocksdb` runs it in turns with kvdyno over the same folder.

use std::error::Error;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, EnvOpenOptions};
use kvdyno_core::workload::{KeyForm, KeyModel, KeyWriter};
use kvdyno_stores::rocksdb::database::{Database, ReadOptions};
use kvdyno_stores::rocksdb::library::Library;
use kvdyno_stores::rocksdb::options::Options;

/// Addresses reserved for LMDB's data file, as `lmdb:` does.
const MAP_SIZE: usize = 64 << 30;

const USAGE: &str = "give `lmdb` or `rocksdb`, a folder that kvdyno has filled through it, the \
                     number of records there, and the number of gets";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    // cargo itself adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [engine, folder, records, gets] = &arguments[..] else {
        println!("{USAGE}");
        return Ok(());
    };
    let drawing = Drawing { records: records.parse()?, gets: gets.parse()? };
    match &engine[..] {
        "lmdb" => lmdb(folder, &drawing),
        "rocksdb" => rocksdb(folder, &drawing),
        _ => Err(USAGE.into()),
    }
}

fn lmdb(folder: &str, drawing: &Drawing) -> Outcome<()> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_SIZE);
    // SAFETY: nothing but LMDB changes the files while this runs.
    let env = unsafe { options.open(folder) }?;
    let records = env
        .open_databases_and_commit(env.read_txn()?, |opener, txn| {
            opener.open_database::<Bytes, Bytes>(txn, None).map(CommitOrAbort::<_, ()>::Commit)
        })?
        .unwrap_commit()
        .ok_or("the folder holds no records")?;
    let txn = env.read_txn()?;
    let first = records.first(&txn)?.map(|(key, _)| key.len());
    drop(txn);
    drawing.carry(first, |key, value| {
        let txn = env.read_txn()?;
        let found = records.get(&txn, key)?.ok_or("a record has gone")?;
        value.extend_from_slice(found);
        Ok(())
    })
}

/// The same functions of the same library, which is loaded as `rocksdb:` does.
fn rocksdb(folder: &str, drawing: &Drawing) -> Outcome<()> {
    let library = Library::load()?;
    let records = Database::open(Options::new(library, false), Path::new(folder))?;
    let reads = ReadOptions::new(library);
    let mut first = None;
    records.scan(&reads, b"", 1, |key, _| first = Some(key.len()))?;
    drawing.carry(first, |key, value| {
        let found = records.get(&reads, key)?.ok_or("a record has gone")?;
        value.extend_from_slice(&found);
        Ok(())
    })
}

/// Records of the folder, and the number of gets to make of them.
struct Drawing {
    records: u64,
    gets: u64,
}

impl Drawing {
    /// Reads records at random and tells the time that it took; `key` is the length of their keys.
    fn carry(
        &self,
        key: Option<usize>,
        mut get: impl FnMut(&[u8], &mut Vec<u8>) -> Outcome<()>,
    ) -> Outcome<()> {
        let length = u16::try_from(key.ok_or("the folder holds no records")?)?;
        let model = KeyModel { form: KeyForm::Decimal, length };
        // Decimal keys are the same for all datasets.
        let (writer, mut key) = (KeyWriter::new(model, 0)?, Vec::new());
        let mut value = Vec::new();
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let before = cpu_ns()?;
        for _ in 0..self.gets {
            // Marsaglia's xorshift64.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let drawn = (u128::from(state) * u128::from(self.records)) >> 64;
            writer.write(drawn as u64, &mut key);
            value.clear();
            get(&key, &mut value)?;
            std::hint::black_box(&value);
        }
        println!("CPU ns per get: {:.1}", (cpu_ns()? - before) as f64 / self.gets as f64);
        Ok(())
    }
}

/// Processor time of this thread so far, ns: the first figure of Linux's schedstat.
fn cpu_ns() -> Outcome<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}
