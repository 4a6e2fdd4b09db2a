//! Names that another CRD of the group has already.

use super::*;

/// A CRD of this group, with these names.
fn crd(group: &str, plural: &str, kind: &str, short: &[&str]) -> Value {
    let mut crd = edited(|crd| {
        crd["metadata"]["name"] = json!(format!("{plural}.{group}"));
        crd["spec"]["group"] = json!(group);
        crd["spec"]["names"] = json!({"plural": plural, "kind": kind, "shortNames": short});
    });
    crd["spec"]["versions"].as_array_mut().expect("versions").truncate(1);
    crd
}

/// The live form of it.
fn established(mut crd: Value) -> Value {
    let names = &crd["spec"]["names"];
    let kind = names["kind"].as_str().expect("a kind");
    let accepted = json!({"plural": names["plural"], "singular": kind.to_lowercase(), "kind": kind,
        "listKind": format!("{kind}List"), "shortNames": names["shortNames"]});
    crd["status"] = json!({"storedVersions": ["v1"], "acceptedNames": accepted,
        "conditions": [{"type": "NamesAccepted", "status": "True"}]});
    crd
}

fn create(crd: Value) -> Change {
    change(Operation::Create, None, Some(crd))
}

fn conflicts(changes: Vec<Change>, listed: Vec<Value>) -> String {
    let report = run_with(changes, &json!({}), Ok(listed));
    let found = report.findings.iter().filter(|it| it.check == "namesConflict");
    let line = |it: &Finding| {
        let line = it.position.as_ref().map_or(0, |position| position.line);
        format!(
            "{} {:?} {} (line {line}): {}",
            it.object.name,
            it.severity,
            it.path.clone().unwrap_or_default(),
            it.message
        )
    };
    found.map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn new_crd_with_a_name_of_a_crd_on_the_cluster_is_refused() {
    let other = || vec![established(crd("ex.com", "gears", "Gear", &["g", "ge"])), foo_object()];
    let new =
        |plural: &str, kind: &str, short: &[&str]| conflicts(vec![create(crd("ex.com", plural, kind, short))], other());
    insta::assert_snapshot!(new("goods", "Good", &["go", "g"]), @r#"goods.ex.com Error spec.names.shortNames[1] (line 14): short name "g" is the short name of CRD gears.ex.com: the API server does not accept the names, and does not serve the CRD"#);
    insta::assert_snapshot!(new("gear", "Good", &[]), @r#"gear.ex.com Error spec.names.plural (line 10): plural name "gear" is the singular name of CRD gears.ex.com: the API server does not accept the names, and does not serve the CRD"#);
    insta::assert_snapshot!(new("goods", "GearList", &[]), @r#"goods.ex.com Error spec.names.kind (line 11): kind "GearList" is the list kind of CRD gears.ex.com: the API server does not accept the names, and does not serve the CRD"#);
    insta::assert_snapshot!(new("goods", "Gear", &["gears"]), @r#"
    goods.ex.com Error spec.names.listKind (line 9): list kind "GearList" is the list kind of CRD gears.ex.com: the API server does not accept the names, and does not serve the CRD
    goods.ex.com Error spec.names.singular (line 9): singular name "gear" is the singular name of CRD gears.ex.com: the API server does not accept the names, and does not serve the CRD
    goods.ex.com Error spec.names.kind (line 11): kind "Gear" is the kind of CRD gears.ex.com: the API server does not accept the names, and does not serve the CRD
    goods.ex.com Error spec.names.shortNames[0] (line 13): short name "gears" is the plural name of CRD gears.ex.com: the API server does not accept the names, and does not serve the CRD
    "#);
    assert_eq!(new("goods", "Good", &["go"]), "");
    assert_eq!(conflicts(vec![create(crd("other.com", "goods", "Gear", &["g"]))], other()), "");
    // The server has not accepted the other one's name, so it is free.
    let mut refused = other();
    refused[0]["status"]["acceptedNames"]["shortNames"] = json!([]);
    assert_eq!(conflicts(vec![create(crd("ex.com", "goods", "Good", &["g"]))], refused), "");
}

fn foo_object() -> Value {
    json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "a"}})
}

#[test]
fn two_crds_of_the_manifests_with_the_same_name_have_one_finding() {
    let changes =
        || vec![create(crd("ex.com", "gears", "Gear", &["g"])), create(crd("ex.com", "goods", "Good", &["g"]))];
    insta::assert_snapshot!(conflicts(changes(), vec![]), @r#"goods.ex.com Error spec.names.shortNames[0] (line 13): short name "g" is the short name of CRD gears.ex.com: the API server does not accept the names, and does not serve the CRD"#);
    // The second one has it already, so the first one gets the finding.
    let second = established(crd("ex.com", "goods", "Good", &["g"]));
    let mut wider = crd("ex.com", "goods", "Good", &["g", "more"]);
    let changes = vec![changes().remove(0), update(second.clone(), wider.clone())];
    insta::assert_snapshot!(conflicts(changes, vec![second.clone()]), @r#"gears.ex.com Error spec.names.shortNames[0] (line 13): short name "g" is the short name of CRD goods.ex.com: the API server does not accept the names, and does not serve the CRD"#);
    // A name that an update gives up is free.
    wider["spec"]["names"]["shortNames"] = json!([]);
    let changes = vec![create(crd("ex.com", "gears", "Gear", &["g"])), update(second.clone(), wider)];
    assert_eq!(conflicts(changes, vec![second]), "");
}

#[test]
fn crd_that_the_run_deletes_has_its_names_until_it_is_gone() {
    let old = established(crd("ex.com", "gears", "Gear", &["g"]));
    let changes = vec![create(crd("ex.com", "goods", "Good", &["g"])), delete(old.clone())];
    insta::assert_snapshot!(conflicts(changes, vec![old]), @r#"goods.ex.com Error spec.names.shortNames[0] (line 13): short name "g" is the short name of CRD gears.ex.com, which this run deletes afterwards: the API server does not accept the names, and does not serve the CRD"#);
}

#[test]
fn crd_with_a_short_name_equal_to_its_own_singular_is_refused_once_it_has_that() {
    let live = established(crd("ex.com", "gears", "Gear", &[]));
    let named = |short: &[&str]| crd("ex.com", "gears", "Gear", short);
    insta::assert_snapshot!(conflicts(vec![update(live.clone(), named(&["gear", "gr"]))], vec![live.clone()]), @r#"gears.ex.com Error spec.names.shortNames[0] (line 13): short name "gear" is the singular name of the CRD itself: the API server does not accept the names, and the CRD does not become ready"#);
    assert_eq!(conflicts(vec![update(live.clone(), named(&["gr"]))], vec![live.clone()]), "");
    // The server compares with names that it has accepted: a new CRD has none.
    assert_eq!(conflicts(vec![create(named(&["gear"]))], vec![]), "");
    // Neither is a name a change that was asked for before.
    let mut asked = live;
    asked["spec"]["names"]["shortNames"] = json!(["gear"]);
    let mut same = named(&["gear"]);
    same["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("changed");
    assert_eq!(conflicts(vec![update(asked.clone(), same)], vec![asked]), "");
}

#[test]
fn names_without_a_list_of_crds_are_a_warning_for_each_crd() {
    let changes = vec![create(crd("ex.com", "gears", "Gear", &[])), create(crd("ex.com", "goods", "Good", &[]))];
    let report = run_with(changes, &json!({}), Err("forbidden"));
    insta::assert_snapshot!(lines(&report), @r#"
    namesConflict Change Warning: whether another CRD has one of its names is not known: the CRDs of the cluster could not be listed: forbidden
    namesConflict Change Warning: whether another CRD has one of its names is not known: the CRDs of the cluster could not be listed: forbidden
    "#);
}

#[test]
fn name_that_a_crd_asks_for_twice_has_one_finding() {
    let other = vec![established(crd("ex.com", "gears", "Gear", &["g"]))];
    let found = conflicts(vec![create(crd("ex.com", "goods", "Good", &["g", "g", "gear"]))], other);
    insta::assert_snapshot!(found, @r#"
    goods.ex.com Error spec.names.shortNames[0] (line 13): short name "g" is the short name of CRD gears.ex.com: the API server does not accept the names, and does not serve the CRD
    goods.ex.com Error spec.names.shortNames[2] (line 15): short name "gear" is the singular name of CRD gears.ex.com: the API server does not accept the names, and does not serve the CRD
    "#);
}
