//! Renders a kustomization with `kustomize` or `kubectl kustomize`. Remote bases are found by reading, before the
//! program runs, and refused unless they are allowed.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pushback_objects::source::Document;
use serde_json::Value;

use super::trace::{SourceDocuments, Trace};
use super::{
    RenderError, RenderOptions, RenderedFolder, RenderedText, Renderer, SourceTree, open, resolve_dots, sealed,
};
use crate::files::check_size;
use crate::layout::kustomization::{self, is_remote};
use crate::source::KUSTOMIZE;
use crate::yaml;

/// Maximum number of kustomizations that one leads to.
const KUSTOMIZATIONS: usize = 2_000;

/// Fields that list files and folders.
const LISTS: [&str; 9] = [
    "resources",
    "bases",
    "components",
    "crds",
    "configurations",
    "generators",
    "transformers",
    "validators",
    "patchesStrategicMerge",
];

/// Fields that list maps with a path.
const PATHS: [&str; 3] = ["patches", "patchesJson6902", "replacements"];

/// Fields that have charts rendered.
const CHARTS: [&str; 2] = ["helmCharts", "helmChartInflationGenerator"];

fn find_renderer() -> Option<&'static Renderer> {
    static FOUND: OnceLock<Option<Renderer>> = OnceLock::new();
    let programs: [(&str, &[&str]); 2] =
        [("kustomize", &["version"]), ("kubectl", &["version", "--client", "--output=json"])];
    FOUND.get_or_init(|| Renderer::find(&programs)).as_ref()
}

/// Renders the kustomization in a folder.
///
/// # Errors
/// There is no program on the PATH, the program fails, or the kustomization leads to other machines.
pub(crate) fn render_kustomization(
    folder: &Path,
    tree: SourceTree<'_>,
    options: &RenderOptions,
) -> Result<RenderedText, RenderError> {
    let bases = Bases::read(folder, tree)?;
    if !options.allow_remote_bases
        && let Some((file, reason)) = bases.remote.first()
    {
        let mut error = RenderError::new(reason.clone())
            .with_hint("Copy it into the repository, or let it be fetched: --allow-remote-bases.");
        error.file.clone_from(file);
        return Err(error);
    }
    let Some(renderer) = find_renderer() else {
        return Err(RenderError::of_missing("neither kustomize nor kubectl", "Install kustomize or kubectl."));
    };
    let environment = if options.allow_remote_bases { open() } else { sealed(&[]) };
    let is_kubectl = renderer.path.file_stem().is_some_and(|name| name == "kubectl");
    let mut arguments = vec![if is_kubectl { "kustomize" } else { "build" }.to_owned()];
    if options.allow_remote_bases && bases.has_charts {
        arguments.push("--enable-helm".to_owned());
    }
    arguments.push(absolute(folder)?);
    let bytes = renderer.run(arguments, environment).map_err(|error| {
        RenderError::new(format!("{} cannot render it: {}", renderer.named, tree.without_checkout(&error)))
    })?;
    let folder = RenderedFolder { folder: tree.shown(folder), program: renderer.named.clone() };
    Ok(RenderedText { bytes, trace: Trace::Documents(bases.documents), folder, scheme: KUSTOMIZE })
}

/// Returns a path that a program reads in whatever folder it runs, and not as an option.
pub(super) fn absolute(path: &Path) -> Result<String, RenderError> {
    let path = fs::canonicalize(path).map_err(|error| RenderError::new(format!("{}: {error}", path.display())))?;
    path.into_os_string().into_string().map_err(|_| RenderError::new("its path is not UTF-8"))
}

/// Files that a kustomization leads to, through other kustomizations too.
#[derive(Debug, Default)]
struct Bases {
    /// Documents of its resources.
    documents: SourceDocuments,
    /// Entries that lead to other machines or out of the repository: the file, and the reason for a refusal.
    remote: Vec<(String, String)>,
    /// True if charts are rendered.
    has_charts: bool,
}

impl Bases {
    fn read(folder: &Path, tree: SourceTree<'_>) -> Result<Self, RenderError> {
        let mut bases = Self::default();
        let mut seen = HashSet::new();
        let mut files = BTreeSet::new();
        let mut open = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            let folder = resolve_dots(&folder);
            if !seen.insert(folder.clone()) {
                continue;
            }
            if seen.len() > KUSTOMIZATIONS {
                return Err(RenderError::new(format!("it leads to more than {KUSTOMIZATIONS} kustomizations")));
            }
            // The program reports a kustomization that is missing or cannot be read.
            let Some(file) = kustomization::NAMES.iter().map(|name| folder.join(name)).find(|file| file.is_file())
            else {
                continue;
            };
            let Some(value) = documents(&file, tree).into_iter().next().map(|document| document.value) else {
                continue;
            };
            bases.add(&folder, &file, &value, tree, &mut files, &mut open);
        }
        bases.documents = SourceDocuments::new(files.iter().flat_map(|file| documents(file, tree)));
        Ok(bases)
    }

    fn add(
        &mut self,
        folder: &Path,
        file: &Path,
        kustomization: &Value,
        tree: SourceTree<'_>,
        files: &mut BTreeSet<PathBuf>,
        open: &mut Vec<PathBuf>,
    ) {
        for field in CHARTS.into_iter().filter(|field| kustomization.get(field).is_some_and(|it| !it.is_null())) {
            self.has_charts = true;
            self.remote
                .push((tree.shown(file), format!("it has the field `{field}`, which runs Helm and may fetch charts")));
        }
        let lists = LISTS.iter().filter_map(|field| Some((*field, kustomization.get(field)?)));
        let entries = lists.flat_map(|(field, value)| items(value).iter().map(move |item| (field, item.as_str())));
        let paths = PATHS.iter().filter_map(|field| Some((*field, kustomization.get(field)?)));
        let paths =
            paths.flat_map(|(field, value)| items(value).iter().map(move |item| (field, item["path"].as_str())));
        for (field, entry) in entries.chain(paths) {
            // Inline YAML is not a path.
            let Some(entry) = entry.filter(|entry| !entry.is_empty() && !entry.contains('\n')) else { continue };
            let path = resolve_dots(&folder.join(entry));
            if let SourceTree::Ref(checkout) = tree
                && checkout.relative(&path).is_none()
            {
                let reason = format!("it lists {entry}, which is outside the {}", checkout.kind());
                self.remote.push((tree.shown(file), reason));
            } else if path.is_dir() {
                open.push(path);
            } else if path.is_file() {
                if matches!(field, "resources" | "bases") {
                    files.insert(path);
                }
            } else if is_remote(entry) {
                self.remote.push((tree.shown(file), format!("it lists {entry}, which is remote")));
            }
        }
        // Files of generators can be URLs, too.
        for field in ["configMapGenerator", "secretGenerator"] {
            for generator in kustomization.get(field).map(items).unwrap_or_default() {
                let named = ["files", "envs"].into_iter().filter_map(|list| generator.get(list)).flat_map(items);
                let single = generator.get("env").into_iter();
                for entry in named.chain(single).filter_map(Value::as_str) {
                    let path = entry.split_once('=').map_or(entry, |(_, path)| path);
                    if path.contains("://") {
                        self.remote.push((tree.shown(file), format!("it lists {path}, which is remote")));
                    }
                }
            }
        }
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The documents of a file; none if it cannot be read, which the program reports.
fn documents(file: &Path, tree: SourceTree<'_>) -> Vec<Document> {
    let name = tree.shown(file);
    let is_small = fs::metadata(file).is_ok_and(|metadata| check_size(&name, metadata.len()).is_ok());
    let Some(bytes) = is_small.then(|| fs::read(file).ok()).flatten() else { return Vec::new() };
    let Ok(loaded) = yaml::load(&name, &bytes, &yaml::Limits::default()) else { return Vec::new() };
    let documents = loaded.documents.into_iter().filter(|document| !document.value.is_null());
    documents.map(|it| Document { value: it.value, positions: it.positions.into() }).collect()
}
