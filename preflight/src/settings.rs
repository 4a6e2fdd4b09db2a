//! Strict reading of a rule's `config`: every key must be known, every value allowed; defaults are filled in.

use pushback_objects::reader::{Fields, Node, Reader, or_list};
use pushback_objects::source::{InputError, Positions};
use serde_json::{Map, Value};

use crate::rule::{DocumentKind, FailMode, Mode, Order, RuleMeta, Setting, SettingKind, Settings};

/// The settings that every rule has.
pub static COMMON: &[Setting] = &[
    Setting {
        name: "mode",
        doc: "what happens to breaking changes: `error` refuses, `warn` only warns",
        kind: SettingKind::Choice(&["error", "warn"]),
        order: Order::ERROR,
    },
    Setting {
        name: "failMode",
        doc: "what happens to a change that cannot be proved either way, under `mode: error`: `closed` refuses, `open` warns",
        kind: SettingKind::Choice(&["closed", "open"]),
        order: Order::Words(&["closed", "open"]),
    },
];

/// The settings of a rule, the common ones first.
pub(crate) fn declared(meta: &RuleMeta) -> Vec<&'static Setting> {
    COMMON.iter().chain(meta.settings).collect()
}

/// All values of a `config`, with defaults; null is an empty one.
pub(crate) fn read(
    meta: &RuleMeta,
    config: &Value,
    positions: &Positions,
) -> Result<Map<String, Value>, Vec<InputError>> {
    if config.is_null() {
        return Ok(defaults(meta));
    }
    let reader = Reader::new(positions);
    let values = read_map(&declared(meta), &reader.root(config));
    let errors = reader.into_errors();
    if errors.is_empty() { Ok(values) } else { Err(errors) }
}

/// Converts validated values into settings.
pub(crate) fn of_values(mut values: Map<String, Value>) -> Settings {
    let mode = if values.remove("mode") == Some("warn".into()) { Mode::Warn } else { Mode::Error };
    let fail_mode = if values.remove("failMode") == Some("open".into()) { FailMode::Open } else { FailMode::Closed };
    Settings { mode, fail_mode, values }
}

/// The values of a rule that is not configured.
pub(crate) fn defaults(meta: &RuleMeta) -> Map<String, Value> {
    declared(meta).into_iter().map(|setting| (setting.name.to_owned(), default(setting))).collect()
}

/// The `config` that gives a rule these settings: what differs from the defaults.
pub(crate) fn written(meta: &RuleMeta, settings: &Settings) -> Map<String, Value> {
    let mut values = settings.values.clone();
    let word = |is_first: bool, first: &str, other: &str| Value::from(if is_first { first } else { other });
    values.insert("mode".to_owned(), word(settings.mode == Mode::Error, "error", "warn"));
    values.insert("failMode".to_owned(), word(settings.fail_mode == FailMode::Closed, "closed", "open"));
    differing(values, &defaults(meta))
}

fn differing(values: Map<String, Value>, defaults: &Map<String, Value>) -> Map<String, Value> {
    let changed = values.into_iter().filter(|(name, value)| defaults.get(name) != Some(value));
    let within = changed.map(|(name, value)| match (value, defaults.get(&name)) {
        (Value::Object(inner), Some(Value::Object(defaults))) => (name, differing(inner, defaults).into()),
        (value, _) => (name, value),
    });
    within.collect()
}

/// Document paths named by the settings of a rule, with the kind of documents expected there.
pub(crate) fn input_paths<'v>(declared: &[Setting], values: &'v Map<String, Value>) -> Vec<(DocumentKind, &'v str)> {
    let of_setting = |setting: &Setting| match (setting.kind, values.get(setting.name)) {
        (SettingKind::InputPath(kind), Some(Value::String(path))) if !path.is_empty() => vec![(kind, path.as_str())],
        (SettingKind::Map(inner), Some(Value::Object(values))) => input_paths(inner, values),
        _ => Vec::new(),
    };
    declared.iter().flat_map(of_setting).collect()
}

fn read_map(declared: &[&Setting], node: &Node<'_>) -> Map<String, Value> {
    let fields = node.any_fields();
    fields.allow(&declared.iter().map(|setting| setting.name).collect::<Vec<_>>(), &[]);
    declared.iter().map(|setting| (setting.name.to_owned(), read_value(setting, &fields))).collect()
}

fn read_value(setting: &Setting, fields: &Fields<'_>) -> Value {
    let node = match (&setting.kind, fields.optional(setting.name)) {
        (SettingKind::Required(words), _) => {
            fields.required_with(setting.name, &format!(", expected {}", or_list(words)), &[])
        }
        // A key without a value. A word omitted by mistake must not silently become the default.
        (SettingKind::Map(_), node) => node.filter(|node| !node.value().is_null()),
        (_, node) => node,
    };
    let Some(node) = node else { return default(setting) };
    let read = match setting.kind {
        SettingKind::Choice(words) | SettingKind::Required(words) => word(words, &node),
        SettingKind::Number { least, most, .. } => node.whole_number(least..=most).map(Value::from),
        SettingKind::InputPath(_) | SettingKind::OutputFolder => node.text().map(Value::from),
        SettingKind::Map(inner) => Some(read_map(&inner.iter().collect::<Vec<_>>(), &node).into()),
        SettingKind::Texts([]) => Some(node.list().iter().filter_map(Node::text).collect()),
        SettingKind::Texts(words) => Some(node.list().iter().filter_map(|item| word(words, item)).collect()),
        SettingKind::List(inner) => {
            let inner: Vec<&Setting> = inner.iter().collect();
            Some(node.list().iter().map(|item| read_map(&inner, item)).collect())
        }
    };
    read.unwrap_or_default()
}

fn default(setting: &Setting) -> Value {
    match setting.kind {
        SettingKind::Choice(words) => words.first().copied().unwrap_or_default().into(),
        SettingKind::Required(_) => Value::Null,
        SettingKind::Number { default, .. } => default.into(),
        SettingKind::InputPath(_) | SettingKind::OutputFolder => "".into(),
        SettingKind::Texts(_) | SettingKind::List(_) => Value::Array(Vec::new()),
        SettingKind::Map(inner) => inner.iter().map(|setting| (setting.name, default(setting))).collect(),
    }
}

fn word(words: &[&str], node: &Node<'_>) -> Option<Value> {
    // YAML reads an unquoted `off` as false.
    if *node.value() == Value::Bool(false) && words.contains(&"off") {
        return Some("off".into());
    }
    node.choice(&words.iter().map(|&word| (word, word)).collect::<Vec<_>>()).map(Value::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry;

    fn given(config: &Value) -> Result<Settings, Vec<String>> {
        let meta = registry::find("CRDUpgradeSafety").expect("it is registered").meta();
        let shown = |error: InputError| [vec![error.to_string()], error.hints].concat().join(" | ");
        let read = read(meta, config, &Positions::default());
        read.map(of_values).map_err(|errors| errors.into_iter().map(shown).collect())
    }

    #[test]
    fn defaults_are_strict_and_filled_in() {
        for config in [Value::Null, json!({}), json!({"versions": {}})] {
            let settings = given(&config).expect("valid");
            assert_eq!((settings.mode, settings.fail_mode), (Mode::Error, FailMode::Closed));
            assert_eq!(settings.values["versions"]["removed"], "error");
            assert_eq!(settings.values["versions"]["unserved"], "error");
        }
    }

    #[test]
    fn what_is_given_replaces_the_default_and_nothing_else() {
        let settings =
            given(&json!({"mode": "warn", "failMode": "open", "versions": {"removed": "warn"}})).expect("valid");
        assert_eq!((settings.mode, settings.fail_mode), (Mode::Warn, FailMode::Open));
        assert_eq!(settings.values["versions"]["removed"], "warn");
        assert_eq!(settings.values["versions"]["unserved"], "error");
    }

    #[test]
    fn everything_wrong_is_reported_with_its_path() {
        let config = json!({"failmode": "open", "mode": "warning", "versions": {"served": 1, "removed": true}});
        assert_eq!(
            given(&config).expect_err("invalid"),
            [
                "failmode: unknown key | did you mean `failMode`?",
                "mode: expected `error` or `warn`, found \"warning\" | did you mean `warn`?",
                "versions.served: unknown key | did you mean `unserved`?",
                "versions.removed: expected `error` or `warn`, found true",
            ]
        );
        assert_eq!(given(&json!(["mode"])).expect_err("invalid"), ["expected a map, found a list"]);
        assert_eq!(
            given(&json!({"versions": "warn"})).expect_err("invalid"),
            ["versions: expected a map, found the string \"warn\""]
        );
        assert_eq!(
            given(&json!({"mode": null})).expect_err("invalid"),
            ["mode: expected `error` or `warn`, found nothing"]
        );
        assert_eq!(
            given(&json!({"x": 1})).expect_err("invalid"),
            ["x: unknown key | known keys: mode, failMode, profile, liveObjects, versions, checks"]
        );
    }
}
