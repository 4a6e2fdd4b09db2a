//! Resolves `-f`: files, directories, git refs, artifacts, URLs and standard input are found first, then read one by one.
//! Only regular files are opened, and pipes that the shell has already opened.

mod artifact;
mod compared;
mod fetch;
mod pin;
mod pulled;
mod rendering;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pushback_registry::{Artifact, Client};
use pushback_system::redact;
use url::Url;

use super::files::is_manifest;
use super::git::GitTree;
use super::input::{InputError, InputWarning, error_in};
use super::layout::Reading;
use super::limits::{read_limited, size};
use super::options::{ComparedSide, LoadOptions, SideRole};
use super::render::{Checkout, ResolvedSource, Trace};
use pin::Pin;

/// Maximum depth below a given directory.
const MAX_DIRECTORY_DEPTH: usize = 64;

/// Prefix of a kustomization that is named as such.
pub(crate) const KUSTOMIZE: &str = "kustomize:";

/// Prefix of a chart that is named as such.
pub(crate) const HELM: &str = "helm:";

/// Prefix of an artifact of a registry.
pub(crate) const OCI: &str = "oci://";

/// The side of manifests that are applied.
const APPLIED: ComparedSide = ComparedSide { role: SideRole::New, option: "-f " };

/// One thing to read.
#[derive(Debug)]
pub(super) struct Source {
    /// Its name in positions; the secret parts of a URL are removed.
    pub(super) name: String,
    /// True if it was found in a folder, so that nobody has named it.
    pub(super) is_found: bool,
    /// The documents that are read.
    pub(super) reading: Reading,
    /// The way from positions in a rendered text to source files.
    pub(super) trace: Option<Trace>,
    location: Location,
}

#[derive(Debug)]
enum Location {
    StandardInput,
    File(PathBuf),
    /// A pipe that the shell has opened: `-f <(helm template …)`.
    InheritedPipe(PathBuf),
    Url(Url, Option<Pin>),
    /// A file of a git ref or an artifact, read together with the others of it.
    Content(Vec<u8>),
    /// The output of a program that has rendered a folder or chart.
    RenderedBytes(Vec<u8>),
}

/// The sources that the inputs name.
#[derive(Debug, Default)]
pub(super) struct FoundSources {
    pub(super) sources: Vec<Source>,
    /// Directories without a single manifest file.
    pub(super) empty_directories: Vec<String>,
    /// Inputs that do not exist, and need not.
    pub(super) missing: Vec<String>,
    /// Number of files in folders that are compared, manifests or not.
    pub(super) files_in_folders: usize,
    /// Number of manifest files among them.
    pub(super) manifests_in_folders: usize,
    /// True if a folder has to be rendered, and that is not wanted; the error says how.
    pub(super) must_be_rendered: bool,
    /// Sources that were rendered or resolved.
    pub(super) rendered: Vec<ResolvedSource>,
    /// Files of git refs and artifacts that programs were given, by ref or name.
    checkouts: HashMap<String, Checkout>,
    /// Artifacts by name.
    artifacts: HashMap<String, Arc<Artifact>>,
    /// The client for registries, which keeps tokens.
    client: Option<Arc<Client>>,
    pub(super) warnings: Vec<InputWarning>,
    pub(super) errors: Vec<InputError>,
}

/// An input for display, in whatever form it is given: a URL without user, password and query, and without a fragment that
/// is no digest.
#[must_use]
pub fn shown_input(input: &str) -> String {
    if input.contains("://") { redact::url(input) } else { input.to_owned() }
}

/// Finds the sources that `inputs` name, in that order; files of a directory are sorted by path.
pub(super) fn find(inputs: &[String], options: &LoadOptions) -> FoundSources {
    let mut found = FoundSources::default();
    let mut standard_input = false;
    for input in inputs {
        if input == "-" || input == "/dev/stdin" {
            if standard_input {
                found.errors.push(error_in(
                    "-",
                    "standard input is given twice, but can be read only once",
                    &["Give `-f -` once; several documents are separated by `---`."],
                ));
            } else {
                standard_input = true;
                found.sources.push(Source::named("-", Location::StandardInput));
            }
        } else if let Some(folder) = input.strip_prefix(KUSTOMIZE) {
            rendering::named_kustomization(input, folder, options, &mut found);
        } else if let Some(chart) = input.strip_prefix(HELM) {
            rendering::named_chart(input, chart, options, &mut found);
        } else if let Some(reference) = input.strip_prefix(OCI) {
            artifact::find_artifact(input, reference, options, &mut found);
        } else if let Some((scheme, _)) = input.split_once("://").filter(|_| !input.starts_with("git:")) {
            match url(input, scheme, options.allow_http) {
                Ok(source) => found.sources.push(source),
                Err(error) => found.errors.push(error),
            }
        } else if ["http:", "https:"].iter().any(|scheme| input.to_ascii_lowercase().starts_with(scheme)) {
            // It may hold a password, so it is not quoted.
            found.errors.push(error_in("-f", "a URL without // behind its scheme; expected https://HOST/PATH", &[]));
        } else if let Some(of_ref) = input.strip_prefix("git:") {
            find_in_git(input, of_ref, options, &mut found);
        } else if input.is_empty() {
            found.errors.push(error_in("-f", "the name of an input is empty", &["Is a variable unset?"]));
        } else {
            find_path(input, options, &mut found);
        }
    }
    found
}

fn url(input: &str, scheme: &str, allow_http: bool) -> Result<Source, InputError> {
    let unreadable = |reason: &str| error_in(&redact::url(input), format!("not a URL: {reason}"), &[]);
    let url = Url::parse(input).map_err(|error| unreadable(&error.to_string()))?;
    let name = fetch::shown(&url);
    match url.scheme() {
        "https" => {}
        "http" if allow_http => {}
        "http" => {
            return Err(error_in(
                &name,
                "http:// is refused: anyone on the way could change the manifests",
                &["Use https://, or say --allow-http where the network is trusted."],
            ));
        }
        _ => {
            return Err(error_in(
                &name,
                format!("the scheme {scheme}:// is not supported; expected https:// or oci://"),
                &["Fetch it with a tool for it, and pass the file or pipe it to `-f -`."],
            ));
        }
    }
    let pin = match url.fragment().map(str::parse) {
        None => None,
        Some(Ok(pin)) => Some(pin),
        // It is not quoted: it may be anything, such as a token.
        Some(Err(hint)) => return Err(error_in(&name, "what stands behind the # is no digest", &[hint])),
    };
    Ok(Source::named(&name, Location::Url(url, pin)))
}

/// Finds `git:REF:PATH` in the repository of the working directory. The path is required; it can name a kustomization or
/// chart to render.
fn find_in_git(input: &str, of_ref: &str, options: &LoadOptions, found: &mut FoundSources) {
    let compared = options.compared;
    let Some((reference, path)) = of_ref.split_once(':').filter(|(_, path)| !path.is_empty()) else {
        let hint = "Name the folder or file in it, such as git:main:deploy; git:main:. is all of it.";
        found.errors.push(error_in(input, "expected git:REF:PATH", &[hint]));
        return;
    };
    if let Some(folder) = path.strip_prefix(KUSTOMIZE) {
        return rendering::kustomization_in_git(input, (reference, folder), options, found);
    }
    if let Some(chart) = path.strip_prefix(HELM) {
        return rendering::chart_in_git(input, (reference, chart), options, found);
    }
    let tree = match GitTree::open_or_absent(Path::new("."), reference, path) {
        Ok(tree) if tree.is_absent() => return compared::missing_in_git(input, (reference, path), compared, found),
        Ok(tree) => tree,
        Err(error) => return found.errors.push(error_in(input, error.0, &[])),
    };
    let mut readings = HashMap::new();
    let files = match compared {
        Some(side) if !tree.is_file() => {
            match compared::select_in_git(&tree, (reference, path), side, options, found) {
                Some(files) => {
                    readings.extend(files.iter().map(|(file, reading)| (file.path.clone(), *reading)));
                    tree.read(files.into_iter().map(|(file, _)| file).collect())
                }
                None => return,
            }
        }
        _ => tree.read_all(),
    };
    match files {
        Ok(files) if files.is_empty() && found.files_in_folders == 0 => found.empty_directories.push(input.to_owned()),
        Ok(files) => found.sources.extend(files.into_iter().map(|file| Source {
            name: format!("git:{}", tree.shown(&file.path)),
            is_found: !tree.is_file(),
            reading: readings.get(&file.path).copied().unwrap_or(Reading::Objects),
            trace: None,
            location: Location::Content(file.bytes),
        })),
        Err(error) => found.errors.push(error_in(input, error.0, &[])),
    }
}

fn find_path(input: &str, options: &LoadOptions, found: &mut FoundSources) {
    let path = Path::new(input);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return compared::missing_path(input, options.compared, found);
        }
        Err(error) => {
            found.errors.push(input_output(input, &error));
            return;
        }
    };
    if metadata.is_dir() {
        // A path that cannot be resolved cannot be read either; reading reports it.
        let inside = fs::canonicalize(path).ok().filter(|_| !options.follow_links);
        let is_rendered = options.render.is_some() && compared::defines_its_files(path);
        let side = options.compared.or(is_rendered.then_some(APPLIED));
        let is_selected = side.is_some();
        let mut walk = Walk { found, inside, is_selected, seen: HashSet::new(), above: Vec::new(), files: Vec::new() };
        walk.directory(path);
        let mut files = walk.files;
        files.sort();
        let selected = match side {
            Some(side) => compared::select_in_folder(path, files, side, options, found),
            None => Some(files.into_iter().map(|path| (path, Reading::Objects)).collect()),
        };
        let Some(files) = selected else { return };
        if files.is_empty() && found.files_in_folders == 0 {
            found.empty_directories.push(input.to_owned());
        }
        found.sources.extend(files.into_iter().map(|(path, reading)| Source {
            name: shown_path(&path),
            is_found: true,
            reading,
            trace: None,
            location: Location::File(path),
        }));
    } else if metadata.is_file() {
        found.sources.push(Source::named(input, Location::File(path.to_owned())));
    } else if is_inherited_pipe(path) {
        found.sources.push(Source::named(input, Location::InheritedPipe(path.to_owned())));
    } else {
        found.errors.push(not_regular(input, &metadata));
    }
}

/// Finds the manifest files of a directory, in the order of their paths.
///
/// # Errors
/// A file or directory that cannot be read, and a link that leads out or in a circle.
pub fn find_files(directory: &Path) -> Result<Vec<PathBuf>, Vec<InputError>> {
    let mut found = FoundSources::default();
    find_path(&directory.to_string_lossy(), &LoadOptions::default(), &mut found);
    let files = found.sources.into_iter().filter_map(|source| match source.location {
        Location::File(path) => Some(path),
        _ => None,
    });
    if found.errors.is_empty() { Ok(files.collect()) } else { Err(found.errors) }
}

/// Collects the manifest files below a directory; links are followed, each file is read once.
struct Walk<'found> {
    found: &'found mut FoundSources,
    /// The real path that no link may leave; `None` if links may.
    inside: Option<PathBuf>,
    /// True if files are selected among those of the directory: then names that start with a dot are skipped, as in a git
    /// ref, and files with any ending are collected, as a kustomization may list them.
    is_selected: bool,
    seen: HashSet<PathBuf>,
    /// The real paths of the directories above this one.
    above: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Walk<'_> {
    fn directory(&mut self, path: &Path) {
        let name = shown_path(path);
        let entries = fs::canonicalize(path).and_then(|real| Ok((real, fs::read_dir(path)?)));
        let (real, entries) = match entries {
            Ok(entries) => entries,
            Err(error) => return self.found.errors.push(input_output(&name, &error)),
        };
        if self.above.contains(&real) {
            return self.found.errors.push(error_in(
                &name,
                "the symbolic link leads back to a directory above it",
                &["Remove the link, or name the files one by one."],
            ));
        }
        if self.above.len() >= MAX_DIRECTORY_DEPTH {
            return self.found.errors.push(error_in(
                &name,
                format!("directories are nested deeper than {MAX_DIRECTORY_DEPTH} levels"),
                &["Name the inner directories."],
            ));
        }
        if !self.seen.insert(real.clone()) {
            return;
        }
        self.above.push(real);
        let mut children: Vec<PathBuf> = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) => children.push(entry.path()),
                Err(error) => self.found.errors.push(input_output(&name, &error)),
            }
        }
        children.sort();
        for child in children {
            self.entry(child);
        }
        self.above.pop();
    }

    fn entry(&mut self, path: PathBuf) {
        // Mounted ConfigMaps and Secrets keep their real files in such directories, and link to them.
        let hidden = if self.is_selected { "." } else { ".." };
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(hidden)) {
            return;
        }
        let is_manifest = is_manifest(&path);
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            // A dangling link that is not a manifest does not matter.
            Err(_) if !is_manifest => return,
            Err(error) => return self.found.errors.push(input_output(&shown_path(&path), &error)),
        };
        if (metadata.is_dir() || is_manifest) && self.leads_out(&path) {
            // Skipping it would delete the objects that were applied from it.
            self.found.errors.push(error_in(
                &shown_path(&path),
                "the symbolic link leads out of the directory that was given",
                &["Say --follow-links where all links in it can be trusted, or name its target with -f."],
            ));
        } else if metadata.is_dir() {
            self.directory(&path);
        } else if is_manifest && metadata.is_file() {
            if fs::canonicalize(&path).is_ok_and(|real| self.seen.insert(real)) {
                self.files.push(path);
            }
        } else if is_manifest {
            self.found.errors.push(not_regular(&shown_path(&path), &metadata));
        } else if self.is_selected && metadata.is_file() && !self.leads_out(&path) {
            self.files.push(path);
        }
    }
}

impl Walk<'_> {
    fn leads_out(&self, path: &Path) -> bool {
        let Some(inside) = &self.inside else { return false };
        fs::canonicalize(path).is_ok_and(|real| !real.starts_with(inside))
    }
}

impl Source {
    /// An input that was named itself.
    fn named(name: &str, location: Location) -> Self {
        Self { name: name.to_owned(), is_found: false, reading: Reading::Objects, trace: None, location }
    }

    /// The path from which the source can be read again.
    pub(super) fn local_path(&self) -> Option<PathBuf> {
        match &self.location {
            Location::File(path) => Some(path.clone()),
            _ => None,
        }
    }

    /// Reads the whole source. More than `limit` bytes are an error; a file that large is not read at all.
    pub(super) fn read(self, standard_input: &mut dyn Read, limit: usize) -> Result<Vec<u8>, InputError> {
        let failed = |error: io::Error| input_output(&self.name, &error);
        let bytes = match self.location {
            Location::StandardInput => read_limited(standard_input, limit).map_err(failed)?,
            Location::Content(bytes) | Location::RenderedBytes(bytes) => (bytes.len() <= limit).then_some(bytes),
            Location::InheritedPipe(path) => {
                read_limited(&mut File::open(path).map_err(failed)?, limit).map_err(failed)?
            }
            Location::File(path) => {
                let mut file = open(&path).map_err(failed)?;
                let metadata = file.metadata().map_err(failed)?;
                // The file may have been replaced since it was found.
                if !metadata.is_file() {
                    return Err(not_regular(&self.name, &metadata));
                }
                if metadata.len() > u64::try_from(limit).unwrap_or(u64::MAX) {
                    None
                } else {
                    read_limited(&mut file, limit).map_err(failed)?
                }
            }
            Location::Url(url, pin) => {
                let bytes = fetch::fetch(&url, &self.name, limit)?;
                if let (Some(pin), Some(bytes)) = (pin, &bytes) {
                    pin.check(bytes).map_err(|message| {
                        let hint = "Look at what is there now; if it is as you want it, pin its digest.";
                        error_in(&self.name, message, &[hint])
                    })?;
                }
                bytes
            }
        };
        bytes.ok_or_else(|| {
            error_in(
                &self.name,
                format!("larger than {}, the limit of one input", size(limit)),
                &["Split it, or check that it is the right one."],
            )
        })
    }
}

/// Opens without blocking, in case a pipe has replaced the file.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    fs::OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

fn is_inherited_pipe(path: &Path) -> bool {
    ["/dev/fd", "/proc/self/fd"].iter().any(|directory| path.parent() == Some(Path::new(directory)))
}

fn not_regular(name: &str, metadata: &fs::Metadata) -> InputError {
    let message = format!("{}; expected a file or a directory", special(metadata));
    error_in(name, message, &["Pipe the content to `-f -`."])
}

#[cfg(unix)]
fn special(metadata: &fs::Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "a device"
    } else {
        "not a regular file"
    }
}

#[cfg(not(unix))]
fn special(_metadata: &fs::Metadata) -> &'static str {
    "not a regular file"
}

/// The message about a file that does not exist.
const NO_SUCH_FILE: &str = "no such file or directory";

/// The file that does not exist, if that is all that is wrong.
#[must_use]
pub fn absent_file(errors: &[InputError]) -> Option<&str> {
    match errors {
        [error] if error.message == NO_SUCH_FILE => Some(&error.position.file),
        _ => None,
    }
}

fn input_output(name: &str, error: &io::Error) -> InputError {
    if is_link_loop(error) {
        return error_in(name, "the symbolic link leads back to itself", &["Remove the link, or let it name a file."]);
    }
    match error.kind() {
        io::ErrorKind::NotFound => {
            error_in(name, NO_SUCH_FILE, &["Check the path; it is relative to the working directory."])
        }
        io::ErrorKind::PermissionDenied => error_in(name, "permission denied", &["Make it readable for this user."]),
        _ => error_in(name, error.to_string().to_lowercase(), &[]),
    }
}

#[cfg(unix)]
fn is_link_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
fn is_link_loop(_error: &io::Error) -> bool {
    false
}

fn shown_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
