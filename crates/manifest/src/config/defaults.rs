//! The rules that apply without any Config: order, labels, selectors and masks, as in kapp.
//! Source: kapp's built-in Config (`pkg/kapp/config/default.go`); deliberate differences are noted.
//!
//! There are no rebase rules: server-side apply leaves other managers' fields alone, which is the purpose of kapp's
//! rules. There are no wait rules and no preflight rules either.

mod template_rules;

use super::{ChangeGroupBinding, ChangeRuleBinding, Config, LabelScopingRule, Matcher, Path, PathPart, PathRule};

/// An object with this annotation is excluded from the groups and rules below.
const DISABLE_ORDER: &str = "kapp.k14s.io/disable-default-change-group-and-rules";
const DISABLE_OWNERSHIP_LABELS: &str = "kapp.k14s.io/disable-default-ownership-label-rules";
/// The second is the older spelling of the first.
const DISABLE_LABEL_SCOPING: [&str; 2] =
    ["kapp.k14s.io/disable-default-label-scoping-rules", "kapp.k14s.io/disable-label-scoping"];

const RBAC: &str = "rbac.authorization.k8s.io";

/// Kinds are matched in any API version: kapp's lists of versions have become outdated more than once.
type GroupKinds = &'static [(&'static str, &'static str)];

const CRDS: GroupKinds = &[("apiextensions.k8s.io", "CustomResourceDefinition")];
const NAMESPACES: GroupKinds = &[("", "Namespace")];
/// kapp matches the group `storage`, which no server has, so its group of storage classes is always empty.
const STORAGE_CLASSES: GroupKinds = &[("storage.k8s.io", "StorageClass")];
const STORAGE: GroupKinds = &[("", "PersistentVolume"), ("", "PersistentVolumeClaim")];
const ROLES: GroupKinds = &[(RBAC, "ClusterRole"), (RBAC, "Role")];
const ROLE_BINDINGS: GroupKinds = &[(RBAC, "ClusterRoleBinding"), (RBAC, "RoleBinding")];
const SERVICE_ACCOUNTS: GroupKinds = &[("", "ServiceAccount")];
const APPS: GroupKinds = &[("kappctrl.k14s.io", "App")];
const PACKAGE_INSTALLS: GroupKinds = &[("packaging.carvel.dev", "PackageInstall")];
/// What Pods read when they start. Services are left out: a load balancer that is slow to start would delay everything.
/// Unlike in kapp, PodDisruptionBudget in `policy/v1` is included.
const POD_RELATED: GroupKinds = &[
    ("extensions", "NetworkPolicy"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("", "ResourceQuota"),
    ("", "LimitRange"),
    ("extensions", "PodSecurityPolicy"),
    ("policy", "PodSecurityPolicy"),
    ("policy", "PodDisruptionBudget"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("node.k8s.io", "RuntimeClass"),
    ("", "ServiceAccount"),
    ("", "Secret"),
    ("", "ConfigMap"),
];
const POD_TEMPLATES: GroupKinds = &[
    ("apps", "Deployment"),
    ("extensions", "Deployment"),
    ("apps", "ReplicaSet"),
    ("extensions", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("extensions", "DaemonSet"),
    ("batch", "Job"),
];

/// The built-in rules.
#[must_use]
pub fn defaults() -> Config {
    let of_secrets = ["data", "stringData"]
        .map(|field| PathRule { path: path(&[field]), matchers: kinds(&[("", "Secret")]) })
        .to_vec();
    Config {
        change_group_bindings: change_group_bindings(),
        change_rule_bindings: change_rule_bindings(),
        diff_mask_rules: of_secrets.clone(),
        policy_mask_rules: of_secrets,
        ownership_label_rules: ownership_label_rules(),
        label_scoping_rules: label_scoping_rules(),
        template_rules: template_rules::template_rules(),
        ..Config::default()
    }
}

fn change_group_bindings() -> Vec<ChangeGroupBinding> {
    let bindings: [(&str, &[GroupKinds]); 15] = [
        ("crds", &[CRDS]),
        ("crds-{crd-group}-{crd-kind}", &[CRDS]),
        ("namespaces", &[NAMESPACES]),
        ("namespaces-{name}", &[NAMESPACES]),
        ("storage-class", &[STORAGE_CLASSES]),
        ("storage", &[STORAGE]),
        ("rbac-roles", &[ROLES]),
        ("rbac-role-bindings", &[ROLE_BINDINGS]),
        ("rbac", &[ROLES, ROLE_BINDINGS]),
        ("pod-related", &[POD_RELATED]),
        ("serviceaccount", &[SERVICE_ACCOUNTS]),
        // kapp releases use either name for these two; manifests may refer to both.
        ("appcr", &[APPS]),
        ("packageinstall", &[PACKAGE_INSTALLS]),
        ("kapp-controller-app", &[APPS]),
        ("kapp-controller-packageinstall", &[PACKAGE_INSTALLS]),
    ];
    bindings
        .into_iter()
        .map(|(name, members)| ChangeGroupBinding {
            name: group(name),
            matchers: unless(&[DISABLE_ORDER], vec![any(members)]),
            position: None,
        })
        .collect()
}

fn change_rule_bindings() -> Vec<ChangeRuleBinding> {
    let namespaced = || Matcher::HasNamespace { names: Vec::new() };
    let bind = |rules: &[(&str, &str)], ignore_if_cyclical: bool, conditions: Vec<Matcher>| ChangeRuleBinding {
        rules: rules.iter().map(|(order, name)| format!("{order} {}", group(name))).collect(),
        ignore_if_cyclical,
        matchers: unless(&[DISABLE_ORDER], conditions),
        position: None,
    };
    vec![
        bind(&[("upsert after upserting", "crds-{api-group}-{kind}")], false, vec![Matcher::CustomResource]),
        // Custom resources are deleted before their definitions, so that each deletion is observed.
        bind(&[("delete before deleting", "crds")], true, vec![Matcher::CustomResource]),
        // Everything else is deleted last: conversion webhooks must respond while custom resources are deleted.
        bind(&[("delete after deleting", "crds")], true, vec![not(Matcher::CustomResource), not(any(&[CRDS]))]),
        bind(&[("upsert after upserting", "namespaces-{namespace}")], false, vec![namespaced()]),
        bind(
            &[("delete before deleting", "namespaces-{namespace}")],
            true,
            vec![any(&[SERVICE_ACCOUNTS]), namespaced()],
        ),
        bind(&[("upsert after upserting", "rbac-roles")], true, vec![any(&[ROLE_BINDINGS])]),
        // What kapp-controller deploys acts as these accounts, also on deletion.
        bind(
            &[
                ("upsert before upserting", "packageinstall"),
                ("upsert before upserting", "appcr"),
                ("delete after deleting", "packageinstall"),
                ("delete after deleting", "appcr"),
            ],
            true,
            vec![any(&[SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS])],
        ),
        bind(&[("upsert after upserting", "storage-class")], true, vec![any(&[STORAGE])]),
        // Programs that read their configuration once must find it, and Pods that need permissions must have them.
        bind(
            &[
                ("upsert after upserting", "pod-related"),
                ("upsert after upserting", "rbac"),
                ("upsert after upserting", "storage-class"),
                ("upsert after upserting", "storage"),
            ],
            true,
            vec![not(any(&[STORAGE_CLASSES, STORAGE, ROLES, ROLE_BINDINGS, POD_RELATED])), namespaced()],
        ),
    ]
}

fn ownership_label_rules() -> Vec<PathRule> {
    let template = |parts: &[&str], members: GroupKinds| PathRule {
        path: path(parts),
        matchers: unless(&[DISABLE_OWNERSHIP_LABELS], vec![any(&[members])]),
    };
    vec![
        PathRule { path: path(&["metadata", "labels"]), matchers: vec![Matcher::All] },
        template(&["spec", "template", "metadata", "labels"], POD_TEMPLATES),
        template(&["spec", "volumeClaimTemplates", "*", "metadata", "labels"], &[("apps", "StatefulSet")]),
        template(&["spec", "jobTemplate", "spec", "template", "metadata", "labels"], &[("batch", "CronJob")]),
    ]
}

/// PodDisruptionBudgets are scoped only in `policy/v1beta1`, as in kapp.
fn label_scoping_rules() -> Vec<LabelScopingRule> {
    let rule = |parts: &[&str], matcher: Matcher| LabelScopingRule {
        path: path(parts),
        is_default: true,
        matchers: unless(&DISABLE_LABEL_SCOPING, vec![matcher]),
    };
    let budget =
        Matcher::ApiVersionKind { api_version: "policy/v1beta1".to_owned(), kind: "PodDisruptionBudget".to_owned() };
    vec![
        rule(&["spec", "selector"], any(&[&[("", "Service")]])),
        rule(&["spec", "selector", "matchLabels"], any(&[POD_TEMPLATES])),
        rule(&["spec", "selector", "matchLabels"], budget),
    ]
}

fn group(name: &str) -> String {
    format!("change-groups.kapp.k14s.io/{name}")
}

/// Builds a path; `*` means all elements of an array.
fn path(parts: &[&str]) -> Path {
    parts
        .iter()
        .map(|part| if *part == "*" { PathPart::AllIndexes } else { PathPart::Key((*part).to_owned()) })
        .collect()
}

fn kinds(members: &[(&str, &str)]) -> Vec<Matcher> {
    members
        .iter()
        .map(|(api_group, kind)| Matcher::ApiGroupKind { api_group: (*api_group).to_owned(), kind: (*kind).to_owned() })
        .collect()
}

fn any(members: &[GroupKinds]) -> Matcher {
    Matcher::Any(members.iter().flat_map(|members| kinds(members)).collect())
}

fn not(matcher: Matcher) -> Matcher {
    Matcher::Not(Box::new(matcher))
}

/// All conditions, and none of the annotations.
fn unless(annotations: &[&str], mut conditions: Vec<Matcher>) -> Vec<Matcher> {
    // The conditions first: they are cheap and usually false.
    conditions.extend(
        annotations.iter().map(|annotation| not(Matcher::HasAnnotation { keys: vec![(*annotation).to_owned()] })),
    );
    vec![Matcher::And(conditions)]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::matcher::matches_any;
    use crate::config::ordering::{expand, parse_rule};

    /// The groups and rules of an object, without the common prefix.
    fn order(object: &Value) -> (Vec<String>, Vec<String>) {
        let config = defaults();
        let short = |name: &str| expand(name, object).expect("it is valid").replace("change-groups.kapp.k14s.io/", "");
        let groups = config.change_group_bindings.iter().filter(|binding| matches_any(&binding.matchers, object));
        let rules = config.change_rule_bindings.iter().filter(|binding| matches_any(&binding.matchers, object));
        (
            groups.map(|binding| short(&binding.name)).collect(),
            rules
                .flat_map(|binding| {
                    binding.rules.iter().map(|rule| {
                        let soft = if binding.ignore_if_cyclical { "" } else { "!" };
                        format!("{}{soft}", short(rule))
                    })
                })
                .collect(),
        )
    }

    fn object(api_version: &str, kind: &str, namespace: &str) -> Value {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}});
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        object
    }

    const AFTER_CONFIGURATION: [&str; 4] = [
        "upsert after upserting pod-related",
        "upsert after upserting rbac",
        "upsert after upserting storage-class",
        "upsert after upserting storage",
    ];

    #[test]
    fn custom_resources_wait_for_their_definition_and_namespace() {
        let mut crd = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "");
        crd["spec"] = json!({"group": "ex.com", "names": {"kind": "Foo"}});
        assert_eq!(order(&crd), (vec!["crds".to_owned(), "crds-ex.com-Foo".to_owned()], vec![]));

        let (groups, rules) = order(&object("ex.com/v1", "Foo", "shop"));
        assert!(groups.is_empty());
        let mut expected = vec![
            "upsert after upserting crds-ex.com-Foo!",
            "delete before deleting crds",
            "upsert after upserting namespaces-shop!",
        ];
        expected.extend(AFTER_CONFIGURATION);
        assert_eq!(rules, expected);
    }

    #[test]
    fn namespaces_come_first_and_workloads_after_what_they_read() {
        let (groups, rules) = order(&object("v1", "Namespace", ""));
        assert_eq!(groups, ["namespaces", "namespaces-it"]);
        assert_eq!(rules, ["delete after deleting crds"]);

        let (groups, rules) = order(&object("apps/v1", "Deployment", "shop"));
        assert!(groups.is_empty());
        let mut expected = vec!["delete after deleting crds", "upsert after upserting namespaces-shop!"];
        expected.extend(AFTER_CONFIGURATION);
        assert_eq!(rules, expected);

        let (groups, rules) = order(&object("v1", "ConfigMap", "shop"));
        assert_eq!(groups, ["pod-related"]);
        assert_eq!(rules, ["delete after deleting crds", "upsert after upserting namespaces-shop!"]);
    }

    #[test]
    fn accounts_and_permissions_are_there_for_kapp_controller() {
        let (groups, rules) = order(&object("v1", "ServiceAccount", "shop"));
        assert_eq!(groups, ["pod-related", "serviceaccount"]);
        assert_eq!(
            rules,
            [
                "delete after deleting crds",
                "upsert after upserting namespaces-shop!",
                "delete before deleting namespaces-shop",
                "upsert before upserting packageinstall",
                "upsert before upserting appcr",
                "delete after deleting packageinstall",
                "delete after deleting appcr",
            ]
        );
        let (groups, rules) = order(&object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", ""));
        assert_eq!(groups, ["rbac-role-bindings", "rbac"]);
        assert_eq!(rules[..2], ["delete after deleting crds", "upsert after upserting rbac-roles"]);
        assert_eq!(order(&object("kappctrl.k14s.io/v1alpha1", "App", "shop")).0, ["appcr", "kapp-controller-app"]);
    }

    #[test]
    fn storage_waits_for_its_class_and_budgets_come_before_pods() {
        assert_eq!(order(&object("storage.k8s.io/v1", "StorageClass", "")).0, ["storage-class"]);
        let (groups, rules) = order(&object("v1", "PersistentVolumeClaim", "shop"));
        assert_eq!(groups, ["storage"]);
        assert_eq!(rules.last().expect("it is valid"), "upsert after upserting storage-class");
        assert_eq!(order(&object("policy/v1", "PodDisruptionBudget", "shop")).0, ["pod-related"]);
        assert!(order(&object("v1", "Service", "shop")).0.is_empty());
    }

    #[test]
    fn an_annotation_takes_an_object_out_of_the_default_order() {
        let mut claim = object("ex.com/v1", "Foo", "shop");
        claim["metadata"]["annotations"] = json!({DISABLE_ORDER: ""});
        assert_eq!(order(&claim), (vec![], vec![]));
    }

    #[test]
    fn every_built_in_group_and_rule_is_well_formed() {
        let config = defaults();
        for binding in &config.change_group_bindings {
            assert_eq!(crate::config::ordering::check_group(&binding.name), Ok(()));
        }
        for rule in config.change_rule_bindings.iter().flat_map(|binding| &binding.rules) {
            let target = parse_rule(rule).expect("it is valid").group;
            let base = target
                .replace("{api-group}", "{crd-group}")
                .replace("{kind}", "{crd-kind}")
                .replace("{namespace}", "{name}");
            assert!(config.change_group_bindings.iter().any(|binding| binding.name == base), "{rule} has no group");
        }
    }

    #[test]
    fn labels_go_to_objects_and_pod_templates_and_selectors_can_be_left_alone() {
        let config = defaults();
        let ownership = |object: &Value| {
            config.ownership_label_rules.iter().filter(|rule| matches_any(&rule.matchers, object)).count()
        };
        assert_eq!(ownership(&object("v1", "ConfigMap", "shop")), 1);
        assert_eq!(ownership(&object("apps/v1", "Deployment", "shop")), 2);
        assert_eq!(ownership(&object("apps/v1", "StatefulSet", "shop")), 3);
        assert_eq!(ownership(&object("batch/v1", "CronJob", "shop")), 2);
        let scoping = |object: &Value| {
            config
                .label_scoping_rules
                .iter()
                .filter(|rule| rule.is_default && matches_any(&rule.matchers, object))
                .count()
        };
        assert_eq!(scoping(&object("v1", "Service", "shop")), 1);
        assert_eq!(scoping(&object("batch/v1", "Job", "shop")), 1);
        assert_eq!(scoping(&object("policy/v1", "PodDisruptionBudget", "shop")), 0);
        for annotation in DISABLE_LABEL_SCOPING {
            let mut service = object("v1", "Service", "shop");
            service["metadata"]["annotations"] = json!({annotation: ""});
            assert_eq!(scoping(&service), 0);
        }
    }
}
