//! A folder of YAML as the cluster: what is written into it reads like the manifests, a repository shows each change
//! as what it is, files of others stay, and a git ref is the old side of a check.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::time::SystemTime;

use serde_json::Value;

use crate::support::pushback::example;
use crate::support::{Pushback, Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: what_is_written_is_the_manifests_and_nothing_is_stamped,
        Nothing: an_apply_without_changes_leaves_every_byte,
        Nothing: a_repository_shows_a_change_as_the_lines_that_changed,
        Nothing: what_is_gone_from_the_input_is_pruned_and_files_of_others_stay,
        Nothing: what_was_removed_by_hand_and_made_anew_by_others_is_theirs,
        Nothing: an_object_that_is_let_go_of_stays_as_it_is,
        Nothing: a_document_between_others_is_changed_and_removed_alone,
        Nothing: deleting_an_app_leaves_what_was_there_before_it,
        Nothing: an_object_of_another_app_is_not_taken,
        Nothing: list_and_inspect_know_the_apps_of_a_folder,
        Nothing: a_check_against_a_git_ref_refuses_a_changed_scope_at_its_line,
        Nothing: a_check_against_a_git_ref_needs_no_record,
        Nothing: a_git_ref_is_not_written,
        Nothing: a_folder_that_cannot_be_written_is_named,
        Nothing: first_apply_beside_another_of_the_app_plans_again,
    ]
}

const APPLY: [&str; 7] = ["apply", "-a", "shop", "-f", "shop", "--cluster", "dir:live"];
const RECORDS: &str = ".pushback/";

/// The example app, as `shop/` of the working directory.
fn shop() -> Pushback {
    let pushback = Pushback::new();
    for name in ["config.yaml", "namespace.yaml", "web.yaml"] {
        let text = std::fs::read_to_string(format!("{}/{name}", example("web-app"))).expect("the example");
        pushback.write(&format!("shop/{name}"), text);
    }
    pushback
}

fn apply(pushback: &Pushback) -> Ran {
    pushback.run(&[&APPLY[..], &["--yes"]].concat())
}

fn edit(pushback: &Pushback, file: &str, old: &str, new: &str) {
    let text = pushback.read(file);
    assert!(text.contains(old), "{file} has no {old:?}");
    pushback.write(file, text.replacen(old, new, 1));
}

fn git(pushback: &Pushback, arguments: &[&str]) -> String {
    pushback.shell("git", arguments)
}

/// Every object in some files, by kind and name; what only the API server's rules differ in is made equal.
fn objects<'a>(files: impl Iterator<Item = &'a String>) -> BTreeMap<String, Value> {
    let mut objects = BTreeMap::new();
    for text in files {
        for mut object in serde_yaml::from_multiple::<Value>(text).expect("YAML") {
            let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
            if object["kind"] == "Secret" {
                // Encoded on the way in; what it says is compared by another test.
                for field in ["data", "stringData"] {
                    object.as_object_mut().expect("a map").remove(field);
                }
            }
            assert!(objects.insert(name, object).is_none());
        }
    }
    objects
}

fn what_is_written_is_the_manifests_and_nothing_is_stamped() {
    let pushback = shop();
    apply(&pushback).expect(0);
    let mut live = pushback.tree("live");
    assert!(live.contains_key(".pushback/default/shop.yaml"));
    live.retain(|file, _| !file.starts_with(RECORDS));
    let files: Vec<&str> = live.keys().map(String::as_str).collect();
    assert_eq!(
        files,
        [
            "_cluster/namespace_shop.yaml",
            "shop/configmap_web-settings.yaml",
            "shop/deployment.apps_web.yaml",
            "shop/secret_web-database.yaml",
            "shop/service_web.yaml",
        ]
    );
    assert_eq!(objects(live.values()), objects(pushback.tree("shop").values()));
    assert!(live.values().all(|text| !text.contains("k14s.io") && !text.contains("pushback")));
    assert!(live["shop/secret_web-database.yaml"].contains("username: c2hvcA=="));
    assert!(!pushback.tree("live").iter().any(|(file, text)| file.starts_with(RECORDS) && text.contains("c2hvcA")));
}

/// Every file with its content and the time of its last change.
fn with_times(pushback: &Pushback) -> BTreeMap<String, (String, SystemTime)> {
    let times = |(file, text): (String, String)| {
        let metadata = pushback.directory().join("live").join(&file).metadata().expect("metadata");
        (file, (text, metadata.modified().expect("a time")))
    };
    pushback.tree("live").into_iter().map(times).collect()
}

fn an_apply_without_changes_leaves_every_byte() {
    let pushback = shop();
    apply(&pushback).expect(0);
    let before = with_times(&pushback);
    let again = pushback.run(&[&APPLY[..], &["--yes", "--output", "json"]].concat()).expect(0);
    let end = again.events().pop().expect("an end");
    assert_eq!((end["type"].as_str(), end["outcome"].as_str()), (Some("run.end"), Some("unchanged")));
    assert_eq!(with_times(&pushback), before);
    pushback.run(&[&APPLY[..], &["--yes", "--apply-exit-status"]].concat()).expect(2);
    // Nothing to confirm either.
    pushback.run(&APPLY).expect(0);
    assert_eq!(with_times(&pushback), before);
}

fn a_repository_shows_a_change_as_the_lines_that_changed() {
    let pushback = shop();
    apply(&pushback).expect(0);
    pushback.commit();
    edit(&pushback, "shop/web.yaml", "replicas: 2", "replicas: 3");
    edit(&pushback, "shop/web.yaml", "web:1.4.0", "web:1.5.0");
    let change = &["--yes", "--apply-exit-status"];
    pushback.run(&[&APPLY[..], change].concat()).expect(3);

    let changed = git(&pushback, &["diff", "--name-only", "--", "live"]);
    let changed: Vec<&str> = changed.lines().filter(|file| !file.starts_with("live/.pushback/")).collect();
    assert_eq!(changed, ["live/shop/deployment.apps_web.yaml"]);
    let diff = git(&pushback, &["diff", "--unified=0", "--", "live/shop"]);
    let lines: Vec<&str> = diff.lines().skip_while(|line| !line.starts_with("@@")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    @@ -10 +10 @@ spec:
    -  replicas: 2
    +  replicas: 3
    @@ -26 +26 @@ spec:
    -        image: registry.example/shop/web:1.4.0
    +        image: registry.example/shop/web:1.5.0
    ");
    assert!(git(&pushback, &["diff", "--check", "--", "live"]).is_empty());
}

fn what_is_gone_from_the_input_is_pruned_and_files_of_others_stay() {
    let pushback = shop();
    let foreign = [
        (
            "live/shop/of-others.yaml",
            "# Ours.\napiVersion: v1\nkind:   ConfigMap\nmetadata: {name: o, namespace: shop}\n",
        ),
        ("live/shop/README.md", "not a manifest\n"),
        ("live/values.yaml", "replicas: 3 # no object\n"),
        ("live/.hidden/x.yaml", "a: [1\n"),
    ];
    for (file, text) in foreign {
        pushback.write(file, text);
    }
    apply(&pushback).expect(0);
    let text = pushback.read("shop/web.yaml");
    let (deployment, _service) = text.split_once("---\n").expect("two documents");
    pushback.write("shop/web.yaml", deployment);

    pushback.run(&[&APPLY[..], &["--yes", "--patch"]].concat()).expect(0);
    assert!(pushback.tree("live").contains_key("shop/service_web.yaml"));
    let pruned = apply(&pushback).expect(0);
    insta::assert_snapshot!(pruned.data(), @"
      - delete
          Service  shop/web

    Plan: 1 to delete, 4 unchanged.
    Preflight  4 rules passed, 3 skipped
      skipped: StoredVersions, PermissionValidation, PodAdmission (needs an API server, and dir:live is
        none)
    ");
    assert!(!pushback.tree("live").contains_key("shop/service_web.yaml"));
    assert!(pushback.tree("live").contains_key("shop/deployment.apps_web.yaml"));
    for (file, text) in foreign {
        assert_eq!(pushback.read(file), text, "{file}");
    }
}

fn what_was_removed_by_hand_and_made_anew_by_others_is_theirs() {
    let pushback = shop();
    apply(&pushback).expect(0);
    let settings = "live/shop/configmap_web-settings.yaml";
    std::fs::remove_file(pushback.directory().join(settings)).expect("a file");
    pushback.write("shop/config.yaml", "# nothing any more\n");
    apply(&pushback).expect(0);
    pushback.write(settings, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-settings, namespace: shop}\n");
    let foreign = pushback.read(settings);
    apply(&pushback).expect(0);
    assert_eq!(pushback.read(settings), foreign);
}

fn an_object_that_is_let_go_of_stays_as_it_is() {
    let pushback = Pushback::new();
    let orphan = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: orphan\n  namespace: shop\n  \
                  annotations: {kapp.k14s.io/delete-strategy: orphan}\n";
    pushback.write("shop/orphan.yaml", orphan).write("shop/other.yaml", orphan.replace("name: orphan", "name: other"));
    apply(&pushback).expect(0);
    let before = pushback.read("live/shop/configmap_orphan.yaml");
    std::fs::remove_file(pushback.directory().join("shop/orphan.yaml")).expect("a file");
    let released = apply(&pushback).expect(0);
    assert!(released.stdout.contains("note: stays, and no longer belongs to the app\n"), "{}", released.stdout);
    assert_eq!(pushback.read("live/shop/configmap_orphan.yaml"), before);
    pushback.run(&["delete", "-a", "shop", "--cluster", "dir:live", "--yes"]).expect(0);
    assert_eq!(pushback.read("live/shop/configmap_orphan.yaml"), before);
}

fn a_document_between_others_is_changed_and_removed_alone() {
    let pushback = Pushback::new();
    let settings =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  namespace: shop\ndata:\n  level: info\n";
    let before = "# Everything of the shop.\n---\n# not ours\napiVersion: v1\nkind: ConfigMap\n\
                  metadata: {name: before, namespace: shop}\n---\n# ours\n";
    let after =
        "# end of ours\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: after, namespace: shop} # not ours\n";
    pushback.write("live/all.yaml", format!("{before}{settings}{after}"));
    pushback.write("shop/settings.yaml", settings).write("shop/other.yaml", settings.replace("settings", "other"));
    apply(&pushback).expect(0);
    assert_eq!(pushback.read("live/all.yaml"), format!("{before}{settings}{after}"));

    edit(&pushback, "shop/settings.yaml", "level: info", "level: debug");
    apply(&pushback).expect(0);
    let changed = settings.replace("info", "debug");
    assert_eq!(pushback.read("live/all.yaml"), format!("{before}{changed}{after}"));

    std::fs::remove_file(pushback.directory().join("shop/settings.yaml")).expect("a file");
    apply(&pushback).expect(0);
    let rest = pushback.read("live/all.yaml");
    assert!(!rest.contains("settings"), "{rest}");
    for kept in ["# Everything of the shop.\n---\n# not ours\n", "{name: before, namespace: shop}\n", "# not ours\n"] {
        assert!(rest.contains(kept), "{rest}");
    }
    assert!(rest.ends_with("metadata: {name: after, namespace: shop} # not ours\n"), "{rest}");
}

fn deleting_an_app_leaves_what_was_there_before_it() {
    let pushback = shop();
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: shop}\n";
    pushback.write("live/shop/other.yaml", other).write("live/notes.txt", "mine");
    let before = pushback.tree("live");
    apply(&pushback).expect(0);
    assert_ne!(pushback.tree("live"), before);
    pushback.run(&["delete", "-a", "shop", "--cluster", "dir:live", "--yes"]).expect(0);
    assert_eq!(pushback.tree("live"), before);
    let again = pushback.run(&["delete", "-a", "shop", "--cluster", "dir:live", "--yes"]).expect(0);
    assert!(again.stderr.contains("app shop does not exist in namespace default"), "{}", again.stderr);
}

fn an_object_of_another_app_is_not_taken() {
    let pushback = shop();
    apply(&pushback).expect(0);
    let before = pushback.tree("live");
    pushback.write("thief.yaml", pushback.read("shop/config.yaml").replace("currency: EUR", "currency: USD"));
    let thief = ["apply", "-a", "thief", "-f", "thief.yaml", "--cluster", "dir:live", "--yes"];
    let refused = pushback.run(&thief).expect(1);
    insta::assert_snapshot!(refused.complaints(), @"
    error: thief.yaml:1:1: ConfigMap shop/web-settings is already associated with a different app 'shop' namespace: default
      thief.yaml:13:1: Secret shop/web-database is already associated with a different app 'shop' namespace: default
    Stopped: nothing was written.
    hint: remove it from one of the two apps, or take it over with --dangerous-override-ownership-of-existing-resources
    ");
    assert_eq!(pushback.tree("live"), before);
    pushback.run(&[&thief[..], &["--dangerous-override-ownership-of-existing-resources"]].concat()).expect(0);
    assert!(pushback.read("live/shop/configmap_web-settings.yaml").contains("currency: USD"));

    // Now both records list it: the first app lets go of it, and does not delete it.
    apply(&pushback).expect(1);
    pushback.write("shop/config.yaml", "# moved to another app\n");
    let taken = pushback.tree("live");
    let ended = pushback.run(&[&APPLY[..], &["--output", "json"]].concat()).expect(0).events().pop().expect("an end");
    assert_eq!(ended["outcome"], "unchanged");
    let without_records = |mut tree: BTreeMap<String, String>| {
        tree.retain(|file, _| !file.starts_with(RECORDS));
        tree
    };
    assert_eq!(without_records(pushback.tree("live")), without_records(taken));
    pushback.run(&thief).expect(0);
}

fn list_and_inspect_know_the_apps_of_a_folder() {
    let pushback = shop();
    let empty = pushback.run(&["list", "--cluster", "dir:live"]).expect(0);
    assert_eq!((empty.stdout.as_str(), empty.stderr.as_str()), ("no apps\n", ""));
    apply(&pushback).expect(0);
    let list = pushback.run(&["list", "-A", "--cluster", "dir:live"]).expect(0);
    insta::assert_snapshot!(list.stdout, @"
    NAMESPACE  NAME  NAMESPACES      LAST CHANGE  AT
    default    shop  (cluster),shop  succeeded    -
    ");
    let inspect = pushback.run(&["inspect", "-a", "shop", "--cluster", "dir:live"]).expect(0);
    insta::assert_snapshot!(inspect.stdout, @"
    App shop in namespace default
    NAMESPACE  NAME          KIND        OWNER  STATE  AGE  MESSAGE
    shop       web-settings  ConfigMap   app    -      -    -
    (cluster)  shop          Namespace   app    -      -    -
    shop       web-database  Secret      app    -      -    -
    shop       web           Service     app    -      -    -
    shop       web           Deployment  app    -      -    -
    ");
    let absent = pushback.run(&["inspect", "-a", "shopp", "--cluster", "dir:live"]).expect(1);
    assert_eq!(
        absent.stderr,
        "error: app shopp does not exist in namespace default; did you mean shop?\nhint: `pushback list -A` shows all apps\n"
    );
}

/// A repository with the example operator, rendered into `live/` and committed; its definition's scope is changed.
fn operator_with_a_changed_scope() -> Pushback {
    let pushback = Pushback::new();
    for name in ["backup.yaml", "crd.yaml", "operator.yaml"] {
        let text = std::fs::read_to_string(format!("{}/{name}", example("operator"))).expect("the example");
        pushback.write(&format!("deploy/{name}"), text);
    }
    pushback.run(&["apply", "-a", "operator", "-f", "deploy", "--cluster", "dir:live", "--yes"]).expect(0);
    pushback.commit();
    edit(&pushback, "deploy/crd.yaml", "scope: Namespaced", "scope: Cluster");
    pushback
}

fn a_check_against_a_git_ref_refuses_a_changed_scope_at_its_line() {
    let pushback = operator_with_a_changed_scope();
    // What stands in the working tree is not the old side.
    std::fs::remove_dir_all(pushback.directory().join("live")).expect("a folder");
    let check = ["check", "-a", "operator", "-f", "deploy", "--cluster", "git:HEAD:live"];
    let refused = pushback.run(&check).expect(10);
    insta::assert_snapshot!(refused.data(), @r#"
      + create
          Backup.backup.example.com  nightly                     deploy/backup.yaml:1
      ~ update
          CustomResourceDefinition   backups.backup.example.com  deploy/crd.yaml:1
            spec.scope  Namespaced -> Cluster
      - delete
          Backup.backup.example.com  backup-system/nightly

    Plan: 1 to create, 1 to update, 1 to delete, 7 unchanged.

    error[CRDUpgradeSafety/scope]: scope changed from "Namespaced" to "Cluster"
     --> deploy/crd.yaml:7:3
      |
    5 | spec:
    6 |   group: backup.example.com
    7 |   scope: Cluster
      |   ^^^^^^^^^^^^^^ "Namespaced" -> "Cluster"
      = object:  CustomResourceDefinition backups.backup.example.com
      = path:    spec.scope
      = effect:  unreadable
      = live:    0 of 1 object affected
      = fix:     define a new kind beside this one and move the objects to it
      = fingerprint: c4fd9a54234b55bb61f44f16e65715b0

    Preflight  CRDUpgradeSafety failed (1 breaking), 3 rules passed, 3 skipped
      skipped: StoredVersions, PermissionValidation, PodAdmission (needs an API server, and
        git:HEAD:live is none)
    "#);

    let refused = pushback.run(&[&check[..], &["--output", "json"]].concat()).expect(10);
    let report: Value = serde_json::from_str(&refused.stdout).expect("a report");
    let findings = report["findings"].as_array().expect("findings");
    let places: Vec<(&Value, &Value, &Value)> = findings
        .iter()
        .map(|finding| (&finding["check"], &finding["position"]["file"], &finding["position"]["line"]))
        .collect();
    let line = pushback.read("deploy/crd.yaml").lines().position(|line| line.contains("scope:")).expect("a scope") + 1;
    assert_eq!(places, [(&"scope".into(), &"deploy/crd.yaml".into(), &line.into())]);
    assert_eq!((&report["outcome"], &report["cluster"]), (&"refused".into(), &"git:HEAD:live".into()));

    edit(&pushback, "deploy/crd.yaml", "scope: Cluster", "scope: Namespaced");
    let passed = pushback.run(&check).expect(0);
    assert!(passed.stdout.starts_with("Plan: nothing to change, 9 unchanged."), "{}", passed.stdout);
}

/// A pull request of a repository that holds plain manifests: nobody has ever applied them from there.
fn a_check_against_a_git_ref_needs_no_record() {
    let pushback = operator_with_a_changed_scope();
    let check = ["check", "-a", "operator", "-f", "deploy", "--cluster", "git:main:deploy"];
    let refused = pushback.run(&check).expect(10);
    assert!(refused.stdout.contains(" --> deploy/crd.yaml:7:3\n"), "{}", refused.stdout);
    // The other folder holds the same objects again.
    let twice = pushback.run(&["check", "-a", "operator", "-f", "deploy", "--cluster", "git:main"]).expect(1);
    insta::assert_snapshot!(twice.complaints(), @"error: ClusterRole backup-operator is given twice: in main:deploy/operator.yaml:12 and in main:live/_cluster/clusterrole.rbac.authorization.k8s.io_backup-operator.yaml:1; keep one of them");
}

fn a_git_ref_is_not_written() {
    let pushback = operator_with_a_changed_scope();
    let head = git(&pushback, &["rev-parse", "HEAD"]);
    let before = pushback.tree(".");
    let apply = ["apply", "-a", "operator", "-f", "deploy", "--cluster", "git:HEAD:live", "--yes"];
    let refused = pushback.run(&apply).expect(1);
    insta::assert_snapshot!(refused.complaints(), @"
    error: git:HEAD:live is read only
    Stopped: nothing was written.
    hint: `pushback check` and `pushback diff` answer from it; to write, name a folder: --cluster dir:PATH
    ");
    let refused = pushback.run(&["delete", "-a", "operator", "--cluster", "git:HEAD:live", "--yes"]).expect(1);
    insta::assert_snapshot!(refused.complaints(), @"
    error: git:HEAD:live is read only
    Stopped: nothing was written.
    hint: `pushback check` and `pushback diff` answer from it; to write, name a folder: --cluster dir:PATH
    ");
    assert_eq!(pushback.tree("."), before);
    assert_eq!(git(&pushback, &["rev-parse", "HEAD"]), head);
    // What writes nothing is answered.
    pushback.run(&[&apply[..], &["--diff-run"]].concat()).expect(0);
}

fn a_folder_that_cannot_be_written_is_named() {
    let pushback = shop();
    std::fs::create_dir(pushback.directory().join("live")).expect("a folder");
    let mut permissions = std::fs::metadata(pushback.directory().join("live")).expect("metadata").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(pushback.directory().join("live"), permissions).expect("permissions");
    // The superuser may write everywhere, unless that capability is given up.
    let root = std::fs::write(pushback.directory().join("live/probe"), "").is_ok();
    let _ = std::fs::remove_file(pushback.directory().join("live/probe"));
    let refused = if root {
        pushback.run_behind(&["setpriv", "--bounding-set=-dac_override"], &[&APPLY[..], &["--yes"]].concat())
    } else {
        apply(&pushback)
    };
    let refused = refused.expect(13);
    insta::assert_snapshot!(refused.complaints(), @"
    error: failed to create the app's record: live/.pushback/default/shop.yaml: cannot be written: permission denied
    Stopped: nothing was written.
    hint: ask for the permission, or use a user that has it
    ");
    assert!(pushback.tree("live").is_empty());
}

/// The other run is made by a rule of the first one, so it comes between its plan and its writes.
fn first_apply_beside_another_of_the_app_plans_again() {
    let pushback = shop();
    std::fs::create_dir(pushback.directory().join("live")).expect("a folder");
    let program = format!(
        "#!/bin/sh\ncd {}\nif mkdir once 2>/dev/null; then HOME=. {} {} --yes > other 2>&1; fi\n\
         echo '{{\"apiVersion\":\"rules.pushback.dev/v1\",\"kind\":\"RuleResponse\",\"findings\":[]}}'\n",
        pushback.directory().display(),
        env!("CARGO_BIN_EXE_pushback"),
        APPLY.join(" "),
    );
    pushback.write("program", program);
    let path = pushback.directory().join("program");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    pushback.write(
        "policy.yaml",
        format!(
            "apiVersion: pushback.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: Outside\n  exec: \
             {{command: [{}], timeout: 60s, memory: 1024}}\n",
            path.display()
        ),
    );
    let ran = pushback.run(&[&APPLY[..], &["--yes", "--config", "policy.yaml", "-o", "json"]].concat()).expect(0);
    assert!(pushback.read("other").contains("created"), "{}", pushback.read("other"));
    assert!(ran.events().iter().any(|event| event["code"] == "plan-again"), "{}", ran.stdout);
}
