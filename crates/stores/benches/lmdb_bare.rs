//! The floor under `lmdb:`: a loop over an LMDB folder that draws a key, reads it and copies the
//! value, and does nothing else: no clock, no check, no count. `cargo xtask bench lmdb` runs it in
//! turns with kvdyno over the same folder.

use std::error::Error;
use std::time::Instant;

use heed::types::Bytes;
use heed::{CommitOrAbort, EnvOpenOptions};

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
    let keys: Vec<Box<[u8]>> =
        records.iter(&txn)?.map(|row| row.map(|(key, _)| key.into())).collect::<Result<_, _>>()?;
    drop(txn);
    if keys.is_empty() {
        return Err("the folder holds no records".into());
    }
    let mut value = Vec::new();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let started = Instant::now();
    for _ in 0..gets {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let drawn = ((u128::from(state) * keys.len() as u128) >> 64) as usize;
        let txn = env.read_txn()?;
        let found = records.get(&txn, &keys[drawn])?.ok_or("a record has gone")?;
        value.clear();
        value.extend_from_slice(found);
        std::hint::black_box(&value);
    }
    println!("ns per get: {:.1}", started.elapsed().as_nanos() as f64 / gets as f64);
    Ok(())
}
