//! The JSON Schema of a ConversionPlan, for editors. It accepts every plan that `read` does; what has a grammar of its
//! own, such as CEL, it takes for text.

use pushback_objects::json_schema::{
    DIALECT, Property, any_map, any_text, choice, filled_list, flag, list, map, object, reference, text,
};
use serde_json::{Value, json};

use crate::read::{API_VERSION, KIND};

/// The schema of a document.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = object(plan(), &["apiVersion", "kind", "metadata"]);
    schema["$schema"] = DIALECT.into();
    schema["title"] = "ConversionPlan of pushback".into();
    schema["$defs"] = definitions();
    schema
}

/// The schema of a plan inside another document, where it needs no `apiVersion` and `kind`.
#[must_use]
pub fn entry() -> Value {
    object(plan(), &["metadata"])
}

/// The definitions that `entry` refers to.
#[must_use]
pub fn definitions() -> Value {
    json!({"planStep": step(), "planVersionHooks": version_hooks(), "planHook": hook(), "planReshaping": reshaping()})
}

fn plan() -> Vec<Property> {
    let metadata = object(
        vec![("name", "The CRD: PLURAL.GROUP", text()), ("labels", "", any()), ("annotations", "", any())],
        &["name"],
    );
    let policy = object(
        vec![
            (
                "unassessed",
                "What happens to a difference that the plan does not mention: error (default) or stash",
                choice(&["error", "stash"]),
            ),
            (
                "bag",
                "Where values go that a version lacks: property, annotation or nowhere",
                choice(&["property", "annotation", "nowhere"]),
            ),
        ],
        &[],
    );
    vec![
        ("apiVersion", "", choice(&[API_VERSION])),
        ("kind", "", choice(&[KIND])),
        ("metadata", "Names the CRD", metadata),
        ("hub", "The version that all others are converted through; default: the newest that is not a preview", text()),
        (
            "order",
            "The versions from the oldest to the newest; default: by Kubernetes' order of versions",
            list(&text()),
        ),
        ("previews", "Versions that no step leads to", list(&text())),
        ("policy", "What happens to differences and to lost values", policy),
        ("schemas", "Schemas of versions that the CRD no longer has, by version", map(&any_map())),
        ("types", "Names of types, by version and field path", map(&map(&text()))),
        ("steps", "How fields change from one version to the next", list(&reference("planStep"))),
        ("hooks", "What is set in one version, whatever it was converted from", list(&reference("planVersionHooks"))),
    ]
}

fn any() -> Value {
    json!({})
}

fn step() -> Value {
    let mut removal = object(
        vec![
            ("assessed", "false: a draft, not decided yet", flag()),
            ("reason", "Why the value may be left out", text()),
            ("drop", "true: the value is not kept in the bag", flag()),
            ("up", "Sets another field from the removed one", reference("planHook")),
            ("down", "Sets the removed field on the way back", reference("planHook")),
        ],
        &[],
    );
    let draft = json!({"required": ["assessed"], "properties": {"assessed": {"const": false}}});
    removal["anyOf"] = json!([{"required": ["reason"]}, draft]);
    let hooks = || list(&reference("planHook"));
    let properties = vec![
        ("from", "The old version", text()),
        ("to", "The new version", text()),
        ("renames", "Old path of a field to its new name or path", map(&text())),
        ("moves", "Old path of a field to its new path elsewhere", map(&text())),
        ("typeRenames", "Old name of a type to its new name", map(&text())),
        ("removed", "Fields that the new version lacks, by path, with the reason", map(&removal)),
        ("coerce", "Fields whose type changes, by path", map(&choice(&["text", "quantity"]))),
        (
            "enums",
            "Old values to new ones, by path",
            map(&json!({"type": "object", "minProperties": 1, "additionalProperties": any_text()})),
        ),
        ("lists", "Fields that become lists or maps, by path", map(&reference("planReshaping"))),
        ("separate", "Fields of the same name that are not the same field", list(&text())),
        ("acknowledge", "Differences that are accepted, by path, with the reason", map(&text())),
        ("up", "What is set on the way to the new version", hooks()),
        ("down", "What is set on the way back", hooks()),
    ];
    object(properties, &["from", "to"])
}

fn version_hooks() -> Value {
    let filled = || filled_list(&reference("planHook"));
    let hooks = || list(&reference("planHook"));
    let mut schema = object(
        vec![
            ("version", "The version", text()),
            ("side", "api (default): what clients see; storage: what is stored", choice(&["api", "storage"])),
            ("assignTo", "What is set in objects that are converted to the version", hooks()),
            ("assignFrom", "What is set in objects that are converted from the version", hooks()),
        ],
        &["version"],
    );
    schema["anyOf"] = json!([
        {"required": ["assignTo"], "properties": {"assignTo": filled()}},
        {"required": ["assignFrom"], "properties": {"assignFrom": filled()}},
    ]);
    schema
}

fn hook() -> Value {
    let set = vec![
        ("at", "Path of the maps that the expression runs at; default: the object", text()),
        ("set", "Path of the field, from there", text()),
        ("cel", "The value, in CEL", text()),
        ("when", "unset (default): where the field is missing; always", choice(&["unset", "always"])),
    ];
    let program = vec![("program", "Name of a program, given with --program NAME=PATH", text())];
    json!({"anyOf": [object(set, &["set", "cel"]), object(program, &["program"])]})
}

fn reshaping() -> Value {
    let keyed = || {
        let named = vec![
            ("key", "The field of an item that becomes the key", text()),
            ("value", "The field of an item that becomes the value; default: the rest of the item", text()),
        ];
        json!({"anyOf": [text(), object(named, &["key"])]})
    };
    let to_map = object(vec![("listToMap", "A list of maps that becomes a map by this key", keyed())], &["listToMap"]);
    let to_list = object(vec![("mapToList", "A map that becomes a list with this key", keyed())], &["mapToList"]);
    json!({"anyOf": [choice(&["wrapList", "unwrapList"]), to_map, to_list]})
}
