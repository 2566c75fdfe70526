//! Copies of a record, each read by itself, so that a run can tell if replicas agree.

use std::fmt;

/// Copies of each record, as far as the store can show them.
pub enum Copies<S> {
    /// The store keeps one copy.
    One,
    /// The store keeps several, or it is not known how many, and they cannot be read one by one.
    /// The text is the reason, in words that follow `whether replicas agree is not shown:`.
    NotShown(String),
    /// Each copy; the first is the one that takes the writes, where there is such a one.
    Each(Vec<NodeCopy<S>>),
}

/// One copy of every record: a node that has all of them, or the second one of each shard.
pub struct NodeCopy<S> {
    /// Name of the node, or number of the copy in words.
    pub name: String,
    /// Store that reads this copy and never another.
    pub store: S,
    /// Finder of the node that has the copy of the record at a key, where that differs from record
    /// to record.
    pub place: Option<CopyPlace>,
}

/// Function that names the node which has a copy of the record at a key, if it is known.
pub type CopyPlace = Box<dyn Fn(&[u8]) -> Option<String>>;

impl<S> NodeCopy<S> {
    /// Creates the copy of every record that one node has.
    pub fn of_node(name: impl Into<String>, store: S) -> Self {
        NodeCopy { name: name.into(), store, place: None }
    }

    /// Returns the name of the node that has the copy of the record at `key`, or that of the copy
    /// if the node is not known.
    #[must_use]
    pub fn place_of(&self, key: &[u8]) -> String {
        let place = self.place.as_ref().and_then(|place| place(key));
        place.unwrap_or_else(|| self.name.clone())
    }
}

impl<S> fmt::Debug for NodeCopy<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeCopy").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for Copies<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Copies::One => f.write_str("One"),
            Copies::NotShown(why) => f.debug_tuple("NotShown").field(why).finish(),
            Copies::Each(copies) => f.debug_tuple("Each").field(copies).finish(),
        }
    }
}
