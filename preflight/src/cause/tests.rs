//! Tests of causes: what belongs together, what stays the same, what is counted.

use std::sync::Arc;

use proptest::prelude::*;
use pushback_objects::finding::{LiveObjects, Offence};
use pushback_objects::object::ObjectRef;
use serde_json::json;

use super::*;

fn finding(definition: &str, version: &str, path: &str) -> Finding {
    let object = ObjectRef { kind: "CustomResourceDefinition".into(), name: definition.into(), ..ObjectRef::default() };
    let message = format!(
        "version \"{version}\", field \"^.{path}\": minLength constraint added when one did not exist previously: 1"
    );
    let mut finding = Finding::new("CRDUpgradeSafety", "minLength", Verdict::Breaking, object, message)
        .path(path)
        .values(None, Some(json!(1)))
        .shares(&json!(["old", "new"]));
    finding.version = Some(version.into());
    finding.severity = Severity::Error;
    finding.fingerprint = finding.compute_fingerprint();
    finding
}

fn counted(mut finding: Finding, affected: u64, examined: u64, names: &[&str]) -> Finding {
    let names = names.iter().map(ToString::to_string).collect();
    finding.live_objects = Some(LiveObjects::exactly(affected, examined, names));
    finding
}

#[test]
fn one_field_in_several_places_versions_and_definitions_is_one_cause() {
    let findings = [
        finding("a.ex.com", "v1", "spec.path"),
        finding("a.ex.com", "v1", "spec.template.spec.path"),
        finding("b.ex.com", "v1beta1", "spec.sources[*].path"),
        finding("b.ex.com", "v1beta1", "spec.name"),
    ];
    let causes = causes(&findings);
    let [path, name] = &causes[..] else { panic!("{causes:?}") };
    assert_eq!(path.headline, "field \"path\": minLength added: 1");
    assert_eq!((path.places, path.objects, path.versions, path.members.len()), (3, 2, 2, 3));
    assert_eq!(name.headline, "field \"name\": minLength added: 1");
    assert_eq!(fingerprint(&findings[1]), path.fingerprint);
}

#[test]
fn another_value_schema_field_or_check_is_another_cause() {
    let one = finding("a.ex.com", "v1", "spec.path");
    let mut others = vec![one.clone().values(None, Some(json!(2))), one.clone().shares(&json!(["old", "newer"]))];
    others.push(one.clone().path("spec.paths"));
    others.push(one.clone().path("spec.path[*]"));
    let mut check = one.clone();
    check.check = "maxLength".into();
    others.push(check);
    for other in others {
        assert_ne!(fingerprint(&other), fingerprint(&one), "{other:?}");
    }
}

#[test]
fn a_field_is_found_behind_dots_in_keys() {
    for (path, field) in [
        ("spec.path", "path"),
        ("path", "path"),
        ("spec.targets[*]", "targets[*]"),
        ("data[\"tls.key\"]", "[\"tls.key\"]"),
        ("a[\"b.\\\"c\"].d", "d"),
        ("", ""),
    ] {
        assert_eq!(leaf(path), field, "{path}");
    }
}

#[test]
fn findings_without_a_shared_reason_are_told_apart_by_their_message() {
    let object = |name: &str| ObjectRef { kind: "Deployment".into(), name: name.into(), ..ObjectRef::default() };
    let of = |name: &str, message: &str| {
        let mut finding = Finding::new("DestructiveChange", "delete", Verdict::Breaking, object(name), message);
        finding.fingerprint = finding.compute_fingerprint();
        finding
    };
    let findings = [of("web-a", "web-a is deleted"), of("web-b", "web-b is deleted"), of("web-b", "web-b is replaced")];
    let causes = causes(&findings);
    assert_eq!(causes.iter().map(|cause| cause.places).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(causes[0].headline, "web-a is deleted");
    // What is bound to content of its own shares nothing.
    let bound = [of("web-a", "m").bound_to(&json!(1)), of("web-b", "m").bound_to(&json!(2))];
    assert_eq!(super::causes(&bound).len(), 2);
}

#[test]
fn what_affects_objects_comes_first_then_what_is_proved_then_the_unknown() {
    let mut unknown = finding("a.ex.com", "v1", "spec.unknown");
    unknown.verdict = Verdict::Unknown;
    unknown.undecided = Some("a rule could not be solved".into());
    let mut warning = finding("a.ex.com", "v1", "spec.warning");
    warning.severity = Severity::Warning;
    let live = counted(finding("a.ex.com", "v1", "spec.live"), 1, 3, &["x"]);
    let findings = [unknown, warning, finding("a.ex.com", "v1", "spec.proved"), live];
    let fields: Vec<String> = causes(&findings).iter().map(|cause| cause.headline.clone()).collect();
    assert_eq!(
        fields,
        [
            "field \"live\": minLength added: 1",
            "field \"proved\": minLength added: 1",
            "field \"unknown\": minLength added, and nobody can tell whether it breaks objects",
            "field \"warning\": minLength added: 1",
        ]
    );
}

#[test]
fn the_smallest_witness_is_kept_with_the_offending_value_or_what_is_around_it() {
    let mut small = finding("a.ex.com", "v1", "spec.path");
    small.witness = Some(Arc::new(json!({"kind": "A", "spec": {"path": ""}})));
    small.offence = Some(Offence { pointer: "/spec/path".into(), message: "too short".into() });
    let mut large = finding("b.ex.com", "v1", "spec.list[*].path");
    large.witness = Some(Arc::new(json!({"kind": "B", "spec": {"list": [{"path": ""}]}})));
    let causes = |findings: &[Finding]| super::causes(findings)[0].witness.clone().expect("a witness");
    let both = causes(&[large.clone(), small.clone()]);
    assert_eq!((both.pointer.as_str(), &both.value, both.message.as_str()), ("/spec/path", &json!(""), "too short"));
    assert_eq!(both.finding, small.fingerprint);
    // Without a word about the place, the field's path leads there.
    assert_eq!(causes(&[large]).pointer, "/spec/list/0/path");
    small.offence = Some(Offence { pointer: "/spec/missing/name".into(), message: String::new() });
    assert_eq!(causes(&[small]).pointer, "/spec");
}

#[test]
fn an_object_counts_once_as_far_as_names_tell() {
    let total = |findings: &[Finding]| live_total(findings.iter()).expect("counted");
    let of = |path: &str, affected, names: &[&str]| counted(finding("a.ex.com", "v1", path), affected, 10, names);
    let same = total(&[of("x", 1, &["w"]), of("y", 2, &["w", "v"])]);
    assert_eq!((same.affected, same.examined, same.up_to), (2, 10, false));
    let unnamed = total(&[of("x", 7, &["a"]), of("y", 6, &["a"])]);
    assert_eq!((unnamed.affected, unnamed.examined, unnamed.up_to), (10, 10, true));
    let alone = total(&[of("x", 7, &["a"]), of("y", 0, &[])]);
    assert_eq!((alone.affected, alone.up_to), (7, false));
    let other = total(&[of("x", 1, &["w"]), counted(finding("b.ex.com", "v1", "x"), 1, 5, &["w"])]);
    assert_eq!((other.affected, other.examined), (2, 15));
    assert_eq!(live_total([finding("a.ex.com", "v1", "x")].iter()), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn fingerprints_and_members_depend_on_neither_order_nor_number(order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle(), kept in 1..12_usize) {
        let all: Vec<Finding> =
            (0..12).map(|index| finding(&format!("d{}.ex.com", index % 3), "v1", &format!("spec.s{index}.f{}", index % 4))).collect();
        let shuffled: Vec<Finding> = order.iter().map(|index| all[*index].clone()).collect();
        let of = |findings: &[Finding]| -> BTreeMap<String, Vec<String>> {
            causes(findings).into_iter().map(|cause| (cause.fingerprint, cause.members)).collect()
        };
        prop_assert_eq!(of(&all), of(&shuffled));
        let fewer = of(&shuffled[..kept]);
        prop_assert!(fewer.keys().all(|fingerprint| of(&all).contains_key(fingerprint)));
    }

    #[test]
    fn any_path_and_pointer_is_read(path in any::<String>(), pointer in any::<String>()) {
        leaf(&path);
        innermost(&json!({"a": [{"b": 1}]}), &pointer);
        innermost(&json!({"a": [{"b": 1}]}), &pointer_of(&path));
    }
}
