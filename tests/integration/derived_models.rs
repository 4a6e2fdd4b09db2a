//! Models out of manifests: what `upgrade model derive` prints is read back as the release that it came from, and
//! `upgrade diff` of two sets of manifests says of real releases what is true of them.

use serde_json::Value;

use crate::support::pushback::example;
use crate::support::{Pushback, Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: an_upgrade_of_ingress_nginx_shows_what_it_does,
        Nothing: an_upgrade_of_an_operator_with_a_definition_shows_what_it_does,
        Nothing: a_printed_model_is_the_release_that_it_came_from,
        Nothing: a_live_app_has_the_model_of_its_manifests,
        Nothing: a_model_among_the_manifests_overrides_its_components,
        Nothing: a_wrong_command_line_is_explained,
        Nothing: no_secret_reaches_a_model_or_a_report,
    ]
}

fn ingress(release: &str) -> String {
    format!("{}/tests/data/apps/ingress-nginx/controller-v{release}", env!("CARGO_MANIFEST_DIR"))
}

fn diff(pushback: &Pushback, old: &str, new: &str) -> Value {
    let arguments = ["upgrade", "diff", "--from", old, "--to", new, "--format", "json", "--fail-on", "never"];
    pushback.run(&arguments).expect(0).json()
}

/// `OPERATOR/COMPONENT SEVERITY TYPE PATH`, in the order of the report.
fn changes(report: &Value) -> Vec<String> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let components = report["componentChanges"].as_array().expect("componentChanges").iter();
    let lines = components.flat_map(|component| {
        let name = format!("{}/{}", text(component, "operator"), text(component, "componentName"));
        let changes = component["changes"].as_array().expect("changes").iter();
        changes.map(move |change| {
            format!("{name} {} {} {}", text(change, "severity"), text(change, "type"), text(change, "path"))
        })
    });
    lines.collect()
}

fn derive(pushback: &Pushback, arguments: &[&str]) -> Ran {
    pushback.run(&[&["upgrade", "model", "derive"], arguments].concat())
}

/// The component of a printed model.
fn component(model: &str, name: &str) -> Value {
    let documents: Vec<Value> = serde_yaml::from_multiple(model).expect("YAML");
    let components = documents.iter().flat_map(|document| document["components"].as_array().expect("components"));
    components.into_iter().find(|component| component["name"] == name).unwrap_or_else(|| panic!("{model}")).clone()
}

fn an_upgrade_of_ingress_nginx_shows_what_it_does() {
    let report = diff(&Pushback::new(), &ingress("1.11.3"), &ingress("1.15.1"));
    assert_eq!((&report["sourceVersion"], &report["targetVersion"]), (&"1.11.3".into(), &"1.15.1".into()));
    let (controller, shared) = ("ingress-nginx/ingress-nginx-controller", "ingress-nginx/ingress-nginx-shared");
    let (deployment, template) = ("Deployment/ingress-nginx-controller", "spec.template");
    let (create, patch) = ("Job/ingress-nginx-admission-create", "Job/ingress-nginx-admission-patch");
    assert_eq!(
        changes(&report),
        [
            format!("{controller} info SpecChanged ConfigMap/ingress-nginx-controller data"),
            format!("{controller} info SpecChanged {deployment} {template}.metadata.labels"),
            format!("{controller} info SpecChanged {deployment} {template}.spec.containers.controller.args"),
            format!(
                "{controller} warning SpecChanged {deployment} \
                 {template}.spec.containers.controller.securityContext.runAsGroup"
            ),
            format!("{controller} info ImageChanged {deployment} {template}.spec.containers.controller.image"),
            format!("{shared} info SpecChanged {create} spec"),
            format!("{shared} warning SpecChanged {create} {template}"),
            format!("{shared} info SpecChanged {patch} spec"),
            format!("{shared} warning SpecChanged {patch} {template}"),
            format!("{shared} info ImageChanged {create} {template}.spec.containers.create.image"),
            format!("{shared} info ImageChanged {patch} {template}.spec.containers.patch.image"),
        ]
    );
}

fn an_upgrade_of_an_operator_with_a_definition_shows_what_it_does() {
    let report = diff(&Pushback::new(), &example("operator"), &example("operator-upgrade-fixed"));
    let changes = changes(&report);
    for expected in [
        "backup-operator/backup-operator info ImageChanged Deployment/backup-operator \
         spec.template.spec.containers.operator.image",
        "backup-operator/backup-operator-shared info ApiVersionChanged Backup/nightly apiVersion",
    ] {
        assert!(changes.iter().any(|change| change == expected), "{expected}\n{changes:#?}");
    }
    let is_gone = |change: &&String| change.contains("Removed") && !change.contains("CustomResourceDefinition");
    assert_eq!(changes.iter().find(is_gone), None, "nothing is removed");
}

fn a_printed_model_is_the_release_that_it_came_from() {
    let pushback = Pushback::new();
    derive(&pushback, &["-f", &ingress("1.15.1"), "--output", "model.yaml"]).expect(0);
    let printed = derive(&pushback, &["-f", &ingress("1.15.1")]).expect(0).stdout;
    assert_eq!(pushback.read("model.yaml"), printed);
    let controller = component(&printed, "ingress-nginx-controller");
    assert_eq!(controller["webhooks"][0]["name"], "validate.nginx.ingress.kubernetes.io");
    assert_eq!(controller["steadyState"]["checks"][0]["conditionType"], "Available");
    for (old, new) in
        [("model.yaml", "model.yaml"), ("model.yaml", &*ingress("1.15.1")), (&*ingress("1.15.1"), "model.yaml")]
    {
        assert_eq!(changes(&diff(&pushback, old, new)), [""; 0], "{old} {new}");
    }
    let mixed = changes(&diff(&pushback, "model.yaml", &ingress("1.11.3")));
    assert_eq!(mixed.len(), 3, "{mixed:#?}");
}

fn a_live_app_has_the_model_of_its_manifests() {
    let pushback = Pushback::new();
    let apply = ["apply", "-a", "shop", "-f", &example("web-app"), "--cluster", "dir:live", "--yes"];
    pushback.run(&apply).expect(0);
    let live = derive(&pushback, &["-a", "shop", "--cluster", "dir:live"]).expect(0).stdout;
    let files = derive(&pushback, &["-a", "shop", "-f", &example("web-app")]).expect(0).stdout;
    assert_eq!(live, files);
    assert!(live.contains("name: shop"), "{live}");
    let unknown = derive(&pushback, &["-a", "other", "--cluster", "dir:live"]).expect(1);
    assert!(unknown.stderr.contains("app other does not exist"), "{}", unknown.stderr);
}

fn a_model_among_the_manifests_overrides_its_components() {
    let pushback = Pushback::new();
    pushback.write(
        "corrections.yaml",
        "operator: {name: ingress-nginx, namespace: ingress-nginx, platform: ours}\ncomponents:\n- name: \
         ingress-nginx-controller\n  controller: Helm\n  managedResources:\n  - {apiVersion: apps/v1, kind: Deployment, \
         name: ingress-nginx-controller, namespace: ingress-nginx}\n  finalizers: [example.com/drain]\nrecovery: \
         {reconcileTimeout: 90s, maxReconcileCycles: 4}\n",
    );
    let model = derive(&pushback, &["-f", &ingress("1.15.1"), "-f", "corrections.yaml"]).expect(0).stdout;
    let controller = component(&model, "ingress-nginx-controller");
    assert_eq!(controller["controller"], "Helm");
    assert_eq!(controller["finalizers"][0], "example.com/drain");
    assert_eq!(controller["managedResources"].as_array().map(Vec::len), Some(1));
    assert_eq!(controller["webhooks"][0]["name"], "validate.nginx.ingress.kubernetes.io", "what is not said stays");
    assert!(model.contains("reconcileTimeout: 90s") && model.contains("platform: ours"), "{model}");
    assert_eq!(component(&model, "ingress-nginx-shared")["controller"], "manifests");
}

fn a_wrong_command_line_is_explained() {
    let pushback = Pushback::new();
    let nothing = derive(&pushback, &[]).expect(1);
    assert!(nothing.stderr.contains("--file <PATH>|--app <NAME>"), "{}", nothing.stderr);
    let format = derive(&pushback, &["-f", &ingress("1.15.1"), "--output", "json"]).expect(1);
    assert!(format.stderr.contains("--output is a path"), "{}", format.stderr);
    let absent = derive(&pushback, &["-f", "absent"]).expect(1);
    assert!(absent.stderr.contains("absent"), "{}", absent.stderr);
}

fn no_secret_reaches_a_model_or_a_report() {
    let pushback = Pushback::new();
    for (release, word) in [("old", "hunter2"), ("new", "hunter3")] {
        let text = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: key, namespace: prod, annotations: \
             {{kubectl.kubernetes.io/last-applied-configuration: {word}}}}}\nstringData: {{password: {word}}}\n"
        );
        pushback.write(&format!("{release}/secret.yaml"), text);
    }
    let model = derive(&pushback, &["-f", "old"]).expect(0).stdout;
    assert!(model.contains("kind: Secret") && !model.contains("hunter"), "{model}");
    let report = diff(&pushback, "old", "new");
    assert!(!report.to_string().contains("hunter"), "{report}");
}
