//! The client with its credentials: requested once from a plugin, renewed before they expire, and once after a 401.

use std::fmt;

use http::HeaderValue;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::Mutex;

use super::connect::Announce;
use super::{client, exec};
use crate::ClusterError;

/// Credentials that expire within this many seconds are not used for a new request. Those that live shorter are renewed
/// once half of their time is over.
const RENEW_BEFORE: i64 = 30;

/// The client of a run, and its authentication.
pub(super) struct Authenticator {
    plugin: Option<Plugin>,
    state: Mutex<State>,
}

struct Plugin {
    exec: exec::Plugin,
    /// The configuration without credentials.
    config: kube::Config,
    now: fn() -> Timestamp,
}

struct State {
    client: Client,
    authorization: Option<HeaderValue>,
    expires: Option<Timestamp>,
    /// Seconds before the expiry from which on the credentials are renewed.
    renew_before: i64,
    generation: u64,
}

/// The client and credentials of one attempt.
pub(super) struct Credentials {
    pub(super) client: Client,
    pub(super) authorization: Option<HeaderValue>,
    generation: u64,
}

impl Authenticator {
    /// A client that manages its credentials itself.
    pub(super) fn plain(client: Client) -> Self {
        let state = State { client, authorization: None, expires: None, renew_before: 0, generation: 0 };
        Self { plugin: None, state: Mutex::new(state) }
    }

    /// Builds the client, with a plugin's credentials if the user has one; the plugin is announced before it runs.
    pub(super) async fn open(
        config: kube::Config,
        exec: Option<exec::Plugin>,
        now: fn() -> Timestamp,
        announce: &Announce<'_>,
    ) -> Result<Self, ClusterError> {
        match exec {
            None => Ok(Self::plain(client::build(&config)?)),
            Some(exec) => {
                announce(&exec.announcement());
                let plugin = Plugin { exec, config, now };
                let state = plugin.ask(true, 0).await?;
                Ok(Self { plugin: Some(plugin), state: Mutex::new(state) })
            }
        }
    }

    /// Client and credentials for the next attempt.
    pub(super) async fn credentials(&self) -> Result<Credentials, ClusterError> {
        let mut state = self.state.lock().await;
        if let (Some(plugin), Some(expires)) = (&self.plugin, state.expires) {
            let left = expires.duration_since((plugin.now)()).as_secs();
            if left < state.renew_before {
                match plugin.ask(false, state.generation + 1).await {
                    Ok(renewed) => *state = renewed,
                    Err(error) if left <= 0 => return Err(error),
                    Err(error) => tracing::debug!(%error, "credentials could not be renewed ahead of time"),
                }
            }
        }
        Ok(Credentials {
            client: state.client.clone(),
            authorization: state.authorization.clone(),
            generation: state.generation,
        })
    }

    /// After a 401: whether there are now other credentials than the refused ones.
    pub(super) async fn renew(&self, refused: &Credentials) -> Result<bool, ClusterError> {
        let Some(plugin) = &self.plugin else { return Ok(false) };
        let mut state = self.state.lock().await;
        if state.generation == refused.generation {
            *state = plugin.ask(false, state.generation + 1).await?;
        }
        Ok(true)
    }
}

impl Plugin {
    async fn ask(&self, first: bool, generation: u64) -> Result<State, ClusterError> {
        let credential = exec::run(&self.exec, first).await?;
        let mut config = self.config.clone();
        if let Some((certificate, key)) = credential.certificate {
            config.auth_info.client_certificate_data = Some(certificate);
            config.auth_info.client_key_data = Some(key.into());
        }
        let client = client::build(&config)?;
        let exec::Credential { authorization, expires, .. } = credential;
        let lifetime = expires.map(|expires| expires.duration_since((self.now)()).as_secs());
        let renew_before = lifetime.map_or(0, renew_before);
        Ok(State { client, authorization, expires, renew_before, generation })
    }
}

/// Returns how many seconds before their expiry credentials of this lifetime are renewed.
fn renew_before(lifetime: i64) -> i64 {
    (lifetime / 2).clamp(0, RENEW_BEFORE)
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").field("plugin", &self.plugin.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_that_live_shortly_are_used_for_half_of_their_time() {
        assert_eq!([-5, 0, 20, 60, 3600].map(renew_before), [0, 0, 10, 30, 30]);
    }
}
