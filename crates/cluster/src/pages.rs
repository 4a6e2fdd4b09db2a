//! Lists page by page: expired lists start again, and a list that does not end is given up.

use std::sync::Arc;

use super::{Cluster, ClusterError, ErrorKind, ErrorNote, Kind, ListQuery, Page};

/// Most restarts of a list whose continue token has expired.
const RESTARTS: u32 = 3;

/// Maximum pages of one list: at 500 objects each, more than any cluster holds. A longer list has no end.
pub(super) const MAX_PAGES: u32 = 10_000;

/// Maximum consecutive empty pages: a server fills each page but the last.
const MAX_EMPTY_PAGES: u32 = 20;

/// Maximum objects of one list that are kept in memory.
const MAX_OBJECTS: usize = 1_000_000;

/// Maximum bytes of the answers to one list whose objects are processed one by one: the design limit of etcd.
const MAX_BYTES: u64 = 8 << 30;

/// The same if the objects are kept, which takes several times as much memory.
const MAX_KEPT_BYTES: u64 = 2 << 30;

/// Counts the pages of a list, including restarts, to ensure that it ends.
#[derive(Debug)]
pub(super) struct Paging {
    pages: u32,
    empty: u32,
    bytes: u64,
    pub(super) most_bytes: u64,
}

impl Paging {
    /// For a list whose objects are not kept.
    pub(super) fn passing() -> Self {
        Self { pages: 0, empty: 0, bytes: 0, most_bytes: MAX_BYTES }
    }

    pub(super) fn kept() -> Self {
        Self { most_bytes: MAX_KEPT_BYTES, ..Self::passing() }
    }

    /// Counts a page that is followed by another.
    ///
    /// # Errors
    /// `Protocol` if the list does not end, or exceeds the size limit.
    pub(super) fn next(&mut self, page: &Page) -> Result<(), ClusterError> {
        self.pages += 1;
        self.empty = if page.items.is_empty() { self.empty + 1 } else { 0 };
        self.bytes = self.bytes.saturating_add(page.bytes);
        if self.bytes > self.most_bytes {
            return Err(endless(&format!("it has more than {} MiB", self.most_bytes >> 20)));
        }
        if self.pages >= MAX_PAGES {
            return Err(endless(&format!("it has more than {MAX_PAGES} pages")));
        }
        if self.empty >= MAX_EMPTY_PAGES {
            return Err(endless(&format!("{MAX_EMPTY_PAGES} pages in a row are empty")));
        }
        Ok(())
    }
}

fn endless(how: &str) -> ClusterError {
    ClusterError::new(ErrorKind::Protocol, format!("the list does not end: {how}"))
}

/// The pages of a list, one after the other.
#[derive(Debug)]
pub struct Pages<'a> {
    cluster: &'a dyn Cluster,
    query: ListQuery,
    paging: Paging,
    restarts: u32,
    goes_on: bool,
    is_done: bool,
}

/// What a list returns next.
#[derive(Debug)]
pub enum Turn {
    /// A page.
    Page(Page),
    /// The list has expired and starts with its first page again: what came before is void.
    Restart,
}

impl<'a> Pages<'a> {
    /// The pages of a list whose objects are not kept, from the query's continue token.
    #[must_use]
    pub fn of(cluster: &'a dyn Cluster, query: ListQuery) -> Self {
        Self::counted(cluster, query, Paging::passing())
    }

    fn counted(cluster: &'a dyn Cluster, query: ListQuery, paging: Paging) -> Self {
        Self { cluster, query, paging, restarts: 0, goes_on: false, is_done: false }
    }

    /// The same, but a list that has expired goes on behind its last page, where the server allows that. Objects that
    /// were created or deleted in between may or may not be in it.
    #[must_use]
    pub fn going_on(self) -> Self {
        Self { goes_on: true, ..self }
    }

    /// The next page; `None` after the last.
    ///
    /// # Errors
    /// The error of the page that failed; `Protocol` if there is no last page.
    pub async fn next(&mut self) -> Result<Option<Turn>, ClusterError> {
        if self.is_done {
            return Ok(None);
        }
        loop {
            match self.cluster.list(&self.query).await {
                Ok(page) => {
                    self.is_done = page.continue_token.is_empty();
                    if !self.is_done {
                        self.paging.next(&page)?;
                        self.query.continue_token.clone_from(&page.continue_token);
                    }
                    // A list that goes on makes progress, however often it expires.
                    self.restarts = if self.goes_on { 0 } else { self.restarts };
                    return Ok(Some(Turn::Page(page)));
                }
                Err(error) if error.kind == ErrorKind::Expired && self.restarts < RESTARTS => {
                    self.restarts += 1;
                    match error.note.as_deref() {
                        Some(ErrorNote::ContinueToken(token)) if self.goes_on => {
                            self.query.continue_token = token.to_string();
                        }
                        _ => {
                            self.query.continue_token.clear();
                            return Ok(Some(Turn::Restart));
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Lists all pages. An expired continue token restarts the list, at most three times.
///
/// # Errors
/// The error of the page that failed; `Protocol` if there is no last page.
pub async fn list_all(cluster: &dyn Cluster, query: &ListQuery) -> Result<Page, ClusterError> {
    list_within(cluster, query, Paging::kept()).await
}

pub(super) async fn list_within(
    cluster: &dyn Cluster,
    query: &ListQuery,
    paging: Paging,
) -> Result<Page, ClusterError> {
    let mut pages = Pages::counted(cluster, query.clone(), paging);
    let mut all = Page::default();
    while let Some(turn) = pages.next().await? {
        match turn {
            Turn::Restart => all = Page::default(),
            Turn::Page(page) => {
                all.items.extend(page.items);
                all.resource_version = page.resource_version;
                if all.items.len() > MAX_OBJECTS {
                    return Err(endless(&format!("it has more than {MAX_OBJECTS} objects")));
                }
            }
        }
    }
    Ok(all)
}

/// A number of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Objects that the server knows of.
    pub objects: u64,
    /// Whether there are more, and the server does not say how many.
    pub more: bool,
}

/// The number of objects of a kind, from a list of one: the server says how many follow.
///
/// # Errors
/// The cluster's error.
pub async fn count(cluster: &dyn Cluster, kind: &Arc<Kind>) -> Result<Counted, ClusterError> {
    let query = ListQuery { limit: 1, metadata_only: true, ..ListQuery::new(Arc::clone(kind), None, "") };
    let page = cluster.list(&query).await?;
    let more = !page.continue_token.is_empty() && page.remaining.is_none();
    Ok(Counted { objects: page.items.len() as u64 + page.remaining.unwrap_or_default(), more })
}
