//! Mutations of good inputs, from a seed: the same inputs on every machine.

/// Longest input that mutations make, bytes.
const LONGEST: usize = 64 * 1024;
/// Pieces that parsers have trouble with.
const PIECES: [&[u8]; 26] = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"-1",
    b"0",
    b"1",
    b"18446744073709551615",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"536870912",
    b"1e308",
    b"NaN",
    b"\"",
    b"[[",
    b"]",
    b"{",
    b"=",
    b":",
    b"%",
    b"%ff",
    b"*",
    b"$",
    b"\xff",
    b"\xc3\xa9",
];

/// Makes inputs out of inputs.
#[derive(Clone, Debug)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// The mutations of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Mutator {
        Mutator { state: seed }
    }

    /// Steele, Lea and Flood's SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform from 0 to `n`, `n` left out; 0 if `n` is.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// One of the seeds with one to eight mutations, in `input`. `seeds` holds at least one.
    pub fn mutate(&mut self, seeds: &[Vec<u8>], input: &mut Vec<u8>) {
        input.clear();
        input.extend_from_slice(&seeds[self.below(seeds.len())]);
        for _ in 0..=self.below(8) {
            self.once(seeds, input);
        }
        input.truncate(LONGEST);
    }

    fn once(&mut self, seeds: &[Vec<u8>], input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = at + self.below((input.len() - at).min(64) + 1);
        match self.below(8) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.next() as u8,
            2 => drop(input.drain(at..end)),
            3 => input.truncate(at),
            4 => {
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
            5 => {
                let other = &seeds[self.below(seeds.len())];
                let from = self.below(other.len() + 1);
                let to = from + self.below((other.len() - from).min(256) + 1);
                input.splice(at..end, other[from..to].iter().copied());
            }
            6 => {
                let piece = PIECES[self.below(PIECES.len())];
                input.splice(at..end, piece.iter().copied());
            }
            _ => {
                let piece = PIECES[self.below(PIECES.len())];
                input.splice(at..at, piece.iter().copied());
            }
        }
    }
}
