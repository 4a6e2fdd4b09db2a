//! What the two webhooks share: the arguments of the server, and its log.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pushback_system::environment::wall_clock;
use pushback_terminal::output::Output;
use pushback_webhook::{Journal, Notice, Settings, text};

use super::arguments::duration;

/// Arguments of a server that answers reviews.
#[derive(Debug, Args)]
pub(super) struct ServerArgs {
    /// Address to answer on
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:9443")]
    listen: SocketAddr,
    /// File with the certificate and its chain, in PEM
    #[arg(long, value_name = "FILE", required = true)]
    tls_cert: Option<PathBuf>,
    /// File with the key of the certificate, in PEM
    #[arg(long, value_name = "FILE", required = true)]
    tls_key: Option<PathBuf>,
    /// Address where health and metrics are answered without TLS, too
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<SocketAddr>,
    /// Time for further requests after SIGTERM, while /readyz fails
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    drain: Duration,
}

impl ServerArgs {
    /// Resolves to the settings of a server for these files, with requests of at most so many MiB.
    pub(super) fn resolve(self, files: Vec<PathBuf>, max_request: u16) -> Settings {
        Settings {
            listen: self.listen,
            metrics_listen: self.metrics_listen,
            certificate: self.tls_cert.unwrap_or_default(),
            key: self.tls_key.unwrap_or_default(),
            files,
            longest_request: usize::from(max_request) << 20,
            drain: self.drain,
        }
    }
}

/// Standard error.
#[derive(Debug)]
pub(super) struct Log;

impl Journal for Log {
    fn note(&self, notice: &Notice) {
        let line = text::line(&format!("{:.3}", wall_clock()), notice);
        Output::standard().progress(&format!("{line}\n"));
    }
}
