//! The floor under `lmdb:`: a loop over an LMDB folder that draws a record, writes its decimal key,
//! reads it and copies the value, and does nothing else: no clock, no check, no count. `cargo xtask
//! bench lmdb` runs it in turns with kvdyno over the same folder.

use std::error::Error;

use heed::types::Bytes;
use heed::{CommitOrAbort, EnvOpenOptions};
use kvdyno_core::workload::{KeyForm, KeyModel, KeyWriter};

/// Addresses reserved for the data file, as `lmdb:` does.
const MAP_SIZE: usize = 64 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    // cargo itself adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (Some(folder), Some(gets)) = (arguments.next(), arguments.next()) else {
        println!("give a folder that kvdyno's lmdb: has filled, and the number of gets");
        return Ok(());
    };
    let gets: u64 = gets.parse()?;
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
    let length = records.first(&txn)?.ok_or("the folder holds no records")?.0.len();
    let count = records.len(&txn)?;
    drop(txn);
    let model = KeyModel { form: KeyForm::Decimal, length: u16::try_from(length)? };
    // Decimal keys are the same for all datasets.
    let (writer, mut key) = (KeyWriter::new(model, 0)?, Vec::new());
    let mut value = Vec::new();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let before = cpu_ns()?;
    for _ in 0..gets {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let drawn = (u128::from(state) * u128::from(count)) >> 64;
        writer.write(drawn as u64, &mut key);
        let txn = env.read_txn()?;
        let found = records.get(&txn, &key)?.ok_or("a record has gone")?;
        value.clear();
        value.extend_from_slice(found);
        std::hint::black_box(&value);
    }
    println!("CPU ns per get: {:.1}", (cpu_ns()? - before) as f64 / gets as f64);
    Ok(())
}

/// Processor time of this thread so far, ns: the first figure of Linux's schedstat.
fn cpu_ns() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}
