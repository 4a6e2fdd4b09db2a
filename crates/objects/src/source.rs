//! The position of every node of a document in its file, in 16 bytes per node.
//! Kept next to the value, so that a finding about `spec.versions[0]` can name file, line and column.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use pushback_crd::path::{PathSegment, display_path, value_at};

/// A position in an input. Line and column start at 1; 0 means unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// File as the user named it, a URL, or `-` for standard input.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => f.write_str(&self.file),
            (line, 0) => write!(f, "{}:{line}", self.file),
            (line, column) => write!(f, "{}:{line}:{column}", self.file),
        }
    }
}

/// An error in an input: what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}{message}", self.place())]
pub struct InputError {
    /// A lower-case sentence: what is wrong, and what was expected.
    pub message: String,
    /// Position in the input; line 0 if only the file is known.
    pub position: Position,
    /// Suggested fixes, each a sentence.
    pub hints: Vec<String>,
}

impl InputError {
    /// The position and a colon; empty if the error is not about a file.
    fn place(&self) -> String {
        if self.position.file.is_empty() { String::new() } else { format!("{}: ", self.position) }
    }
}

/// The positions of all nodes of one document, in document order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenPositions")]
pub struct Positions {
    file: Arc<str>,
    nodes: Vec<Node>,
}

/// Positions as a file has them, which anybody may have written.
#[derive(Deserialize)]
struct WrittenPositions {
    file: Arc<str>,
    nodes: Vec<Node>,
}

impl TryFrom<WrittenPositions> for Positions {
    type Error = &'static str;

    /// Each node has to count itself, and to end where the node around it ends or before.
    fn try_from(WrittenPositions { file, nodes }: WrittenPositions) -> Result<Self, Self::Error> {
        let mut ends = vec![nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            while ends.len() > 1 && ends.last().is_some_and(|end| *end <= index) {
                ends.pop();
            }
            let end = index + node.size as usize;
            if node.size == 0 || ends.last().is_none_or(|around| end > *around) {
                return Err("positions whose sizes do not fit each other");
            }
            ends.push(end);
        }
        Ok(Self { file, nodes })
    }
}

/// A node, followed by its descendants: `size` counts the node and all of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Node {
    /// Digest of the key under which the parent map holds the node; the index if the parent is an array.
    step: u32,
    line: u32,
    column: u32,
    size: u32,
}

/// Builds [`Positions`] while a document is read: open a node, read its children, close it.
#[derive(Debug)]
pub struct PositionsBuilder {
    file: Arc<str>,
    nodes: Vec<Node>,
    open: Vec<usize>,
}

impl PositionsBuilder {
    /// Starts a document of `file`.
    #[must_use]
    pub fn new(file: Arc<str>) -> Self {
        Self { file, nodes: Vec::new(), open: Vec::new() }
    }

    /// Opens a node; `segment` is its key or index in the parent (any for the root).
    pub fn open(&mut self, segment: &PathSegment, line: u32, column: u32) {
        self.open_step(step(segment), line, column);
    }

    /// Like [`PositionsBuilder::open`], for a key.
    pub fn open_key(&mut self, key: &str, line: u32, column: u32) {
        self.open_step(step_of_key(key), line, column);
    }

    fn open_step(&mut self, step: u32, line: u32, column: u32) {
        self.open.push(self.nodes.len());
        self.nodes.push(Node { step, line, column, size: 1 });
    }

    /// Closes the most recently opened node.
    pub fn close(&mut self) {
        if let Some(index) = self.open.pop() {
            self.nodes[index].size = u32::try_from(self.nodes.len() - index).unwrap_or(u32::MAX);
        }
    }

    /// Ends the document.
    #[must_use]
    pub fn finish(mut self) -> Positions {
        while !self.open.is_empty() {
            self.close();
        }
        self.nodes.shrink_to_fit();
        Positions { file: self.file, nodes: self.nodes }
    }
}

impl Positions {
    /// Positions that know only the file.
    #[must_use]
    pub fn of_file(file: &str) -> Self {
        Self { file: file.into(), nodes: Vec::new() }
    }

    /// The file, as the user named it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Number of nodes in the document.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Position of the start of the document.
    #[must_use]
    pub fn start(&self) -> Position {
        self.locate(&[])
    }

    /// The positions of each element of the array at `path`, each as a document of its own.
    #[must_use]
    pub fn elements(&self, path: &[PathSegment]) -> Vec<Positions> {
        let (current, is_there) = self.find(path);
        let Some(parent) = self.nodes.get(current).filter(|_| is_there) else { return Vec::new() };
        let end = current + parent.size as usize;
        let mut elements = Vec::new();
        let mut child = current + 1;
        while let Some(node) = self.nodes.get(child).filter(|_| child < end) {
            let next = child + node.size as usize;
            let nodes = self.nodes.get(child..next).unwrap_or_default().to_vec();
            elements.push(Positions { file: Arc::clone(&self.file), nodes });
            child = next;
        }
        elements
    }

    /// Position of the node at `path`, or of its nearest ancestor that exists.
    #[must_use]
    pub fn locate(&self, path: &[PathSegment]) -> Position {
        let (current, _) = self.find(path);
        let (line, column) = self.nodes.get(current).map_or((0, 0), |node| (node.line, node.column));
        Position { file: self.file.to_string(), line, column }
    }

    /// The positions of the node at `path`, as a document of its own; only that of its nearest ancestor if it does not
    /// exist.
    #[must_use]
    pub fn below(&self, path: &[PathSegment]) -> Positions {
        let (start, is_there) = self.find(path);
        let nodes = match self.nodes.get(start) {
            Some(node) if is_there => self.nodes[start..start + node.size as usize].to_vec(),
            nearest => nearest.map(|node| Node { size: 1, ..*node }).into_iter().collect(),
        };
        Positions { file: Arc::clone(&self.file), nodes }
    }

    /// Returns the same nodes in another file. A node whose place there is not known is where its parent is.
    #[must_use]
    pub fn relocated(&self, file: Arc<str>, place: impl Fn(u32, u32) -> Option<(u32, u32)>) -> Positions {
        let mut nodes = self.nodes.clone();
        // End of each open node, and its place.
        let mut open: Vec<(usize, (u32, u32))> = Vec::new();
        for (index, node) in nodes.iter_mut().enumerate() {
            while open.last().is_some_and(|(end, _)| *end <= index) {
                open.pop();
            }
            let parent = open.last().map_or((0, 0), |(_, place)| *place);
            (node.line, node.column) = place(node.line, node.column).unwrap_or(parent);
            open.push((index + node.size as usize, (node.line, node.column)));
        }
        Positions { file, nodes }
    }

    /// Index of the node at `path`, or of its nearest ancestor that exists, and whether it is the node itself.
    fn find(&self, path: &[PathSegment]) -> (usize, bool) {
        let mut current = 0;
        for segment in path {
            let Some(child) = self.child(current, segment) else { return (current, false) };
            current = child;
        }
        (current, true)
    }

    fn child(&self, parent: usize, segment: &PathSegment) -> Option<usize> {
        let wanted = step(segment);
        let end = parent + self.nodes.get(parent)?.size as usize;
        let mut child = parent + 1;
        while let Some(node) = self.nodes.get(child).filter(|_| child < end) {
            if node.step == wanted {
                return Some(child);
            }
            child += node.size as usize;
        }
        None
    }
}

/// FNV-1a of a key, or the index. A collision between siblings costs a wrong line in a message, nothing else.
fn step(segment: &PathSegment) -> u32 {
    match segment {
        PathSegment::Index(index) => u32::try_from(*index).unwrap_or(u32::MAX),
        PathSegment::Key(key) => step_of_key(key),
    }
}

fn step_of_key(key: &str) -> u32 {
    key.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A document of the input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Its content.
    pub value: Value,
    /// Position of each of its nodes.
    pub positions: Arc<Positions>,
}

#[cfg(any(test, feature = "testing"))]
pub mod testing;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_finds_its_node_or_the_nearest_ancestor() {
        let mut builder = PositionsBuilder::new("a.yaml".into());
        builder.open(&"".into(), 1, 1);
        builder.open(&"kind".into(), 1, 1);
        builder.close();
        builder.open(&"spec".into(), 2, 1);
        builder.open(&"list".into(), 3, 3);
        for line in [4, 5] {
            builder.open(&PathSegment::Index(line as usize - 4), line, 5);
            builder.close();
        }
        builder.close();
        builder.close();
        let positions = builder.finish();
        let at = |path: &[PathSegment]| positions.locate(path).line;
        assert_eq!(at(&["spec".into(), "list".into(), 1.into()]), 5);
        assert_eq!(at(&["spec".into(), "list".into(), 7.into()]), 3);
        assert_eq!(at(&["spec".into(), "absent".into()]), 2);
        assert_eq!(at(&[]), 1);
        let elements = positions.elements(&["spec".into(), "list".into()]);
        assert_eq!(elements.iter().map(|element| element.start().line).collect::<Vec<_>>(), [4, 5]);
        assert_eq!(positions.elements(&["absent".into()]), []);
        let list = positions.below(&["spec".into(), "list".into()]);
        assert_eq!((list.start().line, list.locate(&[1.into()]).line, list.node_count()), (3, 5, 3));
        let absent = positions.below(&["spec".into(), "absent".into()]);
        assert_eq!((absent.start().line, absent.locate(&[1.into()]).line, absent.node_count()), (2, 2, 1));
    }
}
