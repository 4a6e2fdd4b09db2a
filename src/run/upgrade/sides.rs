//! The two sides of a comparison: files and live apps. Models are derived from live apps as well.

use std::sync::Arc;

use pushback_app::identity;
use pushback_app::record::observe;
use pushback_cluster::Announce;
use pushback_deploy::plan::live;
use pushback_manifest::{ComparedSide, InputError, LoadOptions, Manifest, RenderOptions, SideRole};
use pushback_objects::{ObjectRef, Positions};
use pushback_upgrade::sources::{self, Naming, Side};
use serde_json::Value;

use crate::run::connect::{ClusterOptions, reach};
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;

/// The two releases.
#[derive(Clone, Debug)]
pub struct Sides {
    /// The old release.
    pub old: SideOptions,
    /// The new release.
    pub new: SideOptions,
    /// Whether `http://` URLs are allowed.
    pub allow_http: bool,
    /// Whether symbolic links may lead out of a directory.
    pub follow_links: bool,
    /// Options for folders and charts that are rendered.
    pub render: RenderOptions,
    /// True if the old release may be missing.
    pub new_base: bool,
}

/// Sources of one side.
#[derive(Clone, Debug)]
pub struct SideOptions {
    /// Files, directories, URLs.
    pub files: Vec<String>,
    /// Live apps.
    pub apps: Vec<LiveInput>,
}

/// A live app as an input.
#[derive(Clone, Debug)]
pub struct LiveInput {
    /// The input as the user wrote it.
    pub input: String,
    /// The cluster.
    pub cluster: ClusterOptions,
    /// App name.
    pub app: String,
    /// Namespace of the app.
    pub namespace: NamespaceOptions,
}

impl Sides {
    /// Reads both sides.
    ///
    /// # Errors
    /// All errors in them at once; a live app cannot be read.
    pub async fn read(&self, announce: &Announce<'_>) -> Result<(Side, Side), CommandError> {
        let standard_input = |side: &SideOptions| side.files.iter().any(|input| input == "-" || input == "/dev/stdin");
        if standard_input(&self.old) && standard_input(&self.new) {
            return Err(CommandError::usage_with_hint(
                "both releases are read from standard input, which can be read only once",
                "give one of them as a file, a folder or git:REF:PATH",
            ));
        }
        let base = ComparedSide { role: SideRole::Base { may_be_missing: self.new_base }, option: "--from " };
        let old = self.read_files(&self.old, base);
        let new = self.read_files(&self.new, ComparedSide { role: SideRole::New, option: "--to " });
        let (mut old, mut new) = both(old, new)?;
        old.add_moved(&new, base).map_err(|error| CommandError::usage(error.0))?;
        sources::pair_variants(&mut old, &mut new);
        for (options, side) in [(&self.old, &mut old), (&self.new, &mut new)] {
            for app in &options.apps {
                app.add_to(side, announce).await?;
            }
        }
        Ok((old, new))
    }

    fn load_options(&self, side: ComparedSide) -> LoadOptions {
        LoadOptions {
            models: true,
            allow_http: self.allow_http,
            follow_links: self.follow_links,
            compared: Some(side),
            render: Some(self.render.clone()),
            ..LoadOptions::default()
        }
    }

    fn read_files(&self, side: &SideOptions, compared: ComparedSide) -> Result<Side, Vec<InputError>> {
        match (&side.files[..], &side.apps[..]) {
            ([], [_, ..]) => Ok(Side::default()),
            (files, _) => sources::read_with(files, &self.load_options(compared)),
        }
    }
}

impl LiveInput {
    /// Adds the app to a side.
    async fn add_to(&self, side: &mut Side, announce: &Announce<'_>) -> Result<(), CommandError> {
        let LiveApp { objects, namespace } = read_app(&self.cluster, &self.app, &self.namespace, announce).await?;
        let positions = Arc::new(Positions::of_file(&self.input));
        side.manifests.extend(objects.iter().map(|value| Manifest {
            object: ObjectRef::of(value),
            value: Value::clone(value),
            positions: Arc::clone(&positions),
        }));
        side.name_as(&self.input, Naming { app: self.app.clone(), namespace, ..Naming::default() });
        Ok(())
    }
}

/// Live objects of an app.
#[derive(Debug)]
pub struct LiveApp {
    /// The objects.
    pub objects: Vec<Arc<Value>>,
    /// Namespace of objects that name none.
    pub namespace: String,
}

/// Reads an app from the cluster, without what marks its objects as the app's: a release does not have it.
///
/// # Errors
/// No such app, or some of its objects cannot be read: they would appear to be deleted.
pub async fn read_app(
    cluster: &ClusterOptions,
    app: &str,
    namespace: &NamespaceOptions,
    announce: &Announce<'_>,
) -> Result<LiveApp, CommandError> {
    let (cluster, kinds, namespaces) = reach(cluster, namespace, announce).await?;
    let observed = observe(&*cluster, &namespaces.app(app)).await?;
    if observed.record.is_none() {
        return Err(CommandError::usage_with_hint(
            format!("app {} does not exist in namespace {}", observed.app.name, observed.app.namespace),
            "`pushback list -A` shows all apps",
        ));
    }
    let live = live::read(&*cluster, &kinds, &observed, &[], live::Scope::Cluster).await?;
    if let Some(((group, kind), reason)) = live.unreadable.iter().next() {
        let kind = if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") };
        return Err(CommandError::usage_with_hint(
            format!("objects of kind {kind} cannot be read, so the model would lack them: {reason}"),
            "derive it from the manifests instead: -f",
        ));
    }
    let objects = live.objects.into_values().map(|mut object| {
        identity::remove_marks(Arc::make_mut(&mut object));
        object
    });
    Ok(LiveApp { objects: objects.collect(), namespace: namespaces.objects })
}

/// Both results, or the errors of both.
///
/// # Errors
/// All errors of either.
pub fn both<T>(one: Result<T, Vec<InputError>>, other: Result<T, Vec<InputError>>) -> Result<(T, T), CommandError> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (one, other) => {
            let errors = one.err().into_iter().chain(other.err()).flatten().collect::<Vec<_>>();
            Err(CommandError::from(errors))
        }
    }
}
