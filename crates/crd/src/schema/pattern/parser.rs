//! Parses the RE2 grammar with Perl flags as Go's `regexp/syntax` does, including its limits, into a tree stored in one
//! vector. Nothing here recurses.
//!
//! Follows Go's `regexp/syntax/parse.go`.

mod bracket;
mod escape;

use std::collections::BTreeMap;

use regex_syntax::hir::ClassUnicode;

use super::{PatternError, classes};

/// Go's limits on repetition counts (single and multiplied by nesting), tree height and compiled size.
const MOST_REPEATS: u32 = 1000;
const MOST_HEIGHT: u32 = 1000;
const MOST_SIZE: u64 = (128 << 20) / 40;

/// Our own limits, which bound memory and stack: beyond them a pattern may be valid but is not judged.
const JUDGED_HEIGHT: u32 = 400;
const JUDGED_SIZE: u64 = 100_000;
const JUDGED_RANGES: usize = 2_000_000;

pub(super) type NodeId = usize;
pub(super) type ClassId = u32;

/// An assertion about a position between two code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordBoundary,
    NoWordBoundary,
}

#[derive(Debug)]
pub(super) enum Node {
    Empty,
    Class(ClassId),
    Look(Look),
    Concatenation(Vec<NodeId>),
    Alternation(Vec<NodeId>),
    Repetition {
        node: NodeId,
        least: u32,
        most: Option<u32>,
    },
    /// A capturing group.
    Group(NodeId),
}

/// A parsed pattern.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) root: NodeId,
    /// Ranges of code points, sorted and disjoint.
    pub(super) classes: Vec<Vec<(char, char)>>,
}

/// Measures of a node and its descendants.
#[derive(Clone, Copy)]
struct Measure {
    /// Go merges adjacent nodes; a run of literals is one node there.
    literal: bool,
    height: u32,
    size: u64,
    /// The largest product of nested repetition counts.
    repeats: u32,
}

#[derive(Clone, Copy, Default)]
struct Flags {
    fold: bool,
    multi_line: bool,
    dot_all: bool,
}

/// An open group; the outermost is the pattern itself.
struct Group {
    /// The flags to restore at its end.
    flags: Flags,
    captures: bool,
    alternatives: Vec<NodeId>,
    items: Vec<NodeId>,
}

#[derive(Default)]
struct Parser<'p> {
    text: &'p str,
    position: usize,
    flags: Flags,
    groups: Vec<Group>,
    nodes: Vec<Node>,
    measures: Vec<Measure>,
    classes: Vec<Vec<(char, char)>>,
    class_ids: BTreeMap<Vec<(char, char)>, ClassId>,
    named: BTreeMap<(String, bool), ClassUnicode>,
    folded: BTreeMap<char, ClassUnicode>,
    /// Position of the last `:]`; without it, each `[:` would be searched to the end of the pattern.
    last_posix_end: Option<usize>,
    ranges: usize,
}

type Parsed<T> = Result<T, PatternError>;

pub(super) fn parse(text: &str) -> Parsed<Tree> {
    let mut parser = Parser {
        text,
        groups: vec![Group::new(Flags::default(), false)],
        last_posix_end: text.rfind(":]"),
        ..Parser::default()
    };
    parser.pattern()?;
    let root = match parser.groups.pop() {
        Some(group) if parser.groups.is_empty() => parser.close(group)?,
        _ => return Err(refused(text.len(), "missing closing )")),
    };
    let measure = parser.measures[root];
    if measure.height > JUDGED_HEIGHT {
        return Err(not_judged(0, "nests too deeply to be judged"));
    }
    if measure.size > JUDGED_SIZE {
        return Err(not_judged(0, "too large to be judged"));
    }
    Ok(Tree { nodes: parser.nodes, root, classes: parser.classes })
}

fn refused(offset: usize, reason: impl Into<String>) -> PatternError {
    PatternError { offset, reason: reason.into(), refused: true }
}

fn not_judged(offset: usize, reason: impl Into<String>) -> PatternError {
    PatternError { offset, reason: reason.into(), refused: false }
}

impl Group {
    fn new(flags: Flags, captures: bool) -> Self {
        Self { flags, captures, alternatives: Vec::new(), items: Vec::new() }
    }
}

impl<'p> Parser<'p> {
    fn rest(&self) -> &'p str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.position += text.len();
        }
        found
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.position += next.len_utf8();
        Some(next)
    }

    fn pattern(&mut self) -> Parsed<()> {
        let mut after_repetition = false;
        let mut start = self.position;
        while let Some(next) = self.next() {
            let mut repetition = None;
            match next {
                '(' => self.open(start)?,
                '|' => self.alternative()?,
                ')' => self.end_group(start)?,
                '^' => self.look(if self.flags.multi_line { Look::LineStart } else { Look::TextStart })?,
                '$' => self.look(if self.flags.multi_line { Look::LineEnd } else { Look::TextEnd })?,
                '.' => self.class(&classes::any(self.flags.dot_all))?,
                '[' => self.bracket(start)?,
                '*' => repetition = Some((0, None)),
                '+' => repetition = Some((1, None)),
                '?' => repetition = Some((0, Some(1))),
                '{' => match self.counts() {
                    Some((least, most)) => {
                        let limit = i64::from(MOST_REPEATS);
                        if least > limit || most.is_some_and(|most| most > limit || least > most) {
                            return Err(refused(start, "invalid repeat count"));
                        }
                        let count = |count: i64| u32::try_from(count).unwrap_or(MOST_REPEATS);
                        repetition = Some((count(least), most.map(count)));
                    }
                    None => self.literal('{')?,
                },
                '\\' => self.escape(start)?,
                _ => self.literal(next)?,
            }
            if let Some((least, most)) = repetition {
                self.eat("?");
                if after_repetition {
                    return Err(refused(start, "invalid nested repetition operator"));
                }
                self.repeat(start, least, most, next == '{')?;
            }
            after_repetition = repetition.is_some();
            start = self.position;
        }
        Ok(())
    }

    // Nodes.

    fn add(&mut self, node: Node) -> Parsed<NodeId> {
        let of = |id: &NodeId| self.measures[*id];
        let leaf = Measure { literal: false, height: 1, size: 1, repeats: 1 };
        let measure = match &node {
            Node::Empty | Node::Look(_) => leaf,
            Node::Class(id) => {
                let literal = matches!(self.classes[*id as usize].as_slice(), [(first, last)] if first == last);
                Measure { literal, ..leaf }
            }
            Node::Concatenation(items) | Node::Alternation(items) => {
                let literal = matches!(node, Node::Concatenation(_)) && items.iter().all(|id| of(id).literal);
                let between = if matches!(node, Node::Alternation(_)) { items.len() as u64 - 1 } else { 0 };
                // A list within a list of the same kind is merged into it.
                let nested = |id: &NodeId| {
                    let same = std::mem::discriminant(&self.nodes[*id]) == std::mem::discriminant(&node);
                    of(id).height - u32::from(same && of(id).height > 1)
                };
                Measure {
                    literal,
                    height: if literal { 1 } else { 1 + items.iter().map(nested).max().unwrap_or(0) },
                    size: between + items.iter().map(|id| of(id).size).sum::<u64>(),
                    repeats: items.iter().map(|id| of(id).repeats).max().unwrap_or(1),
                }
            }
            Node::Repetition { node, least, most } => {
                let inner = of(node);
                let size = match (least, most) {
                    (0, None) => 2 + inner.size,
                    (least, None) => 1 + u64::from(*least) * inner.size,
                    (least, Some(most)) => u64::from(*most) * inner.size + u64::from(most.saturating_sub(*least)),
                };
                Measure { literal: false, height: inner.height + 1, size: size.max(1), repeats: inner.repeats }
            }
            Node::Group(node) => {
                let inner = of(node);
                Measure { literal: false, height: inner.height + 1, size: inner.size + 2, ..inner }
            }
        };
        self.push(node, measure)
    }

    fn push(&mut self, node: Node, measure: Measure) -> Parsed<NodeId> {
        if measure.height > MOST_HEIGHT {
            return Err(refused(self.position, "expression nests too deeply"));
        }
        if measure.size > MOST_SIZE {
            return Err(refused(self.position, "expression too large"));
        }
        self.nodes.push(node);
        self.measures.push(measure);
        Ok(self.nodes.len() - 1)
    }

    fn item(&mut self, node: Node) -> Parsed<()> {
        let id = self.add(node)?;
        if let Some(group) = self.groups.last_mut() {
            group.items.push(id);
        }
        Ok(())
    }

    fn look(&mut self, look: Look) -> Parsed<()> {
        self.item(Node::Look(look))
    }

    fn literal(&mut self, literal: char) -> Parsed<()> {
        let class = classes::ranges(&[(literal, literal)]);
        if !self.flags.fold {
            return self.class(&class);
        }
        let folded = match self.folded.get(&literal) {
            Some(folded) => folded.clone(),
            None => self.fold(&class)?,
        };
        self.class(&folded)?;
        self.folded.insert(literal, folded);
        Ok(())
    }

    fn fold(&mut self, class: &ClassUnicode) -> Parsed<ClassUnicode> {
        // Folding scans its whole tables.
        self.work(1000 + class.ranges().len())?;
        Ok(classes::folded(class))
    }

    fn class(&mut self, class: &ClassUnicode) -> Parsed<()> {
        let ranges: Vec<_> = class.iter().map(|range| (range.start(), range.end())).collect();
        self.work(ranges.len())?;
        let id = match self.class_ids.get(&ranges) {
            Some(id) => *id,
            None => {
                let id = ClassId::try_from(self.classes.len()).map_err(|_| not_judged(0, "too large to be judged"))?;
                self.class_ids.insert(ranges.clone(), id);
                self.classes.push(ranges);
                id
            }
        };
        self.item(Node::Class(id))
    }

    /// Charges the budget for processed ranges.
    fn work(&mut self, ranges: usize) -> Parsed<()> {
        self.ranges += ranges;
        if self.ranges > JUDGED_RANGES {
            return Err(not_judged(self.position, "character classes too large to be judged"));
        }
        Ok(())
    }

    // Groups.

    fn open(&mut self, start: usize) -> Parsed<()> {
        if !self.rest().starts_with('?') {
            self.groups.push(Group::new(self.flags, true));
            return Ok(());
        }
        let rest = self.rest();
        let name = rest.strip_prefix("?P<").or_else(|| rest.strip_prefix("?<"));
        if let Some(name_and_rest) = name {
            let name = name_and_rest
                .split_once('>')
                .map(|(name, _)| name)
                .filter(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
            let Some(name) = name else { return Err(refused(start, "invalid named capture")) };
            self.position += rest.len() - name_and_rest.len() + name.len() + 1;
            self.groups.push(Group::new(self.flags, true));
            return Ok(());
        }
        self.position += 1;
        let mut flags = self.flags;
        let mut set = true;
        let mut complete = true;
        loop {
            match self.next() {
                Some('i') => flags.fold = set,
                Some('m') => flags.multi_line = set,
                Some('s') => flags.dot_all = set,
                // It only decides which of several matches is preferred.
                Some('U') => {}
                Some('-') if set => {
                    set = false;
                    complete = false;
                    continue;
                }
                Some(end @ (':' | ')')) if complete => {
                    if end == ':' {
                        self.groups.push(Group::new(self.flags, false));
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => return Err(refused(start, "invalid or unsupported Perl syntax")),
            }
            complete = true;
        }
    }

    fn alternative(&mut self) -> Parsed<()> {
        let Some(mut group) = self.groups.pop() else { return Ok(()) };
        let items = std::mem::take(&mut group.items);
        let node = self.concatenate(items)?;
        group.alternatives.push(node);
        self.groups.push(group);
        Ok(())
    }

    fn end_group(&mut self, start: usize) -> Parsed<()> {
        if self.groups.len() < 2 {
            return Err(refused(start, "unexpected )"));
        }
        let Some(group) = self.groups.pop() else { return Ok(()) };
        self.flags = group.flags;
        let captures = group.captures;
        let mut id = self.close(group)?;
        if captures {
            id = self.add(Node::Group(id))?;
        }
        if let Some(group) = self.groups.last_mut() {
            group.items.push(id);
        }
        Ok(())
    }

    fn concatenate(&mut self, items: Vec<NodeId>) -> Parsed<NodeId> {
        match items.as_slice() {
            [] => self.add(Node::Empty),
            [one] => Ok(*one),
            _ => self.add(Node::Concatenation(items)),
        }
    }

    fn close(&mut self, group: Group) -> Parsed<NodeId> {
        let mut alternatives = group.alternatives;
        alternatives.push(self.concatenate(group.items)?);
        match alternatives.as_slice() {
            [one] => Ok(*one),
            _ => self.add(Node::Alternation(alternatives)),
        }
    }

    // Repetitions.

    fn repeat(&mut self, start: usize, least: u32, most: Option<u32>, counted: bool) -> Parsed<()> {
        let Some(node) = self.groups.last_mut().and_then(|group| group.items.pop()) else {
            return Err(refused(start, "missing argument to repetition operator"));
        };
        self.item(Node::Repetition { node, least, most })?;
        if counted && let Some(measure) = self.measures.last_mut() {
            let factor = most.unwrap_or(least);
            // A node that is repeated zero times is not counted.
            measure.repeats = if most == Some(0) { 1 } else { measure.repeats * factor.max(1) };
            if factor >= 2 && measure.repeats > MOST_REPEATS {
                return Err(refused(start, "invalid repeat count"));
            }
        }
        Ok(())
    }

    /// `n}`, `n,}` or `n,m}`; if it is none of these, `{` is a literal.
    fn counts(&mut self) -> Option<(i64, Option<i64>)> {
        let rest = self.rest();
        let length = rest.bytes().position(|byte| !byte.is_ascii_digit() && byte != b',')?;
        let inside = rest.get(..length)?;
        if !rest.get(length..)?.starts_with('}') {
            return None;
        }
        let (least, most) = match inside.split_once(',') {
            None => (inside, Some(inside)),
            Some((least, "")) => (least, None),
            Some((least, most)) => (least, Some(most)),
        };
        let number = |digits: &str| {
            let written = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let plain = written && (digits.len() == 1 || !digits.starts_with('0'));
            plain.then(|| digits.parse::<i64>().unwrap_or(i64::MAX))
        };
        let least = number(least)?;
        let most = match most {
            None => None,
            Some(most) => Some(number(most)?),
        };
        self.position += inside.len() + 1;
        Some((least, most))
    }
}
