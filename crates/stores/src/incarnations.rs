//! Sees that a server was started anew between two looks: by the name that it gives itself for each of
//! its incarnations, and by a time that it is up for which is shorter than it should be.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kvdyno_core::store::Figure;

/// Slack by which a server may say that it was up longer by less than the time between two looks: it counts whole seconds,
/// and a busy one does so late.
const SLACK: Duration = Duration::from_secs(5);

/// Incarnation of a server, as it tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Incarnation {
    /// Name that differs from that of any other incarnation: Redis's run id, a number of a process. Empty where it has none.
    pub id: String,
    /// Time that it is up; `None` where the server does not tell it.
    pub up: Option<Duration>,
}

/// Incarnations that servers tell, by the servers' names; `None` of one that tells nothing.
pub(crate) type ServerIncarnations = Vec<(String, Option<Incarnation>)>;

/// The incarnations of a store's servers as they were last seen, by the servers' names.
#[derive(Debug, Default)]
pub(crate) struct Incarnations(Mutex<BTreeMap<String, (Incarnation, Instant)>>);

impl Incarnations {
    /// Notes what servers say that were not seen before.
    pub(crate) fn meet(&self, now: Instant, incarnations: ServerIncarnations) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (server, incarnation) in incarnations {
            if let Some(incarnation) = incarnation {
                seen.entry(server).or_insert((incarnation, now));
            }
        }
    }

    /// Notes what servers say. Returns the figure that tells which of them were started anew since they were last seen, if
    /// any was. A server that says nothing stays as it was seen last.
    pub(crate) fn look(&self, now: Instant, incarnations: ServerIncarnations) -> Option<Figure> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut anew = Vec::new();
        for (server, incarnation) in incarnations {
            let Some(incarnation) = incarnation else { continue };
            let before = seen.insert(server.clone(), (incarnation.clone(), now));
            if before.is_some_and(|(before, at)| is_new(&before, &incarnation, now - at)) {
                let up = incarnation.up.map(|up| format!(", up for {} s by now", up.as_secs()));
                anew.push(server + &up.unwrap_or_default());
            }
        }
        (!anew.is_empty()).then(|| Figure::restarted(&anew))
    }
}

/// Returns true if `after` is another incarnation than `before`, which was seen earlier by the time `later`.
fn is_new(before: &Incarnation, after: &Incarnation, later: Duration) -> bool {
    let shorter = |(before, after)| after + SLACK < before + later;
    before.id != after.id || before.up.zip(after.up).is_some_and(shorter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_name_or_a_shorter_time_is_another_life() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let incarnation = |id: &str, up| {
            Some(Incarnation { id: id.to_owned(), up: Some(Duration::from_secs(up)) })
        };
        let incarnations = Incarnations::default();
        let look = |seconds, answers: [(&str, Option<Incarnation>); 2]| {
            let answers = answers.map(|(server, incarnation)| (server.to_owned(), incarnation));
            incarnations.look(at(seconds), answers.to_vec()).map(|figure| figure.detail)
        };
        assert_eq!(
            look(0, [("a", incarnation("1", 100)), ("b", incarnation("1", 0))]),
            None,
            "the first look"
        );
        assert_eq!(
            look(10, [("a", incarnation("1", 110)), ("b", incarnation("1", 6))]),
            None,
            "a slow clock"
        );
        // A container's server is process 1 in each of its incarnations.
        assert_eq!(
            look(20, [("a", incarnation("2", 3)), ("b", incarnation("1", 9))]).as_deref(),
            Some("a, up for 3 s by now, b, up for 9 s by now")
        );
        assert_eq!(
            look(30, [("a", None), ("b", incarnation("1", 19))]),
            None,
            "what is down says nothing"
        );
        // Whoever asks what the store is does not hide it.
        incarnations.meet(at(35), vec![("a".to_owned(), incarnation("3", 1))]);
        let told = look(40, [("a", incarnation("3", 6)), ("b", incarnation("1", 29))]);
        assert_eq!(told.as_deref(), Some("a, up for 6 s by now"), "and is found anew later");
    }

    #[test]
    fn a_name_alone_or_a_time_alone_is_enough() {
        let start = Instant::now();
        let incarnations = Incarnations::default();
        let look = |seconds, id: &str, up: Option<u64>| {
            let incarnation = Incarnation { id: id.to_owned(), up: up.map(Duration::from_secs) };
            let at = start + Duration::from_secs(seconds);
            incarnations
                .look(at, vec![("a".to_owned(), Some(incarnation))])
                .map(|figure| figure.detail)
        };
        assert_eq!(look(0, "1700000000", None), None, "the first look");
        assert_eq!(look(60, "1700000000", None), None);
        assert_eq!(look(61, "1700000055", None).as_deref(), Some("a"), "when is not known");
        let incarnations = Incarnations::default();
        let look = |seconds, up| {
            let incarnation = Incarnation { id: String::new(), up: Some(Duration::from_secs(up)) };
            incarnations.look(
                start + Duration::from_secs(seconds),
                vec![("a".to_owned(), Some(incarnation))],
            )
        };
        assert_eq!((look(0, 7), look(60, 66)), (None, None));
        assert_eq!(
            look(70, 3).map(|figure| figure.detail).as_deref(),
            Some("a, up for 3 s by now")
        );
    }

    #[test]
    fn the_figure_is_known_by_its_name_within_a_store_of_stores_too() {
        let incarnations = Incarnations::default();
        let mut told = None;
        for id in ["1", "2"] {
            let incarnation = Some(Incarnation { id: id.to_owned(), up: None });
            told = incarnations.look(Instant::now(), vec![("h:1".to_owned(), incarnation)]);
        }
        let mut figure = told.expect("it was started anew");
        assert!(figure.is_restart() && figure.value == 1.0, "{figure:?}");
        figure.name = format!("cache: {}", figure.name);
        assert!(figure.is_restart());
    }
}
