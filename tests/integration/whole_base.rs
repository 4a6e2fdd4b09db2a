//! Comparisons without a named app: the base, a folder or a git ref, is the app. What only the base has is deleted, every
//! rule judges the deletion, and equal trees never differ, however they are spelled.

use serde_json::{Value, json};

use crate::support::apply::config_map;
use crate::support::{Pushback, Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: object_that_only_the_base_has_is_deleted_and_judged,
        Nothing: removed_crd_obeys_its_settings,
        Nothing: custom_resource_without_its_crd_is_deleted_too,
        Nothing: config_in_the_base_is_not_an_object_of_the_app,
        Nothing: part_of_the_files_is_compared_with_the_whole_base,
        Nothing: filters_limit_the_deletions,
        Nothing: one_recorded_app_is_found_and_several_must_be_named,
        Nothing: equal_trees_do_not_differ,
        Nothing: spellings_of_a_tree_do_not_differ,
        Nothing: namespace_options_apply_to_both_sides,
        Nothing: object_in_another_served_group_is_the_same_object,
        Nothing: namespace_of_the_base_may_be_removed,
        Nothing: apply_to_a_folder_leaves_equal_secrets_alone,
    ]
}

const CLAIM: &str = "\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
";

const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web:1}]}}
---
";

fn crd(plural: &str) -> String {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": plural.to_uppercase(), "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    format!("{crd}\n---\n")
}

/// What the plan does: `delete Deployment default/web`.
pub(crate) fn planned(ran: &Ran) -> Vec<String> {
    let plans = ran.events_of("plan");
    let [plan] = &plans[..] else { panic!("{} plans: {}{}", plans.len(), ran.stdout, ran.stderr) };
    let changes = plan["changes"].as_array().expect("changes").iter();
    let mut changes: Vec<String> = changes.map(line).collect();
    changes.sort();
    changes
}

fn line(change: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &change["object"];
    let namespace = text(&object["namespace"]);
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{} {} {namespace}{slash}{}", text(&change["operation"]), text(&object["kind"]), text(&object["name"]))
}

/// What `diff` plans between two folders.
fn diff(pushback: &Pushback, options: &[&str]) -> Vec<String> {
    planned(&pushback.run(&[&["diff", "-f", "new", "--cluster", "dir:old", "-o", "json"], options].concat()).expect(0))
}

/// Rule, check and severity of each finding of a check.
fn findings(ran: &Ran) -> Vec<String> {
    let report = ran.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().expect("findings").iter();
    findings.map(|it| format!("{}/{} {}", text(&it["rule"]), text(&it["check"]), text(&it["severity"]))).collect()
}

fn object_that_only_the_base_has_is_deleted_and_judged() {
    let pushback = Pushback::new();
    let kept = config_map("kept", "1");
    pushback.write("old/all.yaml", format!("{CLAIM}{WEB}{kept}")).write("new/all.yaml", &kept);
    let deleted = ["delete Deployment default/web", "delete PersistentVolumeClaim default/data"];
    assert_eq!(diff(&pushback, &[]), deleted);
    let common = ["check", "-f", "new", "--cluster", "dir:old", "-o", "json"];
    let ran = pushback.run(&[&common[..], &["--preflight=DestructiveChange,UpgradeDiff"]].concat()).expect(10);
    let found = findings(&ran);
    assert!(found.contains(&"UpgradeDiff/ResourceRemoved error".to_owned()), "{found:?}");
    assert!(found.contains(&"DestructiveChange/persistentVolumeClaimDeleted error".to_owned()), "{found:?}");
    assert_eq!(ran.json()["changes"]["delete"], 2);
    // A git ref is a base, too.
    pushback.shell("git", &["init", "--quiet", "-b", "main"]);
    pushback.shell("git", &["add", "old"]);
    pushback.shell("git", &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "old"]);
    let ran = pushback.run(&["diff", "-f", "new", "--cluster", "git:main:old", "-o", "json"]).expect(0);
    assert_eq!(planned(&ran), deleted);
    // A Service left behind refers to what is gone.
    let needy = WEB.replace("image: web:1", "image: web:1, envFrom: [{configMapRef: {name: kept}}]");
    pushback.write("old/all.yaml", format!("{needy}{kept}")).write("new/all.yaml", &needy);
    let ran = pushback.run(&[&common[..], &["--preflight=References"]].concat()).expect(10);
    assert_eq!(findings(&ran), ["References/deleted error"]);
}

fn removed_crd_obeys_its_settings() {
    let pushback = Pushback::new();
    pushback.write("old/all.yaml", crd("boxes") + &crd("bags")).write("new/all.yaml", crd("boxes"));
    let check = |checks: Value| {
        let rules = json!([{"name": "CRDUpgradeSafety", "config": {"checks": checks}}]);
        let config = json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": rules});
        pushback.write("config.json", config.to_string());
        let common = ["check", "-f", "new", "--cluster", "dir:old", "-o", "json", "--config", "config.json"];
        let ran = pushback.run(&common);
        (ran.code, findings(&ran))
    };
    let refused = (10, vec!["CRDUpgradeSafety/crdDeletion error".to_owned()]);
    let warned = (0, vec!["CRDUpgradeSafety/crdDeletion warning".to_owned()]);
    assert_eq!(check(json!({})), refused);
    assert_eq!(check(json!({"crdDeletion": "warn"})), warned);
    assert_eq!(check(json!({"crdMissing": "error"})), refused);
    assert_eq!(check(json!({"crdMissing": "warn"})), warned);
}

fn custom_resource_without_its_crd_is_deleted_too() {
    let pushback = Pushback::new();
    let certificate =
        "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: web, namespace: shop}\n---\n";
    let kept = config_map("kept", "1");
    pushback.write("old/all.yaml", format!("{certificate}{kept}")).write("new/all.yaml", &kept);
    assert_eq!(diff(&pushback, &[]), ["delete Certificate shop/web"]);
    // With its kind known from the base, it can be compared.
    pushback.write("new/all.yaml", format!("{}{kept}", certificate.replace("---", "spec: {secretName: a}\n---")));
    assert_eq!(diff(&pushback, &[]), ["update Certificate shop/web"]);
    // A CRD among the manifests knows better.
    let kind = crd("boxes");
    let object = "apiVersion: example.com/v1\nkind: BOXES\nmetadata: {name: a}\n---\n";
    pushback.write("old/all.yaml", object).write("new/all.yaml", format!("{object}{kind}"));
    assert_eq!(diff(&pushback, &[]), ["create CustomResourceDefinition boxes.example.com"]);
}

fn config_in_the_base_is_not_an_object_of_the_app() {
    let pushback = Pushback::new();
    let config = "apiVersion: pushback.dev/v1alpha1\nkind: Config\nmetadata: {name: policy}\n---\n";
    let other = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: arbitrary}\n---\n";
    let kept = config_map("kept", "1");
    pushback.write("old/all.yaml", format!("{config}{other}{kept}")).write("new/all.yaml", &kept);
    assert!(diff(&pushback, &[]).is_empty());
}

fn part_of_the_files_is_compared_with_the_whole_base() {
    let pushback = Pushback::new();
    for side in ["old", "new"] {
        pushback.write(&format!("{side}/a.yaml"), config_map("a", "1"));
        pushback.write(&format!("{side}/b.yaml"), config_map("b", "1"));
    }
    let ran = pushback.run(&["diff", "-f", "new/a.yaml", "--cluster", "dir:old", "-o", "json"]).expect(0);
    assert_eq!(planned(&ran), ["delete ConfigMap default/b"]);
    let ran = pushback.run(&["diff", "-f", "new/a.yaml", "--cluster", "dir:old/a.yaml", "-o", "json"]).expect(0);
    assert!(planned(&ran).is_empty());
}

fn filters_limit_the_deletions() {
    let pushback = Pushback::new();
    let kept = config_map("kept", "1");
    pushback.write("old/all.yaml", format!("{CLAIM}{WEB}{kept}")).write("new/all.yaml", &kept);
    assert_eq!(diff(&pushback, &["--filter-kind", "Deployment,ConfigMap"]), ["delete Deployment default/web"]);
    assert!(diff(&pushback, &["--patch"]).is_empty());
}

fn one_recorded_app_is_found_and_several_must_be_named() {
    let pushback = Pushback::new();
    let apply = |app: &str, objects: &str| {
        pushback.write("in/all.yaml", objects);
        pushback.run(&["apply", "--yes", "-a", app, "-f", "in", "--cluster", "dir:old"]).expect(0);
    };
    let versioned = |name: &str, value: &str| {
        let annotations = "{kapp.k14s.io/versioned: \"\"}";
        let metadata = format!("{{name: {name}, annotations: {annotations}}}");
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\ndata: {{key: \"{value}\"}}\n---\n")
    };
    apply("shop", &(versioned("config", "1") + WEB));
    // As an apply of the app would see it.
    pushback.write("new/all.yaml", versioned("config", "1"));
    assert_eq!(diff(&pushback, &[]), ["delete Deployment default/web"]);
    apply("other", &config_map("one", "1"));
    let ran = pushback.run(&["diff", "-f", "new", "--cluster", "dir:old"]).expect(1);
    insta::assert_snapshot!(ran.complaints(), @"
    error: dir:old holds 2 apps: other (namespace default), shop (namespace default)
    hint: name the one to compare with: -a NAME, and -n NAMESPACE
    ");
    pushback.run(&["check", "-f", "new", "--cluster", "dir:old"]).expect(1);
    let ran = pushback.run(&["diff", "-a", "shop", "-f", "new", "--cluster", "dir:old", "-o", "json"]).expect(0);
    assert!(planned(&ran).contains(&"delete Deployment default/web".to_owned()), "{}", ran.stdout);
}

/// Everything that tools print and people write, and that is read in another form.
const TREE: &str = "\
apiVersion: v1
kind: Secret
metadata: {name: secret, creationTimestamp: null}
stringData: {key: value}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: listed, labels: {}, annotations: null, uid: 1-2-3, resourceVersion: \"7\"}
  data: {}
- apiVersion: v1
  kind: List
  items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: nested}}
---
apiVersion: v1
kind: ConfigMapList
items: [{metadata: {name: typed}, data: {key: value}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: versioned, annotations: {kapp.k14s.io/versioned: \"\"}}
data: {key: value}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nonce, annotations: {kapp.k14s.io/nonce: \"\", kapp.k14s.io/renew-duration: 1h}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: dumped
  labels: {kapp.k14s.io/app: \"123\", kapp.k14s.io/association: v1.abc}
  annotations: {kapp.k14s.io/identity: v1;default//ConfigMap/dumped;v1, kapp.k14s.io/original: \"{}\"}
  managedFields: [{manager: kubectl, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: set}
spec:
  replicas: 1.0
  serviceName: set
  selector: {matchLabels: {app: set}}
  updateStrategy: {}
  template:
    metadata: {labels: {app: set}, creationTimestamp: null}
    spec:
      containers:
      - {name: set, image: set, resources: {}, env: null, ports: [{containerPort: 0x50}]}
      volumes: [{name: v, configMap: {name: versioned}}]
  volumeClaimTemplates:
  - metadata: {name: data, creationTimestamp: null}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
    status: {}
status: {replicas: 3}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: policy}
spec: {podSelector: {}, ingress: [{}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com, creationTimestamp: null}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Box, plural: boxes}
  preserveUnknownFields: false
  conversion: {strategy: None}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, nullable: true, default: null, properties: {size: {type: number, maximum: 1e3}}}}}}}
status: {acceptedNames: {kind: \"\", plural: \"\"}, conditions: [], storedVersions: []}
---
apiVersion: example.com/v1
kind: Box
metadata: {name: box}
spec: {size: 1.50}
---
apiVersion: pushback.dev/v1alpha1
kind: Config
additionalLabels: {team: shop}
";

/// The same objects, in other files, another order and another spelling.
const RESPELLED: &str = "\
{\"apiVersion\": \"example.com/v1\", \"kind\": \"Box\", \"spec\": {\"size\": 1.5}, \"metadata\": {\"name\": \"box\"}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: policy, namespace: default, labels: {}}
spec: {podSelector: {}, ingress: [{}]}
---
apiVersion: v1
data: {key: dmFsdWU=}
kind: Secret
metadata: {name: secret}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: listed}, data: {}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: nested, annotations: {}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: typed}, data: {key: 'value'}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: versioned, annotations: {kapp.k14s.io/versioned: ''}}
data: {key: value}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nonce, annotations: {kapp.k14s.io/nonce: '', kapp.k14s.io/renew-duration: 1h}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: dumped, finalizers: [], ownerReferences: null}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: set}
spec:
  replicas: 1
  serviceName: set
  selector: {matchLabels: {app: set}}
  updateStrategy: {}
  template:
    metadata: {labels: {app: set}}
    spec:
      containers:
      - {name: set, image: set, resources: {}, ports: [{containerPort: 80}]}
      volumes: [{name: v, configMap: {name: versioned}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Box, plural: boxes}
  preserveUnknownFields: false
  conversion: {strategy: None}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, nullable: true, default: null, properties: {size: {type: number, maximum: 1000}}}}}}}
---
apiVersion: pushback.dev/v1alpha1
kind: Config
additionalLabels: {team: shop}
";

/// Compares two folders with all four commands.
fn assert_equal(pushback: &Pushback, old: &str, new: &str) {
    let base = format!("dir:{old}");
    for command in ["diff", "check"] {
        let ran = pushback.run(&[command, "-f", new, "--cluster", &base]).expect(0);
        assert!(ran.stdout.contains("nothing to change"), "{command} {old} {new}: {}", ran.stdout);
    }
    let ran = pushback.run(&["check", "-f", new, "--cluster", &base, "-o", "json"]).expect(0);
    assert_eq!(findings(&ran), Vec::<String>::new());
    let sides = ["--from", old, "--to", new, "--fail-on", "info"];
    for command in ["diff", "diff-crds"] {
        pushback.run(&[&["upgrade", command][..], &sides].concat()).expect(0);
    }
}

fn equal_trees_do_not_differ() {
    let pushback = Pushback::new();
    pushback.write("old/all.yaml", TREE).write("new/all.yaml", TREE);
    pushback.write("again/all.yaml", RESPELLED);
    assert_equal(&pushback, "old", "new");
    assert_equal(&pushback, "again", "again");
}

fn spellings_of_a_tree_do_not_differ() {
    let pushback = Pushback::new();
    pushback.write("old/all.yaml", TREE).write("new/all.yaml", RESPELLED);
    assert_equal(&pushback, "old", "new");
    assert_equal(&pushback, "new", "old");
}

fn namespace_options_apply_to_both_sides() {
    let pushback = Pushback::new();
    let two = config_map("a", "1") + &config_map("b", "1").replace("name: b", "name: b\n  namespace: named");
    pushback.write("old/all.yaml", &two).write("new/all.yaml", &two);
    for options in [&["-n", "shop"][..], &["--into-ns", "shop"], &["--map-ns", "default=shop,named=other"]] {
        let changes = diff(&pushback, options);
        assert!(changes.is_empty(), "{options:?}: {changes:?}");
    }
    pushback.write("new/all.yaml", config_map("b", "1").replace("name: b", "name: b\n  namespace: named"));
    assert_eq!(diff(&pushback, &["-n", "shop"]), ["delete ConfigMap shop/a"]);
}

fn object_in_another_served_group_is_the_same_object() {
    let pushback = Pushback::new();
    let ingress = |version: &str| format!("apiVersion: {version}\nkind: Ingress\nmetadata: {{name: web}}\n");
    pushback.write("old/all.yaml", ingress("extensions/v1beta1"));
    pushback.write("new/all.yaml", ingress("networking.k8s.io/v1"));
    assert_eq!(diff(&pushback, &[]), ["update Ingress default/web"]);
}

fn namespace_of_the_base_may_be_removed() {
    let pushback = Pushback::new();
    let kept = config_map("kept", "1");
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n";
    pushback.write("old/all.yaml", format!("{namespace}{kept}")).write("new/all.yaml", &kept);
    assert_eq!(diff(&pushback, &["-n", "shop"]), ["delete Namespace shop"]);
    // No object of the base has the name of a record that does not exist.
    let check = config_map("check", "1");
    pushback.write("old/all.yaml", &check).write("new/all.yaml", &check);
    assert!(diff(&pushback, &[]).is_empty());
}

fn apply_to_a_folder_leaves_equal_secrets_alone() {
    let pushback = Pushback::new();
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: value}\n";
    pushback.write("live/s.yaml", secret).write("in/s.yaml", secret);
    let apply = ["apply", "--yes", "-a", "shop", "-f", "in", "--cluster", "dir:live"];
    pushback.run(&apply).expect(0);
    assert_eq!(pushback.read("live/s.yaml"), secret);
    pushback.write("in/s.yaml", secret.replace("key: value", "other: value"));
    pushback.run(&apply).expect(0);
    let live = pushback.read("live/s.yaml");
    assert!(live.contains("other") && !live.contains("key") && !live.contains("stringData"), "{live}");
}
