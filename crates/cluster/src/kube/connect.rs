//! How to reach an API server, and everything external that a connection depends on.

use std::ffi::OsString;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use pushback_system::environment::wall_clock;

use super::limit::Concurrency;
use super::retry::RetryLimits;

/// The cluster, the user, and the timeouts.
#[derive(Clone)]
pub struct ConnectOptions {
    /// The kubeconfig file; `None`: `$KUBECONFIG`, `~/.kube/config`, or the service account of a Pod.
    pub kubeconfig: Option<PathBuf>,
    /// The text of a kubeconfig; takes precedence over any file.
    pub kubeconfig_yaml: Option<String>,
    /// The context; `None`: the current one.
    pub context: Option<String>,
    /// User to impersonate.
    pub impersonate: Option<String>,
    /// Groups to impersonate; require a user.
    pub impersonate_groups: Vec<String>,
    /// The credential plugins that may run, by name or path; `None`: any.
    pub credential_plugins: Option<Vec<String>>,
    /// Timeout of one attempt; lists get twice as much.
    pub request_timeout: Duration,
    /// Limits of retries.
    pub retry: RetryLimits,
    /// Limits of concurrent requests.
    pub concurrency: Concurrency,
    /// Whether objects are refused that have fields which their kind lacks, or list items with the same key.
    pub strict: bool,
    /// Reads an environment variable.
    pub environment: fn(&str) -> Option<OsString>,
    /// The clock for the expiry of credentials.
    pub now: fn() -> Timestamp,
    /// Seed for the jitter of delays.
    pub seed: u64,
}

/// Called before the credential plugin of a kubeconfig runs for the first time, with a description of it.
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
            strict: true,
            environment: |name| std::env::var_os(name),
            now: wall_clock,
            // The standard library's only source of randomness; two processes must not retry in step on a busy server.
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
