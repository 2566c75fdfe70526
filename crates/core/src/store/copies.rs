//! The copies of a record, each read by itself: what tells whether replicas agree.

use std::fmt;

/// What a store can show of the copies that it keeps of each record.
pub enum Copies<S> {
    /// It keeps one.
    One,
    /// It keeps several, or nobody knows, and they cannot be read one by one: why, in words that
    /// follow `whether replicas agree is not shown:`.
    NotShown(String),
    /// Each copy, the first being the one that takes the writes where there is such a one.
    Each(Vec<NodeCopy<S>>),
}

/// One copy of every record: a node that has all of them, or the second one of each shard.
pub struct NodeCopy<S> {
    /// The node, or which of the copies it is.
    pub name: String,
    /// Reads that copy and never another.
    pub store: S,
    /// Which node has it, of the record at a key, where that differs from record to record.
    pub place: Option<CopyPlace>,
}

/// Tells the node that has a copy of the record at a key, if it is known.
pub type CopyPlace = Box<dyn Fn(&[u8]) -> Option<String>>;

impl<S> NodeCopy<S> {
    /// A node's copy of every record.
    pub fn of_node(name: impl Into<String>, store: S) -> Self {
        NodeCopy { name: name.into(), store, place: None }
    }

    /// Where the copy of the record at `key` lies.
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
