//! The table of cases that each codec of this crate passes: answers as servers send them, whole and in pieces, and
//! bytes that no server sends.

use std::fmt::Debug;

use super::MalformedAnswer;

/// Looks for the end of an answer, as [`super::Protocol::scan`].
type Scan<P, T> = fn(&mut P, u32, &[u8]) -> Result<Option<(T, usize)>, MalformedAnswer>;

/// Answers as they came, with the number of replies that make up each.
type Recorded = [(&'static [u8], u32)];

/// Finds each answer wherever the reads cut it, and leaves alone what follows it.
pub(crate) fn is_found<P: Default, T: Copy + PartialEq + Debug>(
    scan: Scan<P, T>,
    recorded: &Recorded,
    follows: &[u8],
) {
    for (answer, parts) in recorded {
        let shown = String::from_utf8_lossy(answer);
        let expected = scan(&mut P::default(), *parts, answer).unwrap();
        assert_eq!(expected.map(|(_, length)| length), Some(answer.len()), "{shown:?}");
        let mut growing = P::default();
        for cut in 0..answer.len() {
            assert_eq!(
                scan(&mut growing, *parts, &answer[..cut]).unwrap(),
                None,
                "{shown:?} {cut}"
            );
            let mut progress = P::default();
            assert_eq!(
                scan(&mut progress, *parts, &answer[..cut]).unwrap(),
                None,
                "{shown:?} {cut}"
            );
            assert_eq!(scan(&mut progress, *parts, answer).unwrap(), expected, "{shown:?} {cut}");
        }
        assert_eq!(scan(&mut growing, *parts, answer).unwrap(), expected, "{shown:?}");
        let input = [answer, follows].concat();
        assert_eq!(scan(&mut P::default(), *parts, &input).unwrap(), expected, "{shown:?}");
    }
}

/// Makes bytes of an `alphabet`, and answers with a byte changed. None may make the codec panic; `check` is given the
/// first token, the answer and the number of its replies where the codec finds an answer in them.
pub(crate) fn no_bytes_panic<P: Default, T>(
    scan: Scan<P, T>,
    recorded: &Recorded,
    alphabet: &[u8],
    check: impl Fn(T, &[u8], u32),
) {
    let mut state = 0x9E37_79B9_7F4A_7C15;
    for round in 0..200_000 {
        let mut input = Vec::new();
        if round % 2 == 0 {
            for _ in 0..random(&mut state) % 40 {
                input.push(alphabet[random(&mut state) as usize % alphabet.len()]);
            }
        } else {
            let (answer, _) = recorded[random(&mut state) as usize % recorded.len()];
            input.extend_from_slice(answer);
            let at = random(&mut state) as usize % input.len();
            input[at] = random(&mut state) as u8;
        }
        let parts = (random(&mut state) % 3) as u32 + 1;
        if let Ok(Some((first, length))) = scan(&mut P::default(), parts, &input) {
            assert!(length <= input.len());
            check(first, &input[..length], parts);
        }
    }
}

/// xorshift64*: enough to make bytes that no server sends, the same in each run.
fn random(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_F491_4F6C_DD1D)
}
