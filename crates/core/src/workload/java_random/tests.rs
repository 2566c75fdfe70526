//! The recorded values were printed by `java.util.Random` of OpenJDK 17.

use super::*;

fn first_values(min: u32, max: u32, seed: i64) -> Vec<u32> {
    let sequence = JavaSequence::new(seed, min, max - min + 1, 0);
    let mut cursor = JavaCursor::default();
    (0..12).map(|n| sequence.value(n, &mut cursor)).collect()
}

#[test]
fn values_are_those_of_java() {
    let recorded: [(u32, u32, i64, [u32; 12]); 10] = [
        (1, 1800, 1, [1186, 389, 848, 1114, 855, 905, 1635, 407, 1379, 749, 170, 674]),
        (1, 1800, 42, [531, 364, 649, 1485, 1171, 926, 906, 1119, 1520, 894, 183, 1503]),
        (1, 1800, -7, [1463, 898, 791, 1108, 679, 1488, 592, 637, 646, 1745, 578, 1122]),
        (100, 1900, -7, [1066, 666, 1000, 196, 1763, 1592, 125, 659, 1105, 1401, 895, 1688]),
        (0, 255, 42, [186, 13, 174, 12, 79, 241, 70, 181, 170, 23, 231, 115]),
        (1, 1024, 1, [749, 103, 420, 418, 213, 38, 341, 675, 991, 728, 7, 157]),
        (7, 7, 1, [7; 12]),
        (
            0,
            1_610_612_735,
            42,
            [
                1562431130, 117392763, 1467211248, 102948884, 662969970, 595021505, 1519796918,
                1429255519, 196118093, 969067502, 791955276, 819572292,
            ],
        ),
        (
            0,
            2_147_483_646,
            -7,
            [
                577934662, 1935951297, 1445645590, 2031187707, 1119890478, 314447087, 1829394591,
                677675436, 184135245, 425474944, 988357177, 1094888921,
            ],
        ),
        // A bound of 2^30 + 1, of which Java throws away nearly half of the draws.
        (
            10,
            1_073_741_834,
            1,
            [
                215764598, 880641857, 874970323, 446064264, 77814914, 714504444, 13136579,
                327998483, 342691273, 1046012199, 852925386, 746289320,
            ],
        ),
    ];
    for (min, max, seed, values) in recorded {
        assert_eq!(first_values(min, max, seed), values, "{min} to {max}, seed {seed}");
    }
}

/// Far into the sequence of the published runs, after draws that Java threw away (about 4 in
/// 10 million).
#[test]
fn values_far_on_are_those_of_java() {
    let recorded: [(i64, [(u64, u32); 6]); 2] = [
        (
            1,
            [
                (999, 1571),
                (999_999, 1199),
                (4_999_999, 1704),
                (9_999_999, 1513),
                (14_999_999, 433),
                (19_999_999, 343),
            ],
        ),
        (
            42,
            [
                (999, 608),
                (999_999, 1825),
                (4_999_999, 946),
                (9_999_999, 373),
                (14_999_999, 148),
                (19_999_999, 1714),
            ],
        ),
    ];
    for (seed, values) in recorded {
        for expected in [0, 20_000_000] {
            let sequence = JavaSequence::new(seed, 100, 1800, expected);
            for (n, value) in values.into_iter().rev() {
                assert_eq!(sequence.value(n, &mut JavaCursor::default()), value);
            }
        }
    }
}

/// Sum of the first 20 million values of the published sizes, so that each of them counts.
#[test]
fn all_values_sum_to_those_of_java() {
    for (seed, sum) in [(1, 19_987_304_813), (42, 19_992_275_095)] {
        let sequence = JavaSequence::new(seed, 100, 1800, 20_000_000);
        let mut cursor = JavaCursor::default();
        let drawn: u64 = (0..20_000_000).map(|n| u64::from(sequence.value(n, &mut cursor))).sum();
        assert_eq!(drawn, sum);
    }
}

#[test]
fn a_bound_that_throws_away_a_quarter_is_exact() {
    let sequence = JavaSequence::new(5, 0, 1_610_612_736, 0);
    for (n, value) in [
        (999_999, 644261357),
        (9, 596500747),
        (99, 716084205),
        (9_999, 1590284817),
        (99_999, 1020796653),
    ] {
        assert_eq!(sequence.value(n, &mut JavaCursor::default()), value);
    }
}

#[test]
fn order_and_strides_do_not_count() {
    for bound in [1800, 1_000_000, (1 << 30) + 1] {
        let sequence = JavaSequence::new(3, 5, bound, 0);
        let mut cursor = JavaCursor::default();
        let in_order: Vec<u32> = (0..30_000).map(|n| sequence.value(n, &mut cursor)).collect();
        let other = JavaSequence::new(3, 5, bound, 30_000);
        let mut cursor = JavaCursor::default();
        for stride in [1, 3, 16, 7919, 29_999] {
            for k in 0..30_000 {
                let n = k * stride % 30_000;
                assert_eq!(other.value(n, &mut cursor), in_order[n as usize]);
            }
        }
    }
}

#[test]
fn far_beyond_the_end_it_starts_over() {
    let sequence = JavaSequence::new(3, 0, 1800, 0);
    let mut cursor = JavaCursor::default();
    let first = sequence.value(17, &mut cursor);
    assert_eq!(sequence.value(PERIOD * 5 + 17, &mut cursor), first);
}
