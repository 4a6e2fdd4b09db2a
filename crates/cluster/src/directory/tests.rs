//! The directory as a cluster: what callers of the trait see, and what it leaves in the files.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use pushback_objects::object::ObjectExt;
use serde_json::json;

use super::*;
use crate::{Kind, list_all};

struct Live {
    directory: tempfile::TempDir,
    cluster: DirectoryCluster,
}

impl Live {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let cluster = DirectoryCluster::open(directory.path()).unwrap();
        Self { directory, cluster }
    }

    fn reopened(self) -> Self {
        let cluster = DirectoryCluster::open(self.directory.path()).unwrap();
        Self { cluster, ..self }
    }

    /// Every file with its content, including hidden ones.
    fn tree(&self) -> BTreeMap<String, String> {
        let mut tree = BTreeMap::new();
        let mut folders = vec![self.directory.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.ends_with(".git") {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(self.directory.path()).unwrap().to_string_lossy().replace('\\', "/");
                    tree.insert(name, fs::read_to_string(path).unwrap());
                }
            }
        }
        tree
    }

    async fn address(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Address {
        let kinds = self.cluster.kinds().await.unwrap();
        Address::new(Arc::clone(kinds.preferred(group, kind).unwrap()), namespace, name)
    }

    async fn config_map(&self, name: &str) -> Address {
        self.address("", "ConfigMap", "shop", name).await
    }

    async fn apply(&self, body: Value) -> Written {
        self.try_apply(body, false).await.unwrap()
    }

    async fn try_apply(&self, body: Value, dry_run: bool) -> Result<Written, ClusterError> {
        let object = pushback_objects::ObjectRef::of(&body);
        let address = self.address(&object.group, &object.kind, &object.namespace, &object.name).await;
        self.cluster.apply(&address, &body, ApplyOptions { dry_run, force: true, strict: true }).await
    }

    async fn names(&self, address: &Address, selector: &str) -> Vec<String> {
        let query = ListQuery::new(Arc::clone(&address.kind), None, selector);
        let page = list_all(&self.cluster, &query).await.unwrap();
        page.items.iter().map(|object| object.name().to_owned()).collect()
    }
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"key": value}})
}

fn record(name: &str) -> Value {
    let mut record = config_map(name, "1");
    record["metadata"]["labels"] = json!({"kapp.k14s.io/is-app": "", "team": "x"});
    record
}

const SHARED: &str = "# licence\n\n# one\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: shop} # id\n\
    data:\n  key: \"1\"\n# between\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: two\n  namespace: shop\n\
    data: {key: '2'}\n---\nreplicaCount: 3 # values of a chart\n";

#[tokio::test]
async fn an_object_is_stored_as_its_manifest_in_a_file_of_its_own() {
    let live = Live::new(&[]);
    let body = json!({"kind": "Deployment", "spec": {"z": 1, "a": []}, "apiVersion": "apps/v1",
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7", "managedFields": []}});
    let written = live.apply(body).await;
    assert!(written.created && !written.object.uid().is_empty());
    let text =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  z: 1\n  a: []\n";
    assert_eq!(live.tree(), BTreeMap::from([("shop/deployment.apps_web.yaml".to_owned(), text.to_owned())]));

    let address = live.address("apps", "Deployment", "shop", "web").await;
    let live = live.reopened();
    assert_eq!(live.cluster.get(&address).await.unwrap().unwrap(), written.object);
}

#[tokio::test]
async fn a_write_that_changes_nothing_leaves_every_byte() {
    let stamped =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: three, creationTimestamp: null}\ndata: {key: '1'}\n";
    let live = Live::new(&[("a/shared.yaml", SHARED), ("b.yaml", stamped), ("values.yaml", "a: [1,  2]\n")]);
    let before = live.tree();
    for name in ["one", "two"] {
        let written = live.apply(config_map(name, if name == "one" { "1" } else { "2" })).await;
        assert!(!written.created);
    }
    live.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "three", "namespace": "default"},
        "data": {"key": "1"}}))
        .await;
    let dry = live.try_apply(config_map("one", "dry"), true).await.unwrap();
    assert_eq!(dry.object["data"]["key"], "dry");
    assert!(live.try_apply(config_map("new", "dry"), true).await.unwrap().created);
    assert_eq!(live.tree(), before);
}

#[tokio::test]
async fn updates_and_deletes_keep_everything_around_the_document() {
    let live =
        Live::new(&[("shared.yaml", SHARED), ("notes.txt", "x"), ("kustomization.yaml", "resources: [shared.yaml]\n")]);
    live.apply(config_map("one", "longer\nthan before\n")).await;
    let updated = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n  namespace: shop\ndata:\n  key: |\n    longer\n    than before\n";
    let start = SHARED.find("apiVersion").unwrap();
    let end = SHARED.find("# between").unwrap();
    let expected = SHARED.replace(&SHARED[start..end], updated);
    assert_eq!(live.tree()["shared.yaml"], expected);

    // After an edit in the same file, locations are still correct.
    live.apply(config_map("two", "3")).await;
    let expected = expected.replace(
        "metadata:\n  name: two\n  namespace: shop\ndata: {key: '2'}",
        "metadata:\n  name: two\n  namespace: shop\ndata:\n  key: \"3\"",
    );
    assert_eq!(live.tree()["shared.yaml"], expected);

    let one = live.config_map("one").await;
    let gone = live.cluster.delete(&one, &DeleteOptions::default()).await.unwrap().unwrap();
    assert_eq!(gone.object["data"]["key"], "longer\nthan before\n");
    assert_eq!(live.tree()["shared.yaml"], expected.replace(&format!("# one\n{updated}"), ""));
    assert_eq!(live.cluster.delete(&one, &DeleteOptions::default()).await.unwrap(), None);

    live.apply(config_map("two", "4")).await;
    let two = live.config_map("two").await;
    live.cluster.delete(&two, &DeleteOptions::default()).await.unwrap();
    assert_eq!(live.tree()["shared.yaml"], "# licence\n\n# between\n---\nreplicaCount: 3 # values of a chart\n");
    assert_eq!(live.tree().len(), 3);
}

#[tokio::test]
async fn the_last_document_takes_its_file_and_our_folder_along() {
    let live = Live::new(&[("keep/a.yaml", "# only this\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")]);
    live.apply(config_map("one", "1")).await;
    for address in [live.config_map("one").await, live.address("", "Namespace", "", "shop").await] {
        live.cluster.delete(&address, &DeleteOptions::default()).await.unwrap().unwrap();
    }
    assert!(live.tree().is_empty());
    assert!(!live.directory.path().join("shop").exists() && live.directory.path().join("keep").exists());
}

#[tokio::test]
async fn items_of_a_list_are_objects() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: one, namespace: shop}\n\
        - apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: two, namespace: shop}\n";
    let live = Live::new(&[("list.yaml", text)]);
    let (one, two) = (live.config_map("one").await, live.config_map("two").await);
    live.cluster.delete(&one, &DeleteOptions::default()).await.unwrap().unwrap();
    assert_eq!(live.names(&two, "").await, ["two"]);
    live.apply(config_map("two", "2")).await;
    let live = live.reopened();
    assert_eq!(live.cluster.get(&two).await.unwrap().unwrap()["data"]["key"], "2");
    live.cluster.delete(&two, &DeleteOptions::default()).await.unwrap().unwrap();
    assert!(live.tree().is_empty());
}

#[tokio::test]
async fn a_json_file_stays_json() {
    let live = Live::new(&[("one.json", &config_map("one", "1").to_string())]);
    live.apply(config_map("one", "2")).await;
    let text = &live.tree()["one.json"];
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), config_map("one", "2"));
}

#[tokio::test]
async fn preconditions_are_kept() {
    let live = Live::new(&[("shared.yaml", SHARED)]);
    let address = live.config_map("one").await;
    let read = live.cluster.get(&address).await.unwrap().unwrap();
    let mut update = config_map("one", "2");
    update["metadata"]["resourceVersion"] = read.resource_version().into();
    update["metadata"]["uid"] = read.uid().into();
    let written = live.apply(update.clone()).await;
    assert_ne!(written.object.resource_version(), read.resource_version());
    assert_eq!(live.try_apply(update.clone(), false).await.unwrap_err().kind, ErrorKind::Conflict);

    let stale = DeleteOptions { resource_version: read.resource_version().to_owned(), ..DeleteOptions::default() };
    assert_eq!(live.cluster.delete(&address, &stale).await.unwrap_err().kind, ErrorKind::Conflict);
    let other = DeleteOptions { uid: "other".to_owned(), ..DeleteOptions::default() };
    assert_eq!(live.cluster.delete(&address, &other).await.unwrap_err().kind, ErrorKind::Conflict);
    let same = DeleteOptions { uid: read.uid().to_owned(), ..DeleteOptions::default() };
    assert!(live.cluster.delete(&address, &same).await.unwrap().is_some());
    assert_eq!(live.try_apply(update.clone(), false).await.unwrap_err().kind, ErrorKind::Conflict);
    update["metadata"].as_object_mut().unwrap().remove("uid");
    assert!(live.apply(update).await.created);
}

#[tokio::test]
async fn a_file_that_somebody_else_changed_is_a_conflict_and_then_read_anew() {
    let live = Live::new(&[("shared.yaml", SHARED)]);
    let address = live.config_map("one").await;
    let file = live.directory.path().join("shared.yaml");
    fs::write(&file, SHARED.replace("\"1\"", "edited")).unwrap();
    let error = live.try_apply(config_map("one", "2"), false).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert_eq!(live.cluster.get(&address).await.unwrap().unwrap()["data"]["key"], "edited");
    live.apply(config_map("one", "2")).await;

    fs::create_dir_all(live.directory.path().join("shop")).unwrap();
    fs::write(live.directory.path().join("shop/configmap_new.yaml"), "x: 1\n").unwrap();
    assert_eq!(live.try_apply(config_map("new", "1"), false).await.unwrap_err().kind, ErrorKind::Conflict);
    live.apply(config_map("new", "1")).await;
    assert_eq!(live.tree()["shop/configmap_new.yaml"], "x: 1\n");
    assert!(live.tree().contains_key("shop/configmap_new~2.yaml"));
}

#[tokio::test]
async fn patches_change_the_document_and_honour_the_resource_version() {
    let live = Live::new(&[("shared.yaml", SHARED)]);
    let address = live.config_map("two").await;
    let read = live.cluster.get(&address).await.unwrap().unwrap();
    let merge = |version: &str| {
        Patch::Merge(json!({"metadata": {"resourceVersion": version}, "data": {"key": null, "other": "x"}}))
    };
    live.cluster.patch(&address, &merge(read.resource_version()), true).await.unwrap();
    assert_eq!(live.tree()["shared.yaml"], SHARED);
    let written = live.cluster.patch(&address, &merge(read.resource_version()), false).await.unwrap();
    assert_eq!(written.object["data"], json!({"other": "x"}));
    let error = live.cluster.patch(&address, &merge(read.resource_version()), false).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    let patch = Patch::Json(json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": written.object.resource_version()},
        {"op": "add", "path": "/data/more", "value": "text"},
    ]));
    live.cluster.patch(&address, &patch, false).await.unwrap();
    assert!(
        live.tree()["shared.yaml"].contains("more: text\n") && !live.tree()["shared.yaml"].contains("resourceVersion")
    );
    let rename = Patch::Merge(json!({"metadata": {"name": "three"}}));
    assert_eq!(live.cluster.patch(&address, &rename, false).await.unwrap_err().kind, ErrorKind::Invalid);
    let absent = live.config_map("absent").await;
    assert_eq!(live.cluster.patch(&absent, &rename, false).await.unwrap_err().kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn app_records_live_apart_and_are_listed_by_their_labels_only() {
    let live = Live::new(&[("shared.yaml", SHARED)]);
    let address = live.config_map("app").await;
    assert!(live.cluster.create(&address, &record("app"), false).await.unwrap().created);
    let again = live.cluster.create(&address, &record("app"), false).await.unwrap_err();
    assert_eq!(again.kind, ErrorKind::AlreadyExists);
    assert!(live.tree().contains_key(".pushback/shop/app.yaml"));
    let live = live.reopened();
    assert_eq!(live.names(&address, "").await, ["one", "two"]);
    assert_eq!(live.names(&address, "team=x").await, Vec::<String>::new());
    assert_eq!(live.names(&address, "team=x,kapp.k14s.io/is-app").await, ["app"]);
    assert_eq!(live.names(&address, "kapp.k14s.io/is-app=").await, ["app"]);
    assert!(live.cluster.get(&address).await.unwrap().is_some());
    live.cluster.delete(&address, &DeleteOptions::default()).await.unwrap().unwrap();
    assert!(!live.directory.path().join(".pushback").exists());
}

#[tokio::test]
async fn generated_names_count_on_from_the_highest() {
    let live = Live::new(&[]);
    let nameless = live.config_map("").await;
    let mut body = record("");
    body["metadata"].as_object_mut().unwrap().remove("name");
    body["metadata"]["generateName"] = "app-change-".into();
    let mut names = Vec::new();
    for _ in 0..3 {
        let written = live.cluster.create(&nameless, &body, false).await.unwrap();
        names.push(written.object.name().to_owned());
        if names.len() == 2 {
            let first = live.config_map("app-change-1").await;
            live.cluster.delete(&first, &DeleteOptions::default()).await.unwrap().unwrap();
        }
    }
    assert_eq!(names, ["app-change-1", "app-change-2", "app-change-3"]);
}

#[tokio::test]
async fn a_definition_in_the_folder_makes_its_kind_known_and_decides_its_scope() {
    let custom = "apiVersion: ex.com/v1\nkind: Foo\nmetadata: {name: a}\n---\napiVersion: ex.com/v1\nkind: Foo\nmetadata: {name: b, namespace: n}\n";
    let live = Live::new(&[("custom.yaml", custom)]);
    // Without the CRD, the kind is guessed from its objects.
    assert!(live.cluster.kinds().await.unwrap().preferred("ex.com", "Foo").unwrap().is_guessed());
    let guessed =
        Kind { group: "ex.com".into(), version: "v1".into(), kind: "Foo".into(), namespaced: true, ..Kind::default() };
    let address = Address::new(Arc::new(guessed), "default", "a");
    let before = live.cluster.get(&address).await.unwrap().unwrap();
    assert_eq!(before.namespace(), "default");

    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.com"}, "spec": {"group": "ex.com", "scope": "Namespaced",
            "names": {"kind": "Foo", "plural": "foos"}, "versions": [{"name": "v1", "served": true}]}});
    live.apply(definition.clone()).await;
    let kinds = live.cluster.rediscover("ex.com").await.unwrap();
    assert!(kinds.find("ex.com", "v1", "Foo").unwrap().namespaced);
    assert_eq!(live.cluster.get(&address).await.unwrap().unwrap(), before);
    assert_eq!(live.names(&address, "").await, ["a", "b"]);
    assert!(live.cluster.delete(&address, &DeleteOptions::default()).await.unwrap().is_some());

    let definition_address = live.address("apiextensions.k8s.io", "CustomResourceDefinition", "", "foos.ex.com").await;
    live.cluster.delete(&definition_address, &DeleteOptions::default()).await.unwrap().unwrap();
    // An object is left, so its kind is guessed again.
    assert!(live.cluster.kinds().await.unwrap().preferred("ex.com", "Foo").unwrap().is_guessed());
    let mut cluster_scoped = definition;
    cluster_scoped["spec"]["scope"] = "Cluster".into();
    live.apply(cluster_scoped).await;
    let address = live.address("ex.com", "Foo", "", "b").await;
    assert_eq!(live.cluster.get(&address).await.unwrap().unwrap().namespace(), "");
}

/// Resolving each folder by its whole path took 30 s here.
#[tokio::test]
async fn object_below_900_nested_folders_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let mut path = directory.path().to_owned();
    path.extend(std::iter::repeat_n("d", 900));
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("a.yaml"), config_map("a", "1").to_string()).unwrap();
    let cluster = DirectoryCluster::open(directory.path()).unwrap();
    let kind = Kind {
        version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
        namespaced: true,
        ..Kind::default()
    };
    let query = ListQuery::new(Arc::new(kind), None, "");
    assert_eq!(cluster.list(&query).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn what_cannot_be_read_is_named_with_its_line() {
    let live = Live::new(&[("a.yaml", "x: 1\n---\n\ny: [1\nz: 2\n")]);
    let error = live.cluster.kinds().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Configuration);
    assert!(error.message.contains("a.yaml:"), "{error}");

    let live = Live::new(&[("a.yaml", SHARED), ("b/c.yaml", &SHARED.replace("name: one", "name: other"))]);
    let message = live.cluster.kinds().await.unwrap_err().message;
    let place = |file: &str| format!("{}:11", live.directory.path().join(file).display());
    assert!(message.contains("ConfigMap shop/two is given twice"), "{message}");
    assert!(message.contains(&place("a.yaml")) && message.contains(&place("b/c.yaml")), "{message}");
}

#[tokio::test]
async fn the_status_of_a_document_stays_where_the_manifest_has_none() {
    let live = Live::new(&[]);
    let mut body = config_map("one", "1");
    body["status"] = json!({"storedVersions": ["v1"]});
    live.apply(body).await;
    assert_eq!(live.apply(config_map("one", "2")).await.object["status"]["storedVersions"][0], "v1");
}

#[tokio::test]
async fn what_a_folder_cannot_do_is_said() {
    let live = Live::new(&[]);
    assert_eq!(live.cluster.capabilities(), Capabilities { server: false, writable: true });
    assert_eq!(live.cluster.version().await.unwrap(), None);
    let query = ListQuery::new(Arc::clone(&live.config_map("x").await.kind), None, "");
    assert_eq!(live.cluster.watch(&query, "").await.err().unwrap().kind, ErrorKind::Unsupported);
    let mut status = live.address("apps", "Deployment", "shop", "web").await;
    status.subresource = "status".to_owned();
    assert_eq!(live.cluster.get(&status).await.unwrap_err().kind, ErrorKind::Unsupported);
    let review = live.address("authorization.k8s.io", "SelfSubjectAccessReview", "", "").await;
    assert_eq!(live.cluster.create(&review, &json!({}), true).await.unwrap_err().kind, ErrorKind::Unsupported);
    let address = live.config_map("one").await;
    for body in [
        json!(null),
        json!({}),
        config_map("other", "1"),
        json!({"apiVersion": "apps/v1", "kind": "ConfigMap", "metadata": {"name": "one"}}),
    ] {
        let error = live.cluster.apply(&address, &body, ApplyOptions::default()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
    }
    assert!(live.tree().is_empty());
}

#[tokio::test]
async fn a_git_ref_answers_and_is_never_written() {
    let live = Live::new(&[("live/shared.yaml", SHARED)]);
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--message=one"],
    ] {
        let status =
            std::process::Command::new("git").arg("-C").arg(live.directory.path()).args(arguments).status().unwrap();
        assert!(status.success());
    }
    let address = live.config_map("one").await;
    let git = DirectoryCluster::open_git(live.directory.path(), "main", "live").unwrap();
    assert_eq!((git.description().as_str(), git.capabilities().writable), ("git:main:live", false));
    assert_eq!(git.get(&address).await.unwrap(), live.cluster.get(&address).await.unwrap());
    let dry =
        git.apply(&address, &config_map("one", "2"), ApplyOptions { dry_run: true, ..ApplyOptions::default() }).await;
    assert_eq!(dry.unwrap().object["data"]["key"], "2");
    let before = live.tree();
    let errors = [
        git.apply(&address, &config_map("one", "2"), ApplyOptions::default()).await.unwrap_err(),
        git.create(&address, &config_map("one", "2"), false).await.unwrap_err(),
        git.patch(&address, &Patch::Merge(json!({"data": null})), false).await.unwrap_err(),
        git.delete(&address, &DeleteOptions::default()).await.unwrap_err(),
    ];
    assert!(errors.iter().all(|error| error.kind == ErrorKind::Unsupported), "{errors:?}");
    assert_eq!(live.tree(), before);
    assert!(git.local_lock("shop", "app").await.unwrap().is_none());
}

#[tokio::test]
async fn an_app_has_one_lock_outside_the_folder() {
    let locks = tempfile::tempdir().unwrap();
    let live = Live::new(&[]);
    let open = || DirectoryCluster::open(live.directory.path()).unwrap().with_lock_directory(locks.path());
    let (first, second) = (open(), open());
    let held = first.local_lock("shop", "app").await.unwrap().unwrap();
    assert_eq!(second.local_lock("shop", "app").await.unwrap_err().kind, ErrorKind::Locked);
    assert!(second.local_lock("other", "app").await.is_ok());
    drop(held);
    assert!(second.local_lock("shop", "app").await.is_ok());
    assert!(live.tree().is_empty());
}

/// One step of a random history: the object (see `place`), and its new value or `None` for a delete.
type Step = (usize, Option<String>);

/// Objects of the model test: two share a file with others, and some have names that are difficult for file systems.
const NAMES: [&str; 7] = ["one", "two", "system:node", "aux", "Upper", "upper", "..%2f"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_history_leaves_the_objects_of_a_model(
        steps in prop::collection::vec((0..NAMES.len(), prop::option::weighted(0.7, "[ -~\n#:-]{0,60}")), 1..16)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check_history(steps))?;
    }
}

async fn check_history(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let live = Live::new(&[("shared.yaml", SHARED)]);
    let mut model = BTreeMap::from([("one", "1".to_owned()), ("two", "2".to_owned())]);
    for (which, value) in steps {
        let name = NAMES[which];
        if let Some(value) = value {
            let written = live.apply(config_map(name, &value)).await;
            prop_assert_eq!(written.created, model.insert(name, value).is_none());
        } else {
            let address = live.config_map(name).await;
            let deleted = live.cluster.delete(&address, &DeleteOptions::default()).await.unwrap();
            prop_assert_eq!(deleted.is_some(), model.remove(name).is_some());
        }
    }
    let kind = Arc::clone(&live.config_map("").await.kind);
    let contents = async |cluster: &DirectoryCluster| {
        let page = list_all(cluster, &ListQuery::new(Arc::clone(&kind), Some("shop"), "")).await.unwrap();
        let entry =
            |object: &Arc<Value>| (object.name().to_owned(), object["data"]["key"].as_str().unwrap().to_owned());
        page.items.iter().map(entry).collect::<BTreeMap<_, _>>()
    };
    let expected: BTreeMap<String, String> = model.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    prop_assert_eq!(contents(&live.cluster).await, expected.clone());
    let live = live.reopened();
    prop_assert_eq!(contents(&live.cluster).await, expected);
    prop_assert!(live.tree()["shared.yaml"].ends_with("---\nreplicaCount: 3 # values of a chart\n"));
    Ok(())
}
