//! A registry's answer about an image.

use serde::{Deserialize, Serialize};

/// A registry's answer about an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum ImageLookup {
    /// The image exists for every platform that was asked about.
    Found,
    /// The registry has no such image.
    Absent,
    /// The image exists, and lacks platforms.
    Lacks {
        /// The platforms that it lacks.
        missing: Vec<String>,
        /// The platforms that it has.
        found: Vec<String>,
    },
    /// The user's credentials are not accepted, or there are none.
    Denied {
        /// Host of the registry.
        registry: String,
        /// The reason.
        message: String,
    },
    /// The registry limits the rate of requests.
    Throttled {
        /// Host of the registry.
        registry: String,
        /// The reason.
        message: String,
    },
    /// The registry gives no answer.
    Unreachable {
        /// Host of the registry.
        registry: String,
        /// The reason.
        message: String,
    },
    /// The name or the registry's answer is invalid.
    Invalid {
        /// The reason.
        message: String,
    },
}
