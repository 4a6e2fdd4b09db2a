//! Rendered charts: hooks of other Helm commands are left out, other hooks are applied, and objects with the resource
//! policy `keep` stay when they leave the manifests.

use serde_json::Value;

use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: hook_of_another_command_is_left_out_with_one_warning,
        Nothing: hook_in_the_base_of_a_comparison_is_not_a_deletion,
        ApiServer: object_with_policy_keep_stays_when_it_leaves_the_manifests,
        ApiServer: hook_under_kapps_name_is_created,
    ]
}

fn annotated(name: &str, key: &str, value: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, annotations: {{{key}: \"{value}\"}}}}\ndata: {{a: b}}\n"
    )
}

fn chart() -> String {
    let hook = |name: &str, hook: &str| annotated(name, "helm.sh/hook", hook);
    [
        hook("tested", "test"),
        hook("removed", "pre-delete,post-rollback"),
        hook("prepared", "pre-install,pre-upgrade"),
        config_map("plain", "1"),
    ]
    .concat()
}

/// The warnings with a code of this module, as code and message.
fn warnings(ran: &Ran) -> Vec<(String, String)> {
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let all = ran.events_of("warning").into_iter().map(|event| (text(&event, "code"), text(&event, "message")));
    all.filter(|(code, _)| code.starts_with("helm-")).collect()
}

fn hook_of_another_command_is_left_out_with_one_warning() {
    let pushback = Pushback::new();
    pushback.write("app.yaml", chart());
    let apply = ["apply", "-a", "shop", "-f", "app.yaml", "--cluster", "dir:live", "--yes", "-o", "json"];
    let ran = pushback.run(&apply).expect(0);
    let warnings = warnings(&ran);
    let [(left_out, names), (applied, others)] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert_eq!((left_out.as_str(), applied.as_str()), ("helm-hook-left-out", "helm-hook-applied"));
    for name in ["ConfigMap tested (test)", "ConfigMap removed (pre-delete, post-rollback)"] {
        assert!(names.contains(name), "{names}");
    }
    assert!(others.contains("ConfigMap prepared (pre-install, pre-upgrade)"), "{others}");
    let mut files: Vec<String> = pushback.tree("live").into_keys().filter(|file| !file.starts_with('.')).collect();
    files.sort();
    assert_eq!(files, ["default/configmap_plain.yaml", "default/configmap_prepared.yaml"]);
}

fn hook_in_the_base_of_a_comparison_is_not_a_deletion() {
    let pushback = Pushback::new();
    pushback.write("old/app.yaml", chart()).write("new/app.yaml", config_map("plain", "1"));
    let ran = pushback.run(&["diff", "-f", "new", "--cluster", "dir:old", "-o", "json"]);
    let planned = ran.events_of("plan");
    let deleted = |plan: &Value| plan["counts"]["delete"].as_u64().unwrap_or_default();
    assert_eq!(planned.iter().map(deleted).collect::<Vec<_>>(), [1], "only the hook that was applied: {}", ran.stdout);
}

fn object_with_policy_keep_stays_when_it_leaves_the_manifests() {
    let app = TestApp::new("shop", &TestCluster::shared().namespace("helm"));
    let api = TestCluster::shared().api();
    let input = [annotated("kept", "helm.sh/resource-policy", "keep"), config_map("plain", "1")].concat();
    app.apply(&input, &[]).expect(0);
    app.apply(&config_map("plain", "1"), &[]).expect(0);
    let kept = api.get(&config_map_path(&app.namespace, "kept")).ok();
    assert_eq!(kept.pointer("/metadata/labels/kapp.k14s.io~1app"), None, "{kept}");
    app.apply(&input, &[]).expect(0);
    app.delete(&[]).expect(0);
    assert_eq!(api.get(&config_map_path(&app.namespace, "kept")).status, 200);
    assert_eq!(api.get(&config_map_path(&app.namespace, "plain")).status, 404);
}

fn hook_under_kapps_name_is_created() {
    let namespace = TestCluster::shared().namespace("helm");
    let kapp = Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp");
    let deploy = |input: String| {
        kapp.write("app.yaml", input);
        kapp.run(&["deploy", "-a", "shop", "-n", &namespace, "-f", "app.yaml", "-y"]).expect(0)
    };
    deploy([chart(), annotated("kept", "helm.sh/resource-policy", "keep")].concat());
    let status = |name: &str| TestCluster::shared().api().get(&config_map_path(&namespace, name)).status;
    for name in ["tested", "removed", "prepared", "kept"] {
        assert_eq!(status(name), 200, "{name}");
    }
    deploy(chart());
    assert_eq!(status("kept"), 404);
}
