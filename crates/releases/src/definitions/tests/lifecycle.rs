//! Definitions and versions that are added, removed or changed.

use super::*;

/// Three versions: `v1` stored and served, `v1beta1` served, `v1alpha1` neither.
fn foos() -> Value {
    let version = |name: &str, served: bool, storage: bool| {
        json!({
            "name": name, "served": served, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
            }}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
            "selectableFields": [{"jsonPath": ".spec.size"}],
            "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        })
    };
    let mut value = with_spec(&json!({}));
    value["spec"]["versions"] =
        json!([version("v1", true, true), version("v1beta1", true, false), version("v1alpha1", false, false)]);
    value
}

#[track_caller]
fn edited(edit: impl FnOnce(&mut Value), forward: &[&str], back: &[&str]) {
    let mut new = foos();
    edit(&mut new);
    expect(&foos(), &new, forward, back);
}

fn without_version(value: &mut Value, index: usize) {
    value["spec"]["versions"].as_array_mut().expect("versions").remove(index);
}

#[test]
fn a_definition_that_goes_breaks_and_one_that_comes_informs() {
    let one = [definition(foos())];
    let told = compare(&one, &[], Options::default());
    assert_eq!(told.iter().map(line).collect::<Vec<_>>(), ["breaking CRDRemoved . breaking"]);
    assert_eq!(told[0].detail, "the definition is removed, with all objects of kind Foo");
    let told = compare(&[], &one, Options::default());
    assert_eq!(told.iter().map(line).collect::<Vec<_>>(), ["info CRDAdded . safe"]);
    assert_eq!(compare(&one, &one, Options::default()), []);
}

#[test]
fn scope_and_names_are_told() {
    edited(
        |new| new["spec"]["scope"] = json!("Cluster"),
        &["breaking CRDScopeChanged . breaking"],
        &["breaking CRDScopeChanged . breaking"],
    );
    edited(
        |new| new["spec"]["names"]["kind"] = json!("Bar"),
        &["breaking CRDNamesChanged . breaking"],
        &["breaking CRDNamesChanged . breaking"],
    );
    edited(
        |new| new["spec"]["names"]["shortNames"] = json!(["fo"]),
        &["info CRDNamesChanged . safe"],
        &["warning CRDNamesChanged . safe"],
    );
}

#[test]
fn a_served_version_that_goes_breaks() {
    edited(|new| without_version(new, 1), &["breaking APIVersionRemoved . breaking"], &["info APIVersionAdded . safe"]);
    edited(
        |new| new["spec"]["versions"][1]["served"] = json!(false),
        &["breaking APIVersionRemoved . breaking"],
        &["info APIVersionAdded . safe"],
    );
    let told = changes(&foos(), &{
        let mut new = foos();
        without_version(&mut new, 1);
        new
    });
    assert_eq!((told[0].version.as_str(), told[0].crd_name.as_str()), ("v1beta1", "foos.ex.com"));
    assert_eq!(DefinitionsDiff::of(told).crds[0].api_versions[0].change_type, Presence::Removed);
    let mut unserved = foos();
    unserved["spec"]["versions"][1]["served"] = json!(false);
    let told = DefinitionsDiff::of(changes(&foos(), &unserved));
    assert_eq!(told.crds[0].api_versions[0].change_type, Presence::Modified);
}

#[test]
fn a_version_that_was_not_served_weighs_by_what_is_known_of_storage() {
    edited(|new| without_version(new, 2), &["warning APIVersionRemoved . unknown"], &["info APIVersionAdded . safe"]);
    let removed = |stored: &[&str]| {
        let mut old = foos();
        old["status"] = json!({"storedVersions": stored});
        let mut new = foos();
        without_version(&mut new, 2);
        lines(&old, &new)
    };
    assert_eq!(removed(&["v1"]), ["info APIVersionRemoved . safe"]);
    assert_eq!(removed(&["v1alpha1", "v1"]), ["breaking APIVersionRemoved . breaking"]);
}

#[test]
fn another_storage_version_warns_and_breaks_where_the_old_one_is_gone() {
    let moved = |value: &mut Value| {
        value["spec"]["versions"][0]["storage"] = json!(false);
        value["spec"]["versions"][1]["storage"] = json!(true);
    };
    edited(moved, &["warning StorageVersionChanged . safe"], &["warning StorageVersionChanged . safe"]);
    let mut new = foos();
    moved(&mut new);
    without_version(&mut new, 0);
    assert_eq!(
        lines(&foos(), &new),
        ["breaking APIVersionRemoved . breaking", "breaking StorageVersionChanged . breaking"]
    );
}

#[test]
fn a_deprecation_informs() {
    edited(
        |new| new["spec"]["versions"][1]["deprecated"] = json!(true),
        &["info APIVersionDeprecated . safe"],
        &["info APIVersionDeprecated . safe"],
    );
}

#[test]
fn what_a_version_offers_is_told() {
    let version = |new: &mut Value, edit: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        edit(new["spec"]["versions"][1].as_object_mut().expect("a version"));
    };
    edited(
        |new| version(new, &|version| version["subresources"] = json!({"scale": version["subresources"]["scale"]})),
        &["breaking SubresourceRemoved . breaking"],
        &["warning SubresourceAdded . safe"],
    );
    edited(
        |new| version(new, &|version| version["subresources"] = json!({"status": {}})),
        &["breaking SubresourceRemoved . breaking"],
        // Its fields may hold what the server then rejects.
        &["breaking SubresourceAdded . breaking"],
    );
    edited(
        |new| version(new, &|version| version["subresources"]["scale"]["specReplicasPath"] = json!(".spec.replicas")),
        &["breaking SubresourceChanged . breaking"],
        &["breaking SubresourceChanged . breaking"],
    );
    edited(
        |new| version(new, &|version| drop(version.remove("selectableFields"))),
        &["breaking SelectableFieldsChanged . breaking"],
        &["info SelectableFieldsChanged . safe"],
    );
    edited(
        |new| version(new, &|version| drop(version.remove("additionalPrinterColumns"))),
        &["info PrinterColumnsChanged . safe"],
        &["info PrinterColumnsChanged . safe"],
    );
}

#[test]
fn conversion_is_told_with_what_is_lost_between_versions() {
    edited(
        |new| new["spec"]["conversion"] = json!({"strategy": "Webhook"}),
        &["warning ConversionChanged . safe"],
        &["warning ConversionChanged . safe"],
    );
    let added = |new: &mut Value| {
        let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/name";
        let (parent, _) = fields.rsplit_once('/').expect("a path");
        new.pointer_mut(parent).expect("fields")["name"] = json!({"type": "string"});
    };
    let mut new = foos();
    added(&mut new);
    let told = changes(&foos(), &new);
    assert_eq!(told.iter().map(line).collect::<Vec<_>>(), ["info FieldAdded spec.name safe"]);
    // Without the conversion webhook, a field that only one version has is lost.
    let mut converted = new.clone();
    converted["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(lines(&converted, &new), ["breaking ConversionChanged . breaking"]);
}

#[test]
fn the_schema_of_all_versions_of_an_old_definition_is_read() {
    let old = |kind: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1beta1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "foos.ex.com"},
            "spec": {
                "group": "ex.com", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"}, "version": "v1",
                "preserveUnknownFields": false,
                "validation": {"openAPIV3Schema": {"type": "object", "properties": {"f": {"type": kind}}}},
            },
        })
    };
    let told = ["breaking TypeChanged f breaking"];
    expect(&old("string"), &old("integer"), &told, &told);
    let mut two = old("string");
    two["spec"]["versions"] = json!([
        {"name": "v1", "served": true, "storage": true}, {"name": "v2", "served": true, "storage": false},
    ]);
    let mut changed = two.clone();
    changed["spec"]["validation"]["openAPIV3Schema"]["properties"]["f"]["type"] = json!("integer");
    let told: Vec<(String, String)> =
        changes(&two, &changed).into_iter().map(|change| (change.version, change.path)).collect();
    assert_eq!(told, [("v1".to_owned(), "f".to_owned()), ("v2".to_owned(), "f".to_owned())]);
    // The same definition in the current API version: unknown fields are dropped from now on.
    let mut open = old("string");
    open["spec"].as_object_mut().expect("a map").remove("preserveUnknownFields");
    let mut today = with_spec(&json!({}));
    today["spec"]["versions"][0]["schema"] = old("string")["spec"]["validation"].clone();
    assert_eq!(lines(&open, &today), ["breaking preserveUnknownFields . breaking"]);
}

#[test]
fn a_version_that_nobody_can_use_is_safe_where_nothing_is_known_to_be_stored_in_it() {
    let closed = |new: &mut Value| {
        new["spec"]["versions"][2]["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({"type": "object"});
    };
    edited(closed, &["breaking FieldRemoved spec.size unknown"], &["info FieldAdded spec.size safe"]);
    let mut old = foos();
    old["status"] = json!({"storedVersions": ["v1"]});
    let mut new = foos();
    closed(&mut new);
    assert_eq!(lines(&old, &new), ["breaking FieldRemoved spec.size safe"]);
}

#[test]
fn the_first_of_two_definitions_of_one_name_counts() {
    let mut other = foos();
    other["spec"]["scope"] = json!("Cluster");
    let both = [definition(foos()), definition(other)];
    assert_eq!(compare(&[definition(foos())], &both, Options::default()), []);
}
