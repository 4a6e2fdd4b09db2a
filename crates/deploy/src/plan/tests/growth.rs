//! How cost grows with size, counted in allocations and arcs: the same on every machine, whatever its load.

use std::sync::Arc;

use allocation_counter::{AllocationInfo, measure};
use pushback_manifest::config::defaults::defaults;
use pushback_manifest::yaml;
use pushback_objects::ObjectRef;
use pushback_preflight::Verification;
use serde_json::{Value, json};

use super::super::{Action, Planned, diff, ordering};

/// Four times the work may cost up to this factor; quadratic growth would cost 16 times as much.
const FOUR_TIMES: u64 = 5;

/// The cost of some work for `size` objects, lines or documents, after checking it against four times as many.
fn assert_linear(what: &str, size: usize, work: impl Fn(usize) -> AllocationInfo) -> AllocationInfo {
    let (small, large) = (work(size), work(4 * size));
    for (unit, small, large) in [
        ("allocations", small.count_total, large.count_total),
        ("bytes in all", small.bytes_total, large.bytes_total),
        ("bytes at once", small.bytes_max, large.bytes_max),
    ] {
        assert!(large <= FOUR_TIMES * small, "{what}: {large} {unit} for {}, {small} for {size}", 4 * size);
    }
    large
}

fn create(object: &Value) -> Planned {
    Planned {
        object: ObjectRef::of(object),
        action: Action::Create,
        desired: Some(Arc::new(object.clone())),
        verification: Verification::Server,
        wait: true,
        ..Planned::default()
    }
}

/// Objects of seven kinds that the default order knows, in turn.
fn mixed(count: usize) -> Vec<Planned> {
    let kinds = [
        ("v1", "ConfigMap"),
        ("v1", "ServiceAccount"),
        ("v1", "Service"),
        ("apps/v1", "Deployment"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ];
    (0..count)
        .map(|number| {
            let (api_version, kind) = kinds[number % kinds.len()];
            let metadata = json!({"name": format!("object-{number}"), "namespace": "shop"});
            create(&json!({"apiVersion": api_version, "kind": kind, "metadata": metadata}))
        })
        .collect()
}

#[test]
fn the_change_graph_of_the_default_order_is_linear() {
    let config = defaults();
    let arcs = |count: usize| ordering::draw(&mixed(count), &config, "shop", Some(&[])).expect("no cycle").arc_count();
    let (small, large) = (arcs(700), arcs(2_800));
    assert!(small > 700 && large <= 4 * small, "{large} arcs for 2,800 objects, {small} for 700");
    assert_linear("graph", 600, |count| {
        let objects = mixed(count);
        measure(|| drop(ordering::draw(&objects, &config, "shop", Some(&[])).expect("no cycle")))
    });
}

#[test]
fn a_diff_of_every_second_line_is_linear_and_takes_less_than_forty_mebibytes_for_16_000() {
    let text = |lines: usize, mark: &str| -> Value {
        let line = |number: usize| format!("setting.{number} = value{}\n", if number % 2 == 1 { mark } else { "" });
        json!({"kind": "ConfigMap", "data": {"settings": (0..lines).map(line).collect::<String>()}})
    };
    let cost = assert_linear("diff", 4_000, |lines| {
        let (old, new) = (text(lines, ""), text(lines, "-changed"));
        measure(|| drop(diff::text(Some(&old), Some(&new), &|_| false)))
    });
    assert!(cost.bytes_max < 40 << 20, "{} bytes at once", cost.bytes_max);
}

#[test]
fn reading_a_file_of_many_documents_is_linear() {
    let document =
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {b: c}}\ndata:\n  key: |\n    value\n";
    assert_linear("YAML", 200, |count| {
        let text = document.repeat(count);
        measure(|| drop(yaml::load("app.yaml", text.as_bytes(), &yaml::Limits::default()).expect("YAML")))
    });
}
