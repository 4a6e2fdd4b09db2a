//! The syntax tree of one document: nodes with their positions, in document order, aliases not yet followed.

use std::borrow::Cow;

use super::fault::{Fault, Place};
use super::scalar::Tag;
use crate::limits::Limits;

/// The nodes of a document in document order; node 0 is the root.
#[derive(Debug, Default)]
pub(super) struct Tree<'input> {
    pub(super) nodes: Vec<Node<'input>>,
}

#[derive(Debug)]
pub(super) struct Node<'input> {
    pub(super) kind: Kind<'input>,
    pub(super) place: Place,
    /// Index after the last descendant; 0 while the node is still open.
    pub(super) end: usize,
}

#[derive(Debug)]
pub(super) enum Kind<'input> {
    Scalar {
        text: Cow<'input, str>,
        plain: bool,
        tag: Tag,
    },
    Sequence,
    /// Its children alternate between keys and values.
    Mapping,
    /// The node that the alias refers to: always an earlier one that is complete.
    Alias(usize),
}

/// Builds a tree and enforces the limits.
#[derive(Debug)]
pub(super) struct TreeBuilder<'input, 'limits> {
    tree: Tree<'input>,
    open: Vec<usize>,
    limits: &'limits Limits,
    /// Nodes read before this document.
    nodes_before: usize,
}

impl<'input, 'limits> TreeBuilder<'input, 'limits> {
    pub(super) fn new(limits: &'limits Limits, nodes_before: usize) -> Self {
        Self { tree: Tree::default(), open: Vec::new(), limits, nodes_before }
    }

    /// Adds a node without children.
    pub(super) fn leaf(&mut self, kind: Kind<'input>, place: Place) -> Result<usize, Fault> {
        let index = self.push(kind, place)?;
        self.tree.nodes[index].end = index + 1;
        Ok(index)
    }

    /// Adds a node whose children follow.
    pub(super) fn open(&mut self, kind: Kind<'input>, place: Place) -> Result<usize, Fault> {
        if self.open.len() >= self.limits.depth {
            return Err(too_deep(self.limits, place));
        }
        let index = self.push(kind, place)?;
        self.open.push(index);
        Ok(index)
    }

    /// Closes the node that was opened last.
    pub(super) fn close(&mut self) {
        if let Some(index) = self.open.pop() {
            self.tree.nodes[index].end = self.tree.nodes.len();
        }
    }

    /// The innermost open node.
    pub(super) fn innermost(&self) -> Option<&Kind<'input>> {
        self.open.last().map(|&index| &self.tree.nodes[index].kind)
    }

    /// Whether a node is complete, so that an alias may refer to it.
    pub(super) fn is_complete(&self, index: usize) -> bool {
        self.tree.nodes.get(index).is_some_and(|node| node.end > 0)
    }

    pub(super) fn finish(mut self) -> Tree<'input> {
        while !self.open.is_empty() {
            self.close();
        }
        self.tree
    }

    fn push(&mut self, kind: Kind<'input>, place: Place) -> Result<usize, Fault> {
        let index = self.tree.nodes.len();
        if self.nodes_before + index >= self.limits.nodes {
            return Err(Fault::new(place, format!("the input has more than {} nodes", self.limits.nodes))
                .hint("Deploy it as several apps."));
        }
        self.tree.nodes.push(Node { kind, place, end: 0 });
        Ok(index)
    }
}

/// The error for a document nested deeper than allowed.
pub(super) fn too_deep(limits: &Limits, place: Place) -> Fault {
    Fault::new(place, format!("the document is nested deeper than {} levels", limits.depth))
        .hint("No Kubernetes object needs this; check how the file was generated.")
}
