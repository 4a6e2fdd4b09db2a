//! The files that the server reads, and reads again when they change. Their content is compared, so that neither an
//! exchanged link (as the kubelet exchanges files of Secrets and ConfigMaps) nor an old time of change is missed.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pushback_preflight::conversion::review::Reviewer;
use sha2::{Digest, Sha256};

use super::certificate::{Current, Identity};
use super::handler::Service;
use super::metrics::Source;
use super::notice::Notice;
use crate::environment::reason;
use crate::manifest::InputError;
use crate::manifest::files::{SourceFile, check_size, shown};
use crate::manifest::yaml::Limits;

/// Time between two looks at the files.
const PAUSE: Duration = Duration::from_secs(2);

/// Makes conversions of the files with plans and definitions.
pub type Compile = dyn Fn(&[SourceFile]) -> Result<Reviewer, Vec<InputError>> + Send + Sync;

/// Where everything is.
pub(super) struct Sources {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) plans: Vec<PathBuf>,
    pub(super) compile: Arc<Compile>,
}

/// What was looked at last: files are tried once, whether they can be used or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    plans: [u8; 32],
    certificate: [u8; 32],
}

type Files = Result<Vec<SourceFile>, String>;

impl Sources {
    /// The conversions, from files that are read now.
    ///
    /// # Errors
    /// A file cannot be read, or everything that is wrong with plans and definitions.
    pub(super) fn reviewer(&self, seen: &mut Seen) -> Result<Reviewer, Vec<InputError>> {
        let files = read(&self.plans);
        seen.plans = digest(&files);
        self.compiled(files)
    }

    fn compiled(&self, files: Files) -> Result<Reviewer, Vec<InputError>> {
        let alone = |message| vec![InputError { message, position: Default::default(), hints: Vec::new() }];
        (self.compile)(&files.map_err(alone)?)
    }

    /// The certificate, from files that are read now.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub(super) fn identity(&self, seen: &mut Seen) -> Result<Identity, String> {
        let files = read([&self.certificate, &self.key]);
        seen.certificate = digest(&files);
        self.identified(files)
    }

    fn identified(&self, files: Files) -> Result<Identity, String> {
        match files?.as_slice() {
            [certificate, key] => Identity::read(&certificate.bytes, &key.bytes)
                .map_err(|error| format!("{}, {}: {error}", shown(&certificate.path), shown(&key.path))),
            _ => unreachable!("two files were read"),
        }
    }

    /// Puts changed files to use, for ever.
    pub(super) async fn follow(self, mut seen: Seen, service: Arc<Service>, current: Arc<Current>) {
        let sources = Arc::new(self);
        loop {
            tokio::time::sleep(PAUSE).await;
            let (sources, service, current) = (Arc::clone(&sources), Arc::clone(&service), Arc::clone(&current));
            let mut next = seen.clone();
            let looked = tokio::task::spawn_blocking(move || {
                sources.look(&mut next, &service, &current);
                next
            });
            // A panic has been told; the same files are tried again.
            seen = looked.await.unwrap_or(seen);
        }
    }

    fn look(&self, seen: &mut Seen, service: &Service, current: &Current) {
        let plans = read(&self.plans);
        let found = digest(&plans);
        if found != seen.plans {
            match self.compiled(plans) {
                Ok(reviewer) => service.exchange(reviewer),
                Err(errors) => {
                    service.metrics.reload_failed(Source::Plans);
                    let errors = errors.iter().map(ToString::to_string).collect();
                    service.journal.note(&Notice::PlansRefused { errors });
                }
            }
            seen.plans = found;
        }
        let pair = read([&self.certificate, &self.key]);
        let found = digest(&pair);
        if found != seen.certificate {
            match self.identified(pair) {
                Ok(identity) => {
                    service.certified(&identity);
                    current.set(identity);
                }
                Err(reason) => {
                    service.metrics.reload_failed(Source::Certificate);
                    service.journal.note(&Notice::CertificateRefused { reason });
                }
            }
            seen.certificate = found;
        }
    }
}

fn read<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Files {
    paths.into_iter().map(|path| Ok(SourceFile { path: path.clone(), bytes: content(path)? })).collect()
}

fn content(path: &Path) -> Result<Vec<u8>, String> {
    let limit = Limits::default().bytes as u64;
    let mut bytes = Vec::new();
    let done = File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
    done.map_err(|error| format!("{}: it cannot be read: {}", shown(path), reason(&error)))?;
    check_size(&shown(path), bytes.len() as u64)?;
    Ok(bytes)
}

fn digest(files: &Files) -> [u8; 32] {
    let mut hash = Sha256::new();
    match files {
        Err(error) => hash.update(error),
        Ok(files) => {
            for file in files {
                hash.update((file.bytes.len() as u64).to_le_bytes());
                hash.update(&file.bytes);
            }
        }
    }
    hash.finalize().into()
}
