//! What the server tells while it runs. Nothing of it quotes an object.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A port is open.
    Listening {
        /// Its address.
        address: SocketAddr,
        /// The reviews that are answered there, with TLS; `None` for a port with health and metrics alone.
        reviews: Option<&'static str>,
    },
    /// Plans are in use.
    PlansLoaded {
        /// How often plans were put to use, these included.
        generation: u64,
        /// Names of the definitions.
        definitions: Vec<String>,
    },
    /// A policy is in use.
    PolicyLoaded {
        /// Number of policies that were put to use, this one included.
        generation: u64,
        /// Description of the policy.
        policy: String,
        /// Rules of the files that admission does not run.
        ignored: Vec<String>,
    },
    /// Changed files with plans, CRDs or a policy cannot be used; those in use stay.
    FilesRefused {
        /// Content of the files: `plans`, `policy`.
        files: &'static str,
        /// Why.
        errors: Vec<String>,
    },
    /// A certificate is in use.
    CertificateLoaded {
        /// Until when it is valid, if that can be read.
        expires: Option<String>,
    },
    /// Changed files with certificate or key cannot be used; those in use stay.
    CertificateRefused {
        /// Why.
        reason: String,
    },
    /// A change of a CRD was judged, or allowed for a reason that should be known.
    Judged {
        /// Name of the CRD.
        crd: String,
        /// `update` or `deletion`.
        operation: &'static str,
        /// The user who asked for it.
        user: String,
        /// Result as in the metrics.
        result: &'static str,
        /// The reason.
        reason: String,
    },
    /// A request was not answered as asked.
    NotAnswered {
        /// Who sent it.
        peer: IpAddr,
        /// Participle of the work: `converted`, `judged`.
        done: &'static str,
        /// Why.
        reason: String,
    },
    /// A connection ended before its first request.
    NoConnection {
        /// Who opened it.
        peer: IpAddr,
        /// Why.
        reason: String,
    },
    /// A signal has arrived: `/readyz` fails from now on.
    Draining,
    /// Requests were still under way at the end.
    Unfinished,
    /// The end.
    Stopped,
}

/// Who is told.
pub trait Journal: Debug + Send + Sync {
    /// Takes one event.
    fn note(&self, notice: &Notice);
}
