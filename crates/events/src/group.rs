//! The apps of a group, as a run tells what it is to do with each.

use serde::Serialize;

/// An app of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupApp {
    /// App name.
    pub app: String,
    /// The directory that it is applied from; absent if it is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Why it is planned only when its turn has come; absent if it is planned before anything is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<String>,
}
