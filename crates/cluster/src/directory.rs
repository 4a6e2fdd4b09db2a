//! A folder of YAML (`dir:PATH`, read and written), a single file (`file:PATH`) or a git ref (`git:REF[:PATH]`), both
//! read-only, as a cluster.
//! The manifest is the object: there is no defaulting and no labelling, and a write without changes touches no file.

mod discovery;
mod edit;
mod folder;
mod index;
mod kinds_table;
mod layout;
mod lock;
mod present;
mod read;
mod selector;
mod source;
mod store;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use pushback_manifest::Manifest;
use pushback_manifest::collect;
use pushback_manifest::files;
use pushback_manifest::git::GitTree;
use serde_json::Value;

pub use self::edit::rewrite;
pub use self::layout::RECORDS;

use self::folder::{Folder, SingleFile};
use self::source::Source;
use self::store::Store;
use super::{
    Address, ApplyOptions, Capabilities, Cluster, ClusterError, DeleteOptions, Deleted, ErrorKind, Kinds, ListQuery,
    LocalLock, Page, Patch, ServerVersion, WatchEvent, Written,
};

/// A folder, a single file, or a git ref, as a cluster.
///
/// Objects may be in any layout of `.yaml`, `.yml` and `.json` files; documents that are not Kubernetes objects are
/// left alone. Objects without a namespace are in `default`. A new object gets its own file, `<namespace or
/// _cluster>/<kind>[.<group>]_<name>.yaml`; an update replaces the document in place, and every byte outside it stays.
/// App records are stored in `.pushback/<namespace>/<name>.yaml` and listed only by their labels.
///
/// `uid` and `resourceVersion` are derived when an object is read: digests of its identity and its content.
#[derive(Debug)]
pub struct DirectoryCluster {
    store: Arc<Store>,
    description: String,
    /// `None` if read-only.
    root: Option<PathBuf>,
    lock_directory: Option<PathBuf>,
    /// Config documents, if they were read with the objects.
    configs: Option<Vec<Manifest>>,
}

impl DirectoryCluster {
    /// Opens a folder. One that does not exist is an empty cluster, and is created by the first write. Files are read
    /// on first use. The path of a file opens only that file, like [`DirectoryCluster::open_file`].
    ///
    /// # Errors
    /// `Configuration` if the path is neither a folder nor a file.
    pub fn open(path: &Path) -> Result<Self, ClusterError> {
        if path.is_file() {
            return Self::open_file(path);
        }
        let source = Source::Folder(Folder::new(path)?);
        let description = format!("dir:{}", files::shown(path));
        let root = Some(path.to_owned());
        Ok(Self { store: Arc::new(Store::new(source)), description, root, lock_directory: None, configs: None })
    }

    /// Opens a single file, which is never written.
    ///
    /// # Errors
    /// `Configuration` if there is no such file.
    pub fn open_file(path: &Path) -> Result<Self, ClusterError> {
        let store = Arc::new(Store::new(Source::File(SingleFile::new(path)?)));
        let description = format!("file:{}", files::shown(path));
        Ok(Self { store, description, root: None, lock_directory: None, configs: None })
    }

    /// Opens a git ref (branch, tag, commit) of the repository that contains `repository_dir`, or a folder or file in
    /// it: `sub_path` is relative to the repository's root, and empty for all of it.
    ///
    /// # Errors
    /// `Configuration` if git, the repository, the ref or the path does not exist.
    pub fn open_git(repository_dir: &Path, reference: &str, sub_path: &str) -> Result<Self, ClusterError> {
        let tree = GitTree::open(repository_dir, reference, sub_path).map_err(source::of_git)?;
        let description = format!("git:{}", tree.label());
        let store = Arc::new(Store::new(Source::Git(tree)));
        Ok(Self { store, description, root: None, lock_directory: None, configs: None })
    }

    /// Presents objects that were read already, as the base of a comparison; it is never written. `configs` are the Config
    /// documents that were read with them; `place` returns the namespace of an object whose manifest has this one.
    ///
    /// # Errors
    /// `Configuration` if two objects have one identity.
    pub fn with_objects(
        description: &str,
        objects: Vec<Value>,
        configs: Vec<Manifest>,
        place: &dyn Fn(&str) -> String,
    ) -> Result<Self, ClusterError> {
        let store = Arc::new(Store::with_objects(description.to_owned(), objects, place)?);
        Ok(Self {
            store,
            description: description.to_owned(),
            root: None,
            lock_directory: None,
            configs: Some(configs),
        })
    }

    /// Stores the locks of apps in this folder instead of the user's cache folder.
    #[must_use]
    pub fn with_lock_directory(mut self, path: &Path) -> Self {
        self.lock_directory = Some(path.to_owned());
        self
    }

    /// Runs file access on a thread that may block. A write completes even if its future is dropped.
    async fn blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<R, ClusterError> + Send + 'static,
    ) -> Result<R, ClusterError> {
        let store = Arc::clone(&self.store);
        in_background(move || work(&store)).await
    }
}

async fn in_background<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, ClusterError> + Send + 'static,
) -> Result<R, ClusterError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ClusterError::new(ErrorKind::Server, "the run is being ended")),
        },
    }
}

#[async_trait]
impl Cluster for DirectoryCluster {
    fn description(&self) -> String {
        self.description.clone()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { server: false, writable: self.root.is_some() }
    }

    async fn version(&self) -> Result<Option<ServerVersion>, ClusterError> {
        Ok(None)
    }

    async fn kinds(&self) -> Result<Arc<Kinds>, ClusterError> {
        self.blocking(Store::kinds).await
    }

    /// A written definition takes effect at once, so there is nothing to fetch.
    async fn rediscover(&self, _group: &str) -> Result<Arc<Kinds>, ClusterError> {
        self.blocking(Store::kinds).await
    }

    async fn get(&self, address: &Address) -> Result<Option<Arc<Value>>, ClusterError> {
        let address = address.clone();
        self.blocking(move |store| store.get(&address)).await
    }

    /// Returns everything on one page.
    async fn list(&self, query: &ListQuery) -> Result<Page, ClusterError> {
        let query = query.clone();
        self.blocking(move |store| store.list(&query)).await
    }

    async fn create(&self, address: &Address, body: &Value, dry_run: bool) -> Result<Written, ClusterError> {
        let (address, body) = (address.clone(), body.clone());
        self.blocking(move |store| store.create(&address, &body, dry_run)).await
    }

    async fn apply(&self, address: &Address, body: &Value, options: ApplyOptions) -> Result<Written, ClusterError> {
        let at_once = || self.store.dry_apply_at_once(address, body);
        if let Some(written) = options.dry_run.then(at_once).flatten() {
            return Ok(written);
        }
        let (address, body) = (address.clone(), body.clone());
        self.blocking(move |store| store.apply(&address, &body, options.dry_run)).await
    }

    async fn patch(&self, address: &Address, patch: &Patch, dry_run: bool) -> Result<Written, ClusterError> {
        let (address, patch) = (address.clone(), patch.clone());
        self.blocking(move |store| store.patch(&address, &patch, dry_run)).await
    }

    async fn delete(&self, address: &Address, options: &DeleteOptions) -> Result<Option<Deleted>, ClusterError> {
        let (address, options) = (address.clone(), options.clone());
        let last = self.blocking(move |store| store.delete(&address, &options)).await?;
        Ok(last.map(|object| Deleted { object, warnings: Vec::new() }))
    }

    async fn watch(
        &self,
        _query: &ListQuery,
        _resource_version: &str,
    ) -> Result<BoxStream<'static, Result<WatchEvent, ClusterError>>, ClusterError> {
        let message = format!("{} cannot be watched: nothing changes in it by itself", self.description);
        Err(ClusterError::new(ErrorKind::Unsupported, message))
    }

    fn folder(&self) -> Option<PathBuf> {
        let root = self.root.as_ref()?;
        Some(std::fs::canonicalize(root).unwrap_or_else(|_| root.clone()))
    }

    async fn configs(&self) -> Result<Vec<Manifest>, ClusterError> {
        if let Some(configs) = &self.configs {
            return Ok(configs.clone());
        }
        self.blocking(|store| {
            let files = store.texts_with("Config")?;
            collect::configs_among(&files).map_err(|errors| {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                ClusterError::new(ErrorKind::Configuration, errors.join("\n"))
            })
        })
        .await
    }

    async fn local_lock(&self, namespace: &str, app: &str) -> Result<Option<LocalLock>, ClusterError> {
        // A git ref and a single file are never written.
        let Some(root) = self.root.clone() else { return Ok(None) };
        let (directory, namespace, app) = (self.lock_directory.clone(), namespace.to_owned(), app.to_owned());
        let acquire = move || lock::acquire(directory.as_deref(), &root, &namespace, &app);
        Ok(Some(LocalLock::new(in_background(acquire).await?)))
    }
}
