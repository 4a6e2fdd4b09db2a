//! Field owners after a migration: the owner's next server-side apply removes a field that it no longer sets.

use serde_json::{Value, json};

use super::crd::TestCrd;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: the_owner_can_remove_a_field_where_both_versions_have_one_schema,
        ApiServer: the_owner_can_remove_a_field_where_the_new_version_adds_a_default,
        ApiServer: an_ordinary_patch_takes_the_owner_its_fields,
    ]
}

const OWNER: &str = "fieldManager=owner&force=true";

fn properties() -> Value {
    json!({"a": {"type": "string"}, "c": {"type": "string"}})
}

fn with_default() -> Value {
    json!({"a": {"type": "string"}, "c": {"type": "string"}, "y": {"type": "string", "default": "added"}})
}

/// An object that `owner` applied at v1, and v2 the storage version since.
fn applied(prefix: &str, new: Value) -> TestCrd {
    let crd = TestCrd::new(prefix);
    crd.put(&[("v1", true, true, properties())]);
    crd.api().apply_with(&crd.object("v1", "cog-0", &json!({"a": "1", "c": "1"})), OWNER).ok();
    crd.put(&[("v1", true, false, properties()), ("v2", true, true, new)]);
    crd
}

/// What the owner's apply at v2 makes of the object when it no longer sets `c`.
fn spec_after_the_owner_drops_c(crd: &TestCrd) -> Value {
    crd.api().apply_with(&crd.object("v2", "cog-0", &json!({"a": "2"})), OWNER).ok()["spec"].clone()
}

#[track_caller]
fn migrate(crd: &TestCrd) {
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(crd.in_etcd(), "v2: 1");
}

fn the_owner_can_remove_a_field_where_both_versions_have_one_schema() {
    let crd = applied("owners-same", properties());
    migrate(&crd);
    assert_eq!(spec_after_the_owner_drops_c(&crd), json!({"a": "2"}));
}

fn the_owner_can_remove_a_field_where_the_new_version_adds_a_default() {
    let crd = applied("owners-default", with_default());
    migrate(&crd);
    let object = crd.api().get(&crd.object_path("v2", "cog-0")).ok();
    assert_eq!(object["spec"]["y"], "added");
    assert_eq!(spec_after_the_owner_drops_c(&crd), json!({"a": "2", "y": "added"}));
}

/// Why the migration does not write an ordinary patch.
fn an_ordinary_patch_takes_the_owner_its_fields() {
    let crd = applied("owners-patch", with_default());
    crd.api().merge_patch(&crd.object_path("v2", "cog-0"), &json!({})).ok();
    assert_eq!(spec_after_the_owner_drops_c(&crd), json!({"a": "2", "c": "1", "y": "added"}));
}
