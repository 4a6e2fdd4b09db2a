//! The files that the server reads, and reads again when they change. Their content is compared, so that neither an
//! exchanged link (as the kubelet exchanges files of Secrets and ConfigMaps) nor an old time of change is missed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pushback_manifest::InputError;
use pushback_manifest::files::{SourceFile, shown};
use pushback_manifest::yaml::Limits;
use pushback_system::bounded_file;
use sha2::{Digest, Sha256};

use super::certificate::{Current, Identity};
use super::handler::Service;
use super::metrics::Source;
use super::notice::Notice;
use super::reviews::Reviews;

/// Time between two looks at the files.
const PAUSE: Duration = Duration::from_secs(2);

/// Makes answers of the files with plans and CRDs, or with a policy.
pub(super) type Compile = dyn Fn(&[SourceFile]) -> Result<Arc<dyn Reviews>, Vec<InputError>> + Send + Sync;

/// Where everything is.
pub(super) struct Sources {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) files: Vec<PathBuf>,
    pub(super) compile: Arc<Compile>,
}

/// Digests of the files that were tried last: each state of the files is tried once, whether it can be used or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    files: Tried,
    certificate: Tried,
}

/// Digests of the same files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tried {
    /// At the last attempt to use them.
    last: [u8; 32],
    /// At the last read, if they differed then.
    changed: Option<[u8; 32]>,
}

impl Tried {
    fn now(digest: [u8; 32]) -> Self {
        Self { last: digest, changed: None }
    }

    /// Whether changed files are to be tried: only once two reads in a row return the same bytes, because somebody may
    /// still be writing them.
    fn is_due(&mut self, digest: [u8; 32]) -> bool {
        if digest == self.last {
            self.changed = None;
            return false;
        }
        if self.changed == Some(digest) {
            *self = Self::now(digest);
            return true;
        }
        self.changed = Some(digest);
        false
    }
}

type Files = Result<Vec<SourceFile>, String>;

impl Sources {
    /// The answers, from files that are read now.
    ///
    /// # Errors
    /// A file cannot be read, or everything that is wrong in the files.
    pub(super) fn reviews(&self, seen: &mut Seen) -> Result<Arc<dyn Reviews>, Vec<InputError>> {
        let files = read(&self.files);
        seen.files = Tried::now(digest(&files));
        self.compiled(files)
    }

    fn compiled(&self, files: Files) -> Result<Arc<dyn Reviews>, Vec<InputError>> {
        let alone = |message| vec![InputError { message, position: Default::default(), hints: Vec::new() }];
        (self.compile)(&files.map_err(alone)?)
    }

    /// The certificate, from files that are read now.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub(super) fn identity(&self, seen: &mut Seen) -> Result<Identity, String> {
        let files = read([&self.certificate, &self.key]);
        seen.certificate = Tried::now(digest(&files));
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
        self.look_at_files(seen, service);
        self.look_at_certificate(seen, service, current);
    }

    fn look_at_files(&self, seen: &mut Seen, service: &Service) {
        let files = read(&self.files);
        if seen.files.is_due(digest(&files)) {
            match self.compiled(files) {
                Ok(reviews) => service.exchange(reviews),
                Err(errors) => {
                    service.metrics.reload_failed(Source::Files);
                    let errors = errors.iter().map(ToString::to_string).collect();
                    service.journal.note(&Notice::FilesRefused { files: service.kind.files, errors });
                }
            }
        }
    }

    fn look_at_certificate(&self, seen: &mut Seen, service: &Service, current: &Current) {
        let pair = read([&self.certificate, &self.key]);
        if seen.certificate.is_due(digest(&pair)) {
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
        }
    }
}

fn read<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Files {
    paths.into_iter().map(|path| Ok(SourceFile { path: path.clone(), bytes: content(path)? })).collect()
}

fn content(path: &Path) -> Result<Vec<u8>, String> {
    let read = bounded_file::read(path, Limits::default().bytes as u64);
    read.map_err(|reason| format!("{}: it cannot be read: {reason}", shown(path)))
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use pushback_conversion::review::Reviewer;

    use super::super::conversions::Conversions;
    use super::super::notice::Journal;
    use super::*;

    #[derive(Debug, Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Journal for Notes {
        fn note(&self, notice: &Notice) {
            let text = match notice {
                Notice::PlansLoaded { generation, .. } => format!("loaded {generation}"),
                Notice::FilesRefused { errors, .. } => format!("refused {}", errors.join(", ")),
                _ => return,
            };
            self.0.lock().expect("notes").push(text);
        }
    }

    #[test]
    fn changed_plans_are_tried_once_two_reads_agree() {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = folder.path().join("plan.yaml");
        let compile = |files: &[SourceFile]| match files[0].bytes.as_slice() {
            b"good" | b"better" => {
                let reviewer = Reviewer::new(Vec::new()).expect("a reviewer");
                Ok(Arc::new(Conversions(reviewer)) as Arc<dyn Reviews>)
            }
            other => Err(vec![InputError {
                message: String::from_utf8_lossy(other).into_owned(),
                position: Default::default(),
                hints: Vec::new(),
            }]),
        };
        let sources = Sources {
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            files: vec![plan.clone()],
            compile: Arc::new(compile),
        };
        std::fs::write(&plan, "good").expect("a file");
        let mut seen = Seen::default();
        let reviews = sources.reviews(&mut seen).expect("a reviewer");
        let notes = Arc::new(Notes::default());
        let service = Service::new(reviews, Arc::<Notes>::clone(&notes), 1024);
        let mut look = |text: &str| {
            std::fs::write(&plan, text).expect("a file");
            sources.look_at_files(&mut seen, &service);
            std::mem::take(&mut *notes.0.lock().expect("notes"))
        };
        assert_eq!(look("good"), ["loaded 1"]);
        // Written piece by piece, and a state that comes and goes.
        for text in ["", "b", "bet", "better", "good", "better"] {
            assert_eq!(look(text), Vec::<String>::new(), "{text:?}");
        }
        assert_eq!(look("better"), ["loaded 2"]);
        assert_eq!(look("better"), Vec::<String>::new());
        // What cannot be used is reported once, and what was in use stays.
        assert_eq!(look("bad"), Vec::<String>::new());
        assert_eq!(look("bad"), ["refused bad"]);
        assert_eq!(look("bad"), Vec::<String>::new());
    }
}
