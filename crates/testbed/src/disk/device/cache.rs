//! Remembers what a disk was handed and has not flushed: each write goes to the image at once, and what was there before is
//! kept, so that a cut of power can take it back.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use kvdyno_core::ground::random::Random;
use kvdyno_core::workload::fault::Lose;

/// Size of what a disk keeps or loses as a whole, bytes.
const SECTOR: usize = 512;

/// Size of a disk's cache, bytes: beyond that it writes out the oldest.
const HOLDS: usize = 64 << 20;

/// One write since the last flush.
#[derive(Debug)]
struct Written {
    offset: u64,
    /// Bytes that were there before, and bytes that are there now.
    old: Vec<u8>,
    new: Vec<u8>,
}

/// Writes since the last flush.
#[derive(Debug, Default)]
pub(super) struct Cache {
    writes: VecDeque<Written>,
    bytes: usize,
}

/// Outcome of a cut of power for what was not flushed, in pieces: writes, or sectors of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CutOutcome {
    pub writes: u64,
    pub pieces: u64,
    pub kept: u64,
}

impl Cache {
    /// Writes to the image.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&mut self, image: &File, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut old = vec![0; data.len()];
        image.read_exact_at(&mut old, offset)?;
        image.write_all_at(data, offset)?;
        self.bytes += data.len();
        self.writes.push_back(Written { offset, old, new: data.to_vec() });
        while self.bytes > HOLDS {
            let oldest = self.writes.pop_front();
            self.bytes -= oldest.map_or(self.bytes, |oldest| oldest.new.len());
        }
        Ok(())
    }

    /// Keeps all that was written.
    pub fn flush(&mut self) {
        self.writes.clear();
        self.bytes = 0;
    }

    /// Takes back what the cut takes: which pieces stay is drawn one by one, so that a later one may stay where an
    /// earlier one does not.
    ///
    /// # Errors
    /// The system's error.
    pub fn cut(&mut self, image: &File, lose: Lose, seed: u64) -> io::Result<CutOutcome> {
        let mut told = CutOutcome { writes: self.writes.len() as u64, ..CutOutcome::default() };
        if lose != Lose::Unwritten {
            for write in self.writes.iter().rev() {
                image.write_all_at(&write.old, write.offset)?;
            }
            let mut random = Random::new(seed, 0);
            for write in &self.writes {
                let piece = if lose == Lose::Torn { SECTOR } else { write.new.len().max(1) };
                for (place, part) in write.new.chunks(piece).enumerate() {
                    told.pieces += 1;
                    if lose != Lose::Unflushed && random.below(2) == 1 {
                        told.kept += 1;
                        image.write_all_at(part, write.offset + (place * piece) as u64)?;
                    }
                }
            }
        }
        self.flush();
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an image of zeros, of which the first kilobyte was flushed as `1`; then 64 writes of a kilobyte each, over
    /// one another by half.
    fn written() -> (Cache, File) {
        let image = tempfile::tempfile().unwrap();
        image.set_len(1 << 20).unwrap();
        let mut cache = Cache::default();
        cache.write(&image, 0, &[1; 1024]).unwrap();
        cache.flush();
        for place in 0..64_u8 {
            cache.write(&image, u64::from(place) * 512, &[place + 2; 1024]).unwrap();
        }
        (cache, image)
    }

    fn sectors(image: &File) -> Vec<u8> {
        let mut all = vec![0; 70 * SECTOR];
        image.read_exact_at(&mut all, 0).unwrap();
        for sector in all.chunks(SECTOR) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is whole");
        }
        all.chunks(SECTOR).map(|sector| sector[0]).collect()
    }

    fn left(lose: Lose, seed: u64) -> (Vec<u8>, CutOutcome) {
        let (mut cache, image) = written();
        let kept = cache.cut(&image, lose, seed).unwrap();
        assert_eq!(cache.cut(&image, Lose::Unflushed, 0).unwrap(), CutOutcome::default());
        (sectors(&image), kept)
    }

    #[test]
    fn what_was_flushed_stays_and_the_rest_goes_as_asked() {
        let mut all = vec![0; 70];
        for place in 0..64 {
            all[place] = place as u8 + 2;
            all[place + 1] = place as u8 + 2;
        }
        assert_eq!(left(Lose::Unwritten, 1).0, all, "it keeps what it was handed");
        let (none, kept) = left(Lose::Unflushed, 1);
        assert!(none[..2] == [1, 1] && none[2..].iter().all(|byte| *byte == 0), "{none:?}");
        assert_eq!(kept, CutOutcome { writes: 64, pieces: 64, kept: 0 });
    }

    /// Each sector holds what one of the writes to it put there, or what was flushed.
    #[test]
    fn by_chance_writes_or_sectors_stay_in_any_order() {
        for (lose, pieces) in [(Lose::Some, 64), (Lose::Torn, 128)] {
            let (mut later_alone, mut half) = (false, false);
            for seed in 1..20 {
                let (now, kept) = left(lose, seed);
                assert_eq!(left(lose, seed), (now.clone(), kept), "the seed decides");
                assert_ne!(left(lose, seed + 1).0, now);
                assert!(kept.pieces == pieces && (pieces / 4..pieces).contains(&kept.kept));
                for (place, found) in now.iter().enumerate() {
                    let (first, flushed) = (place.min(64) as u8 + 1, u8::from(place < 2));
                    let one_of = [flushed, first, first + 1];
                    assert!(one_of.contains(found), "{place}: {found} of {one_of:?}");
                }
                later_alone |= now[..64].windows(2).any(|two| two[0] == 0 && two[1] != 0);
                // Of a write whose sectors none other took: one there, the other not.
                half |= (2..63).any(|place| now[place] == place as u8 + 2 && now[place + 1] == 0);
            }
            assert!(later_alone);
            assert_eq!(half, lose == Lose::Torn, "only torn writes are there by half");
        }
    }

    #[test]
    fn what_is_too_much_for_it_is_written_out_oldest_first() {
        let image = tempfile::tempfile().unwrap();
        image.set_len(2 * HOLDS as u64).unwrap();
        let mut cache = Cache::default();
        let piece = vec![7; HOLDS / 4];
        for place in 0..5 {
            cache.write(&image, place * piece.len() as u64, &piece).unwrap();
        }
        let kept = cache.cut(&image, Lose::Unflushed, 0).unwrap();
        assert_eq!(kept.writes, 4);
        let at = |place: usize| {
            let mut byte = [0];
            image.read_exact_at(&mut byte, (place * piece.len()) as u64).unwrap();
            byte[0]
        };
        assert_eq!([0, 1, 4].map(at), [7, 0, 0]);
    }
}
