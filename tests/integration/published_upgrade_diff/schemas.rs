//! The chapters on the walk through schemas and on severities: each rule of the lists, and each example.

use super::{Walk, definition_changes};

/// A definition with these fields below `spec`, in `v1`, and what else is said of its versions.
fn definition(spec: &str, versions: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: ws.example.com}}\nspec:\n  \
         group: example.com\n  scope: Namespaced\n  names: {{kind: W, listKind: WList, plural: ws, singular: w}}\n  \
         versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object, \
         properties: {{spec: {spec}}}}}}}\n{versions}"
    )
}

const SECOND: &str = "  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n";

pub(super) fn walk(walk: &mut Walk) {
    walk.chapter("CRD schema walker");
    let nested =
        |field: &str| format!("{{type: object, properties: {{a: {{type: object, properties: {{{field}}}}}}}}}");
    rules(
        walk,
        &[
            (
                "The walk descends: a field that goes three levels down is found, by its path",
                (nested("b: {type: string}, c: {type: string}"), ""),
                (nested("b: {type: string}"), ""),
                &["breaking FieldRemoved spec.a.c"][..],
            ),
            (
                "A type that changes is found at its path, and is one change: below it nothing is compared",
                (nested("b: {type: object, properties: {c: {type: string}}}"), ""),
                (nested("b: {type: array, items: {type: string}}"), ""),
                &["breaking TypeChanged spec.a.b"],
            ),
            (
                "A name that the new schema requires and the old one did not is found",
                (nested("b: {type: string}"), ""),
                (
                    "{type: object, properties: {a: {type: object, required: [b], properties: {b: {type: string}}}}}"
                        .to_owned(),
                    "",
                ),
                &["breaking RequiredAdded spec.a.b"],
            ),
        ],
    );

    walk.chapter("Severity rules");
    let field = |schema: &str| format!("{{type: object, properties: {{f: {schema}}}}}");
    let required = "{type: object, required: [f], properties: {f: {type: string}}}".to_owned();
    let nothing = || "{type: object}".to_owned();
    rules(
        walk,
        &[
            (
                "Breaking: a field goes",
                (field("{type: string}"), ""),
                (nothing(), ""),
                &["breaking FieldRemoved spec.f"][..],
            ),
            (
                "Breaking: string becomes integer",
                (field("{type: string}"), ""),
                (field("{type: integer}"), ""),
                &["breaking TypeChanged spec.f"],
            ),
            (
                "Breaking: object becomes array",
                (field("{type: object}"), ""),
                (field("{type: array, items: {type: string}}"), ""),
                &["breaking TypeChanged spec.f"],
            ),
            (
                "Breaking: an optional field becomes required",
                (field("{type: string}"), ""),
                (required.clone(), ""),
                &["breaking RequiredAdded spec.f"],
            ),
            (
                "Breaking: an enum value goes",
                (field("{type: string, enum: [a, b]}"), ""),
                (field("{type: string, enum: [a]}"), ""),
                &["breaking EnumValueRemoved spec.f"],
            ),
            (
                "Breaking: an API version goes from spec.versions",
                (field("{type: string}"), SECOND),
                (field("{type: string}"), ""),
                &["breaking APIVersionRemoved"],
            ),
            (
                "Breaking: an API version is there and no longer served",
                (field("{type: string}"), SECOND),
                (field("{type: string}"), &SECOND.replace("served: true", "served: false")),
                &["breaking APIVersionRemoved"],
            ),
            (
                "Warning: a default changes",
                (field("{type: integer, default: 1}"), ""),
                (field("{type: integer, default: 3}"), ""),
                &["warning DefaultChanged spec.f"],
            ),
            (
                "Info: an optional field comes",
                (nothing(), ""),
                (field("{type: string}"), ""),
                &["info FieldAdded spec.f"],
            ),
            (
                "Info: an enum value comes",
                (field("{type: string, enum: [a]}"), ""),
                (field("{type: string, enum: [a, b]}"), ""),
                &["info EnumValueAdded spec.f"],
            ),
            (
                "Info: a required field becomes optional",
                (required, ""),
                (field("{type: string}"), ""),
                &["info RequiredRemoved spec.f"],
            ),
        ],
    );
    for (statement, name, code, expected) in [
        (
            "The breaking example: replicas changes its type and becomes required, storage goes",
            "breaking",
            10,
            &[
                "breaking TypeChanged spec.replicas",
                "breaking RequiredAdded spec.replicas",
                "breaking FieldRemoved spec.storage",
            ][..],
        ),
        ("The example of a default: 1 becomes 3", "default", 0, &["warning DefaultChanged spec.replicas"]),
        (
            "The example of additions: an enum value and a field",
            "added",
            0,
            &["info EnumValueAdded spec.region", "info FieldAdded spec.timeout"],
        ),
    ] {
        let command = format!("diff-crds --old crds/{name}-old.yaml --new crds/{name}-new.yaml --format json");
        walk.shows(statement, &command, code, definition_changes, expected);
    }
}

type Sides<'a> = (String, &'a str);

fn rules(walk: &mut Walk, rules: &[(&str, Sides<'_>, Sides<'_>, &[&str])]) {
    for (statement, (old_spec, old_versions), (new_spec, new_versions), expected) in rules {
        let number = walk.statements;
        let (old, new) = (format!("rules/{number}-old.yaml"), format!("rules/{number}-new.yaml"));
        walk.place.write(&old, definition(old_spec, old_versions)).write(&new, definition(new_spec, new_versions));
        let code = if expected[0].starts_with("breaking") { 10 } else { 0 };
        let command = format!("diff-crds --old {old} --new {new} --format json");
        walk.shows(statement, &command, code, definition_changes, expected);
    }
}
