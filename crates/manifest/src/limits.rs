//! Limits on what is read, the usage so far, and how a limit is displayed.
//! Reading stops at a limit; the caller, who knows the file, reports it.

use std::io::{self, Read};

/// Limits on what is read. Each error about a limit names its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file.
    pub bytes: usize,
    /// Levels of nesting, aliases followed. kubectl stops at 10,000; recursive code elsewhere must cope with it.
    pub depth: usize,
    /// Nodes of all files, as written.
    pub nodes: usize,
    /// Documents of a file.
    pub documents: usize,
    /// Bytes that aliases and merge keys may add in all files.
    pub alias_bytes: usize,
}

/// Usage of the limits that apply to all files of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Nodes read so far.
    pub nodes: usize,
    /// Bytes that aliases have added so far.
    pub alias_bytes: usize,
}

impl Usage {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            nodes: self.nodes.saturating_add(other.nodes),
            alias_bytes: self.alias_bytes.saturating_add(other.alias_bytes),
        }
    }

    /// Whether the usage is within the limits.
    #[must_use]
    pub fn is_within(self, limits: &Limits) -> bool {
        self.nodes <= limits.nodes && self.alias_bytes <= limits.alias_bytes
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 64 << 20, depth: 1_000, nodes: 5_000_000, documents: 100_000, alias_bytes: 64 << 20 }
    }
}

/// A limit as messages show it.
pub(super) fn size(bytes: usize) -> String {
    if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{bytes} bytes")
    }
}

/// All bytes, or `None` if there are more than `limit`.
pub(super) fn read_limited(reader: &mut dyn Read, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    reader.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}
