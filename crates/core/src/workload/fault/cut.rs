//! The sides of a partition, and the direction in which packets between them are dropped.

use serde::{Deserialize, Serialize};

/// The others from whom nodes are cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutFrom {
    /// The other nodes and the clients.
    #[default]
    All,
    /// The other nodes; clients still reach them.
    Nodes,
    /// The clients; other nodes still reach them.
    Clients,
    /// Nodes of these names; the clients are called [`CutFrom::CLIENTS`].
    Named(Vec<String>),
}

impl CutFrom {
    /// Name of the clients among the names of nodes.
    pub const CLIENTS: &'static str = "clients";

    /// Words for the variants without names, each with its meaning.
    pub const WORDS: [(&'static str, &'static str); 3] = [
        ("all", "Other nodes and clients"),
        ("nodes", "Other nodes; clients still reach them"),
        ("clients", "Clients; other nodes still reach them"),
    ];

    /// Returns the variant that one of [`CutFrom::WORDS`] means; `None` for any other word.
    #[must_use]
    pub fn of(word: &str) -> Option<CutFrom> {
        [CutFrom::All, CutFrom::Nodes, CutFrom::Clients]
            .into_iter()
            .find(|from| from.word() == Some(word))
    }

    /// Returns the word for it; `None` for names.
    #[must_use]
    pub fn word(&self) -> Option<&'static str> {
        match self {
            CutFrom::All => Some("all"),
            CutFrom::Nodes => Some("nodes"),
            CutFrom::Clients => Some("clients"),
            CutFrom::Named(_) => None,
        }
    }

    /// Returns the names of the others, where `nodes` are all nodes and those that are cut off `together` stay together.
    #[must_use]
    pub fn others(&self, nodes: &[&str], together: &[String]) -> Vec<String> {
        let others = nodes.iter().filter(|name| together.iter().all(|node| node != *name));
        let others = others.map(|&name| name.to_owned());
        let clients = CutFrom::CLIENTS.to_owned();
        match self {
            CutFrom::All => others.chain([clients]).collect(),
            CutFrom::Nodes => others.collect(),
            CutFrom::Clients => vec![clients],
            CutFrom::Named(names) => names.clone(),
        }
    }
}

/// Direction of the packets that are dropped, as the node sees it that is cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// All packets.
    #[default]
    Both,
    /// Packets to the node: it receives nothing, and others receive what it sends.
    In,
    /// Packets from the node: it receives, and others receive nothing from it.
    Out,
}

impl Way {
    /// The words for directions, each with its meaning.
    pub const WORDS: [(&'static str, &'static str); 3] =
        [("both", "All"), ("in", "Those that they are sent"), ("out", "Those that they send")];

    /// Returns the direction of this word; `None` if it is none.
    #[must_use]
    pub fn of(word: &str) -> Option<Way> {
        [Way::Both, Way::In, Way::Out].into_iter().find(|way| way.word() == word)
    }

    /// Returns the word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Way::Both => "both",
            Way::In => "in",
            Way::Out => "out",
        }
    }
}

/// Two or more lists of names, each list cut off from all others; the clients may be among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sides(Vec<Vec<String>>);

impl Sides {
    /// Makes it of lists of names. Returns `None` unless there are two or more lists, each with names that no other
    /// has, and a node in the first: the direction of dropped packets is as the first list sees it.
    #[must_use]
    pub fn new(sides: Vec<Vec<String>>) -> Option<Sides> {
        let mut all: Vec<&String> = sides.iter().flatten().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        let named = |side: &Vec<String>| side.iter().any(|name| name != CutFrom::CLIENTS);
        let sound = sides.len() >= 2
            && sides.iter().all(|side| !side.is_empty())
            && all.len() == count
            && sides.first().is_some_and(named);
        sound.then_some(Sides(sides))
    }

    /// Parses sides that are written in one line: `redis-1+clients|redis-2`. Returns `None` where [`Sides::new`]
    /// does, or if a name is empty.
    #[must_use]
    pub fn parse(text: &str) -> Option<Sides> {
        let names = |side: &str| side.split('+').map(|name| name.trim().to_owned()).collect();
        let sides: Vec<Vec<String>> = text.split('|').map(names).collect();
        let named = sides.iter().flatten().all(|name| !name.is_empty());
        Sides::new(sides).filter(|_| named)
    }

    /// Returns the lists of names, in the order in which they were given.
    #[must_use]
    pub fn lists(&self) -> &[Vec<String>] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_cut_off_is_cut_off_from_all_others() {
        let (nodes, together) = (["a", "b", "c", "d"], ["a".to_owned(), "c".to_owned()]);
        let others = |from: CutFrom| from.others(&nodes, &together);
        assert_eq!(others(CutFrom::All), ["b", "d", "clients"]);
        assert_eq!(others(CutFrom::Nodes), ["b", "d"]);
        assert_eq!(others(CutFrom::Clients), ["clients"]);
        assert_eq!(others(CutFrom::Named(vec!["x".to_owned()])), ["x"]);
    }

    #[test]
    fn sides_are_two_or_more_with_a_node_first() {
        let sides = Sides::parse("a+clients | b").expect("two sides");
        assert_eq!(sides.lists(), [vec!["a", "clients"], vec!["b"]]);
        for invalid in ["", "a", "clients|a", "a|a", "a|", "a++b|c"] {
            assert_eq!(Sides::parse(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn each_word_means_what_it_names() {
        for (word, _) in CutFrom::WORDS {
            assert_eq!(CutFrom::of(word).and_then(|from| from.word()), Some(word));
        }
        for (word, _) in Way::WORDS {
            assert_eq!(Way::of(word).map(Way::word), Some(word));
        }
    }
}
