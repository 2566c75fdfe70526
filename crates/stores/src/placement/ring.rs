//! A circle of hashes on which each server has many points: a key lies on the server of the first point at or after the
//! key's own place. Clients differ in how they name the points and in how they hash a key, not in this.

/// Circle of points.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    /// (place, number of the server), in order of the places, of which each stands once.
    points: Vec<(u64, usize)>,
}

impl Ring {
    /// Returns the circle of these points, (place, number of the server). Of two at one place the later stays. Without
    /// any point, which weights near 0 lead to, the first server has all keys.
    pub(super) fn new(points: impl Iterator<Item = (u64, usize)>) -> Ring {
        let points: std::collections::BTreeMap<u64, usize> = points.collect();
        let mut points: Vec<(u64, usize)> = points.into_iter().collect();
        if points.is_empty() {
            points.push((0, 0));
        }
        Ring { points }
    }

    /// Returns the number of the server that has the key at `place`.
    #[inline]
    pub(super) fn of(&self, place: u64) -> usize {
        let at = self.points.partition_point(|point| point.0 < place);
        self.points.get(at).unwrap_or(&self.points[0]).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_the_last_point_the_circle_begins_again() {
        let ring = Ring::new([(20, 1), (10, 0)].into_iter());
        assert_eq!([0, 10, 11, 20, 21, u64::MAX].map(|place| ring.of(place)), [0, 0, 1, 1, 0, 0]);
        assert_eq!(Ring::new([(5, 0), (5, 1)].into_iter()).of(5), 1, "the later");
        assert_eq!(Ring::new(std::iter::empty()).of(7), 0);
    }
}
