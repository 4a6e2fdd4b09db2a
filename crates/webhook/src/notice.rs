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
        /// Whether conversions are answered there; otherwise only health and metrics, without TLS.
        converts: bool,
    },
    /// Plans are in use.
    PlansLoaded {
        /// How often plans were put to use, these included.
        generation: u64,
        /// Names of the definitions.
        definitions: Vec<String>,
    },
    /// Changed files with plans or definitions cannot be used; those in use stay.
    PlansRefused {
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
    /// A request was not converted.
    NotConverted {
        /// Who sent it.
        peer: IpAddr,
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
