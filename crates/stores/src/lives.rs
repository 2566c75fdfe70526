//! Sees that a server was started anew between two looks: by the name that it gives itself for each of
//! its lives, and by a time that it is up for which is shorter than it should be.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kvdyno_core::store::Figure;

/// So much less than the time between two looks a server may say that it was up longer: it counts whole
/// seconds, and a busy one does so late.
const SLACK: Duration = Duration::from_secs(5);

/// What a server says of its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// Differs from that of any other life: Redis's run id, a number of a process. Empty where it has none.
    pub id: String,
    /// For how long it is up, where it tells that.
    pub up: Option<Duration>,
}

/// What servers say of their lives, by the servers' names; `None` of one that says nothing.
pub(crate) type Told = Vec<(String, Option<Life>)>;

/// The lives of a store's servers as they were last seen, by the servers' names.
#[derive(Debug, Default)]
pub(crate) struct Lives(Mutex<BTreeMap<String, (Life, Instant)>>);

impl Lives {
    /// Notes what servers say that were not seen before.
    pub(crate) fn meet(&self, now: Instant, told: Told) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (server, life) in told {
            if let Some(life) = life {
                seen.entry(server).or_insert((life, now));
            }
        }
    }

    /// Notes what servers say; the figure that tells which of them were started anew since they were
    /// last seen, if any was. One that says nothing stays as it was seen last.
    pub(crate) fn look(&self, now: Instant, told: Told) -> Option<Figure> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut anew = Vec::new();
        for (server, life) in told {
            let Some(life) = life else { continue };
            let before = seen.insert(server.clone(), (life.clone(), now));
            if before.is_some_and(|(before, at)| is_new(&before, &life, now - at)) {
                let up = life.up.map(|up| format!(", up for {} s by now", up.as_secs()));
                anew.push(server + &up.unwrap_or_default());
            }
        }
        (!anew.is_empty()).then(|| Figure::restarted(&anew))
    }
}

/// Whether the server that was `before` has another life `later`.
fn is_new(before: &Life, after: &Life, later: Duration) -> bool {
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
        let life =
            |id: &str, up| Some(Life { id: id.to_owned(), up: Some(Duration::from_secs(up)) });
        let lives = Lives::default();
        let look = |seconds, told: [(&str, Option<Life>); 2]| {
            let told = told.map(|(server, life)| (server.to_owned(), life));
            lives.look(at(seconds), told.to_vec()).map(|figure| figure.detail)
        };
        assert_eq!(look(0, [("a", life("1", 100)), ("b", life("1", 0))]), None, "the first look");
        assert_eq!(look(10, [("a", life("1", 110)), ("b", life("1", 6))]), None, "a slow clock");
        // A container's server is process 1 in each of its lives.
        assert_eq!(
            look(20, [("a", life("2", 3)), ("b", life("1", 9))]).as_deref(),
            Some("a, up for 3 s by now, b, up for 9 s by now")
        );
        assert_eq!(
            look(30, [("a", None), ("b", life("1", 19))]),
            None,
            "what is down says nothing"
        );
        // Whoever asks what the store is does not hide it.
        lives.meet(at(35), vec![("a".to_owned(), life("3", 1))]);
        let told = look(40, [("a", life("3", 6)), ("b", life("1", 29))]);
        assert_eq!(told.as_deref(), Some("a, up for 6 s by now"), "and is found anew later");
    }

    #[test]
    fn a_name_alone_or_a_time_alone_is_enough() {
        let start = Instant::now();
        let lives = Lives::default();
        let look = |seconds, id: &str, up: Option<u64>| {
            let life = Life { id: id.to_owned(), up: up.map(Duration::from_secs) };
            let at = start + Duration::from_secs(seconds);
            lives.look(at, vec![("a".to_owned(), Some(life))]).map(|figure| figure.detail)
        };
        assert_eq!(look(0, "1700000000", None), None, "the first look");
        assert_eq!(look(60, "1700000000", None), None);
        assert_eq!(look(61, "1700000055", None).as_deref(), Some("a"), "when is not known");
        let lives = Lives::default();
        let look = |seconds, up| {
            let life = Life { id: String::new(), up: Some(Duration::from_secs(up)) };
            lives.look(start + Duration::from_secs(seconds), vec![("a".to_owned(), Some(life))])
        };
        assert_eq!((look(0, 7), look(60, 66)), (None, None));
        assert_eq!(
            look(70, 3).map(|figure| figure.detail).as_deref(),
            Some("a, up for 3 s by now")
        );
    }

    #[test]
    fn the_figure_is_known_by_its_name_within_a_store_of_stores_too() {
        let lives = Lives::default();
        let mut told = None;
        for id in ["1", "2"] {
            let life = Some(Life { id: id.to_owned(), up: None });
            told = lives.look(Instant::now(), vec![("h:1".to_owned(), life)]);
        }
        let mut figure = told.expect("it was started anew");
        assert!(figure.tells_of_restarts() && figure.value == 1.0, "{figure:?}");
        figure.name = format!("cache: {}", figure.name);
        assert!(figure.tells_of_restarts());
    }
}
