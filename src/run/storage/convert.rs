//! Converts manifests: documents of the kind in files, folders or standard input, also within lists. Other documents, and
//! every byte outside those that change, stay.

use std::fs;
use std::path::{Path, PathBuf};

use pushback_cluster::ClusterError;
use pushback_cluster::directory::rewrite;
use pushback_conversion::{Converter, Why};
use pushback_manifest::{InputError, files};
use pushback_objects::{ObjectExt, Position};
use pushback_storage::conversion::{ConvertReport, LostField};
use pushback_system::atomic_file;
use pushback_system::environment::reason;
use serde_json::Value;

use super::conversion::{ConversionFiles, text};
use super::programs::NamedPrograms;
use crate::run::error::CommandError;

/// Deepest folder that is looked into.
const MAX_DEPTH: usize = 32;

/// What to convert.
#[derive(Clone, Debug)]
pub struct Convert {
    /// Definition and plan.
    pub files: ConversionFiles,
    /// Programs that the plan may hand objects to.
    pub programs: NamedPrograms,
    /// Files, folders, or `-`.
    pub paths: Vec<PathBuf>,
    /// The wanted version.
    pub to: String,
    /// Whether fields may be lost.
    pub allow_loss: bool,
    /// Whether files are written; otherwise their text is returned.
    pub in_place: bool,
}

/// Why a document cannot be converted.
enum Failure {
    Cluster(ClusterError),
    Input(InputError),
}

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Self {
        Self::Cluster(error)
    }
}

impl Convert {
    /// Converts everything, and writes files only if everything can be converted.
    ///
    /// # Errors
    /// An input cannot be read or converted, or something would be lost.
    pub fn run(&self) -> Result<ConvertReport, CommandError> {
        let converter = self.files.converter()?;
        self.programs.check(&converter)?;
        if converter.lineage().index(&self.to).is_none() {
            let known = converter.lineage().versions.join(", ");
            let message = format!("--to: {} has no version {:?}", converter.name(), self.to);
            return Err(CommandError::usage_with_hint(message, format!("versions are {known}")));
        }
        let (mut report, mut changed, mut errors) = (ConvertReport::default(), Vec::new(), Vec::new());
        for path in self.inputs()? {
            let shown = files::shown(&path);
            let text = text(&path)?;
            let result = rewrite(&text, &shown, |value, line| {
                self.document(&converter, value, &Position { file: shown.clone(), line, column: 0 }, &mut report)
            });
            match result {
                Ok((new, count)) if self.in_place => {
                    if count > 0 && new != text {
                        changed.push((path, new));
                    }
                }
                Ok((new, _)) => append(&mut report.text, &new),
                Err(Failure::Cluster(error)) => return Err(error.into()),
                Err(Failure::Input(error)) => errors.push(error),
            }
        }
        errors.extend(self.losses(&report));
        if !errors.is_empty() {
            return Err(errors.into());
        }
        for (path, text) in changed {
            write(&path, &text)?;
            report.written.push(files::shown(&path));
        }
        Ok(report)
    }

    /// What nobody has accepted the loss of.
    fn losses(&self, report: &ConvertReport) -> Vec<InputError> {
        let is_loss = |field: &&LostField| matches!(field.lost.why, Why::Unknown | Why::NotKept | Why::BagLost);
        let error = |field: &LostField| InputError {
            message: format!("{}: {} would be lost: {}", field.object, field.lost.path, field.lost.why.as_str()),
            position: field.position.clone(),
            hints: vec!["accept that with --allow-loss, or let the plan keep it (`bag: annotation`)".to_owned()],
        };
        if self.allow_loss { Vec::new() } else { report.lost.iter().filter(is_loss).map(error).collect() }
    }

    fn document(
        &self,
        converter: &Converter,
        value: &Value,
        position: &Position,
        report: &mut ConvertReport,
    ) -> Result<Option<Value>, Failure> {
        if converter.is_for(value) {
            return self.object(converter, value, position, report);
        }
        // An export: `kubectl get` prints a list.
        let Some(items) =
            value.get("items").and_then(Value::as_array).filter(|_| value.text("/kind").ends_with("List"))
        else {
            return Ok(None);
        };
        let mut list = value.clone();
        let mut is_changed = false;
        for (index, item) in items.iter().enumerate().filter(|(_, item)| converter.is_for(item)) {
            if let Some(new) = self.object(converter, item, position, report)? {
                list["items"][index] = new;
                is_changed = true;
            }
        }
        let is_own_list = list.text("/apiVersion") != "v1" && is_changed;
        if is_own_list {
            list["apiVersion"] = format!("{}/{}", converter.group(), self.to).into();
        }
        Ok(is_changed.then_some(list))
    }

    fn object(
        &self,
        converter: &Converter,
        value: &Value,
        position: &Position,
        report: &mut ConvertReport,
    ) -> Result<Option<Value>, Failure> {
        let name = match value.text("/metadata/namespace") {
            "" => value.text("/metadata/name").to_owned(),
            namespace => format!("{namespace}/{}", value.text("/metadata/name")),
        };
        let object = format!("{} {name}", converter.kind());
        let converted = converter.convert(value.clone(), &self.to, &self.programs).map_err(|error| {
            let message = format!("{object}: {error}");
            Failure::Input(InputError { message, position: position.clone(), hints: Vec::new() })
        })?;
        let lost = converted.lost.into_iter();
        report.lost.extend(lost.map(|lost| LostField { position: position.clone(), object: object.clone(), lost }));
        let is_changed = converted.object != *value;
        report.objects += usize::from(is_changed);
        Ok(is_changed.then_some(converted.object))
    }

    /// All files, those of folders in the order of their names.
    fn inputs(&self) -> Result<Vec<PathBuf>, CommandError> {
        let mut files = Vec::new();
        for path in &self.paths {
            if path == Path::new("-") {
                if self.in_place {
                    return Err(CommandError::usage("--in-place writes files, and - is standard input"));
                }
                files.push(path.clone());
            } else {
                let before = files.len();
                add(path, 0, &mut files).map_err(|error| {
                    CommandError::usage(format!("{}: it cannot be read: {}", files::shown(path), reason(&error)))
                })?;
                if files.len() == before {
                    return Err(CommandError::usage(format!("{}: there are no manifests", files::shown(path))));
                }
            }
        }
        Ok(files)
    }
}

/// Adds a file, or the manifests of a folder. Hidden files are left out, and links are not followed.
fn add(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let mut entries = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries.iter().filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')) {
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MAX_DEPTH {
            add(&entry.path(), depth + 1, found)?;
        } else if kind.is_file() && files::is_manifest(&entry.path()) {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        if !more.starts_with("---") {
            text.push_str("---\n");
        }
    }
    text.push_str(more);
}

/// Replaces a file, with the permissions that it has.
fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let replaced = fs::canonicalize(path).and_then(|path| {
        let permissions = fs::metadata(&path)?.permissions();
        atomic_file::replace(&path, text.as_bytes())?;
        fs::set_permissions(&path, permissions)
    });
    replaced.map_err(|error| {
        CommandError::usage(format!("{}: it cannot be written: {}", files::shown(path), reason(&error)))
    })
}
