//! How to reach an API server, and everything from outside that a connection depends on.

use std::ffi::OsString;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use super::limit::Concurrency;
use super::retry::RetryLimits;
use crate::environment::wall_clock;

/// Where the cluster is, as whom to speak to it, and how patiently.
#[derive(Clone)]
pub struct ConnectOptions {
    /// The kubeconfig file; `None`: `$KUBECONFIG`, `~/.kube/config`, or the service account of a Pod.
    pub kubeconfig: Option<PathBuf>,
    /// A kubeconfig that is at hand as text; comes before any file.
    pub kubeconfig_yaml: Option<String>,
    /// The context; `None`: the current one.
    pub context: Option<String>,
    /// User to act as.
    pub impersonate: Option<String>,
    /// Groups to act as; need a user.
    pub impersonate_groups: Vec<String>,
    /// The credential plugins that may be run, by name or path; `None`: any.
    pub credential_plugins: Option<Vec<String>>,
    /// Time that one attempt of a request gets; lists get twice as much.
    pub request_timeout: Duration,
    /// When to give up repeating.
    pub retry: RetryLimits,
    /// Requests at once.
    pub concurrency: Concurrency,
    /// Reads an environment variable.
    pub environment: fn(&str) -> Option<OsString>,
    /// The clock that expiry of credentials is judged by.
    pub now: fn() -> Timestamp,
    /// Seeds the jitter of waits.
    pub seed: u64,
}

/// Told what is about to be run, before the credential plugin of a kubeconfig runs for the first time.
pub type Announce<'a> = dyn Fn(&str) + Send + Sync + 'a;

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            kubeconfig_yaml: None,
            context: None,
            impersonate: None,
            impersonate_groups: Vec::new(),
            credential_plugins: None,
            request_timeout: Duration::from_secs(30),
            retry: RetryLimits::default(),
            concurrency: Concurrency::default(),
            environment: |name| std::env::var_os(name),
            now: wall_clock,
            // The standard library's only source of randomness; two processes that meet a busy server must differ.
            seed: std::hash::RandomState::new().build_hasher().finish(),
        }
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("kubeconfig", &self.kubeconfig)
            .field("kubeconfig_yaml", &self.kubeconfig_yaml.as_ref().map(|_| "(hidden)"))
            .field("context", &self.context)
            .field("impersonate", &self.impersonate)
            .field("impersonate_groups", &self.impersonate_groups)
            .field("credential_plugins", &self.credential_plugins)
            .field("request_timeout", &self.request_timeout)
            .field("retry", &self.retry)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}
