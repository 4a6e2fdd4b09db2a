//! The base of a comparison: a folder, file or git ref. It must exist and hold objects, unless it is declared new.
//! Without an app it is read by the same rules as the manifests that are compared with it.

use std::path::Path;
use std::sync::Arc;

use pushback_cluster::directory::{DirectoryCluster, RECORDS};
use pushback_deploy::plan::desired::Placement;
use pushback_manifest::collect::{self, LoadError};
use pushback_manifest::files::shown;
use pushback_manifest::git::GitTree;
use pushback_manifest::variants::{self, VariantPair};
use pushback_manifest::{ComparedSide, InputWarning, LoadOptions, Manifest, ResolvedSource, SideRole, moved};
use pushback_objects::Position;

use super::connect::{ClusterOptions, DEFAULT_NAMESPACE};
use super::error::CommandError;
use super::options::RunOptions;

/// Codes of warnings about how the base is read.
const REPORTED: [&str; 3] = ["kustomization", "new-base", "not-an-object"];

/// Requirement on the existence of a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// It must.
    Required,
    /// The user has declared that a first release has none.
    New,
    /// An apply would create the folder.
    Created,
}

impl Base {
    /// Converts `--new-base`.
    #[must_use]
    pub fn from_flag(is_new: bool) -> Self {
        if is_new { Self::New } else { Self::Required }
    }
}

/// The side of a comparison that the manifests are, if no app is named and the cluster is one of files.
#[must_use]
pub fn side_of_manifests(options: &RunOptions) -> Option<ComparedSide> {
    let is_compared = !options.app.is_named && input_of(&options.cluster).is_some();
    is_compared.then_some(ComparedSide { role: SideRole::New, option: "-f " })
}

/// An opened base.
#[derive(Debug, Default)]
pub struct OpenedBase {
    /// Warnings about the base.
    pub warnings: Vec<InputWarning>,
    /// Sources that were rendered or resolved.
    pub rendered: Vec<ResolvedSource>,
    /// Further variants of CRDs: bases, each with the manifests that are compared with it.
    pub layers: Vec<(Arc<DirectoryCluster>, Vec<Manifest>)>,
}

/// Opens the base of these manifests, rendered with the options with which they were `load`ed. `variants` are further CRDs of the same names; those that are compared first
/// become part of the manifests.
///
/// # Errors
/// The base does not exist, holds no objects or cannot be read, or has to be rendered first.
pub fn open(
    options: &mut RunOptions,
    placement: &Placement,
    load: &LoadOptions,
    (manifests, variants): (&mut [Manifest], Vec<Manifest>),
    base: Base,
) -> Result<OpenedBase, CommandError> {
    if base == Base::New && matches!(options.cluster, ClusterOptions::Server(_)) {
        let message = "--new-base: expected a folder or git ref as the base, found an API server";
        return Err(CommandError::usage_with_hint(
            message,
            "leave out --new-base, or name a base: --cluster git:REF:PATH",
        ));
    }
    // Another tool's diff knows no base.
    let is_checked = base != Base::Created && options.observer.is_none();
    let Some(input) = input_of(&options.cluster).filter(|_| is_checked) else {
        return Ok(OpenedBase::default());
    };
    if let ClusterOptions::File(path) = &options.cluster
        && (path.exists() || path.as_os_str().is_empty())
    {
        DirectoryCluster::open_file(path)?;
    }
    let side = ComparedSide { role: SideRole::Base { may_be_missing: base == Base::New }, option: "--cluster file:" };
    let is_cluster = options.app.is_named || has_records(&options.cluster);
    // What belongs to an app is known by its record, which a rendered folder has none of.
    let render = load.render.clone().filter(|_| !is_cluster);
    let load = LoadOptions { compared: Some(side), render, ..LoadOptions::default() };
    if is_cluster && is_rendered(&options.cluster) {
        let message = format!("a rendered base has no record of the app {}", options.app.name);
        return Err(CommandError::usage_with_hint(message, "leave out -a: then the base is the app"));
    }
    // An existing cluster reads its files itself.
    if is_cluster && base == Base::Required && is_existing_folder(&options.cluster) {
        collect::check_rendered(&input, &load)?;
        return Ok(OpenedBase::default());
    }
    let mut loaded = match collect::load(std::slice::from_ref(&input), &load) {
        Ok(loaded) => loaded,
        // A folder without any file is an empty cluster.
        Err(error) if error.is_empty && !error.is_without_objects && is_existing_folder(&options.cluster) => {
            let warnings = if is_cluster { Vec::new() } else { vec![empty_base(&input)] };
            return Ok(OpenedBase { warnings, ..OpenedBase::default() });
        }
        // Other problems of a cluster are reported when it is read.
        Err(error) if is_cluster && !stops_cluster(&options.cluster, &error) => return Ok(OpenedBase::default()),
        Err(error) => return Err(error.into()),
    };
    // What else is remarkable about the base is not for those who replace it.
    loaded.warnings.retain(|warning| REPORTED.contains(&warning.code));
    let is_missing = !loaded.missing.is_empty();
    let is_folder = matches!(options.cluster, ClusterOptions::Directory(_));
    if is_cluster && (!is_missing || is_folder) {
        loaded.warnings.retain(|warning| warning.code == "new-base");
        return Ok(OpenedBase { warnings: loaded.warnings, ..OpenedBase::default() });
    }
    if let (true, ClusterOptions::Git { reference, path }) = (is_missing, &options.cluster) {
        let wanted: Vec<&Manifest> = manifests.iter().chain(&variants).collect();
        let found = moved::find((reference, path), &wanted, side).map_err(|error| CommandError::usage(error.0))?;
        if !found.manifests.is_empty() {
            loaded.warnings = found.warnings;
        }
        loaded.manifests = found.manifests;
        loaded.variants = found.variants;
        loaded.configs = found.configs;
    }
    let namespace = options.app.namespace.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let placement = Placement { default_namespace: namespace.to_owned(), ..placement.clone() };
    let further = variants::pair_variants((&mut loaded.manifests, loaded.variants), (manifests, variants));
    let description = description(&options.cluster);
    let place = |namespace: &str| placement.of_base(namespace);
    let presented = |manifests: Vec<Manifest>, configs: Vec<Manifest>| {
        let objects = manifests.into_iter().map(|manifest| manifest.value).collect();
        DirectoryCluster::with_objects(&description, objects, configs, &place).map(Arc::new)
    };
    options.cluster = ClusterOptions::Base(presented(loaded.manifests, loaded.configs)?);
    let mut layers = Vec::new();
    for (old, new) in in_layers(further) {
        layers.push((presented(old, Vec::new())?, new));
    }
    Ok(OpenedBase { warnings: loaded.warnings, rendered: loaded.rendered, layers })
}

/// Divides pairs so that no identity is twice in a layer.
fn in_layers(pairs: Vec<VariantPair>) -> Vec<(Vec<Manifest>, Vec<Manifest>)> {
    let mut layers: Vec<(Vec<Manifest>, Vec<Manifest>)> = Vec::new();
    for (old, new) in pairs {
        let is_free = |layer: &&mut (Vec<Manifest>, Vec<Manifest>)| {
            layer.0.iter().all(|known| known.object.key() != old.object.key())
        };
        match layers.iter_mut().find(is_free) {
            Some(layer) => {
                layer.0.push(old);
                layer.1.push(new);
            }
            None => layers.push((vec![old], vec![new])),
        }
    }
    layers
}

/// The base as an input; `None` for an API server.
fn input_of(cluster: &ClusterOptions) -> Option<String> {
    match cluster {
        ClusterOptions::Directory(path) | ClusterOptions::File(path) => Some(path.to_string_lossy().into_owned()),
        ClusterOptions::Git { reference, path } if path.is_empty() => Some(format!("git:{reference}:.")),
        ClusterOptions::Git { reference, path } => Some(format!("git:{reference}:{path}")),
        ClusterOptions::Source(source) => Some(source.clone()),
        ClusterOptions::Server(_) | ClusterOptions::Base(_) => None,
    }
}

/// The base as reports name it.
fn description(cluster: &ClusterOptions) -> String {
    match cluster {
        ClusterOptions::Directory(path) if !path.is_file() => format!("dir:{}", shown(path)),
        ClusterOptions::Directory(path) | ClusterOptions::File(path) => format!("file:{}", shown(path)),
        ClusterOptions::Git { reference, path } => match path.trim_matches('/').trim_start_matches("./") {
            "" | "." => format!("git:{reference}"),
            path => format!("git:{reference}:{path}"),
        },
        ClusterOptions::Source(source) => source.clone(),
        ClusterOptions::Server(_) | ClusterOptions::Base(_) => String::new(),
    }
}

/// Returns whether the place has app records.
fn has_records(cluster: &ClusterOptions) -> bool {
    match cluster {
        ClusterOptions::Directory(path) => path.join(RECORDS).is_dir(),
        ClusterOptions::Git { reference, path } => {
            let records = if path.is_empty() { RECORDS.to_owned() } else { format!("{path}/{RECORDS}") };
            GitTree::open_or_absent(Path::new("."), reference, &records).is_ok_and(|tree| !tree.is_absent())
        }
        _ => false,
    }
}

/// Returns whether an error of the base also stops a comparison with an app in it. A folder that an app is written to may have
/// files of others.
fn stops_cluster(cluster: &ClusterOptions, error: &LoadError) -> bool {
    !is_existing_folder(cluster) || error.must_be_rendered
}

/// Returns whether the base is named as one to render.
fn is_rendered(cluster: &ClusterOptions) -> bool {
    match cluster {
        ClusterOptions::Source(_) => true,
        ClusterOptions::Git { path, .. } => ["kustomize:", "helm:"].iter().any(|scheme| path.starts_with(scheme)),
        _ => false,
    }
}

fn is_existing_folder(cluster: &ClusterOptions) -> bool {
    matches!(cluster, ClusterOptions::Directory(path) if path.is_dir())
}

fn empty_base(input: &str) -> InputWarning {
    InputWarning {
        code: "empty-base",
        message: "the folder has no files: everything that is compared with it is new".to_owned(),
        position: Position { file: input.to_owned(), line: 0, column: 0 },
    }
}
