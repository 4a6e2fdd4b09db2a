//! Strict validation of a rule's `config`: every key must be known, every value allowed; defaults are filled in.
//! An error carries its path inside `config`, so that the caller can report the line.

use serde_json::{Map, Value};

use crate::object::describe;
use crate::rule::{DocumentKind, FailMode, Mode, Order, RuleMeta, Setting, SettingKind, Settings};
use crate::source::{PathSegment, display_path};
use crate::suggest;

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

/// An error in a `config`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(.path))]
pub struct SettingError {
    /// Path inside `config`, or of the unknown key; empty for `config` itself.
    pub path: Vec<PathSegment>,
    /// Description, with the allowed words and a suggestion.
    pub message: String,
}

fn place(path: &[PathSegment]) -> String {
    if path.is_empty() { String::new() } else { format!("{}: ", display_path(path)) }
}

/// Validates `config` against the rule's declared settings. `Null` is an empty `config`.
///
/// # Errors
/// Every error, in the order of the text.
pub fn parse(meta: &RuleMeta, config: &Value) -> Result<Settings, Vec<SettingError>> {
    read(meta, config).map(of_values)
}

/// The settings of a rule, the common ones first.
pub(crate) fn declared(meta: &RuleMeta) -> Vec<&'static Setting> {
    COMMON.iter().chain(meta.settings).collect()
}

/// All values of a `config`, with defaults.
pub(crate) fn read(meta: &RuleMeta, config: &Value) -> Result<Map<String, Value>, Vec<SettingError>> {
    let declared = declared(meta);
    let mut errors = Vec::new();
    let values = match config {
        Value::Null => read_map(&declared, &Map::new(), &mut Vec::new(), &mut errors),
        Value::Object(map) => read_map(&declared, map, &mut Vec::new(), &mut errors),
        other => {
            errors.push(SettingError { path: Vec::new(), message: format!("expected a map, got {}", describe(other)) });
            Map::new()
        }
    };
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
    read(meta, &Value::Null).unwrap_or_default()
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

fn read_map(
    declared: &[&Setting],
    given: &Map<String, Value>,
    path: &mut Vec<PathSegment>,
    errors: &mut Vec<SettingError>,
) -> Map<String, Value> {
    for key in given.keys().filter(|key| declared.iter().all(|setting| setting.name != key.as_str())) {
        let suggestion = suggest::nearest(key, declared.iter().map(|setting| setting.name));
        path.push(key.as_str().into());
        errors.push(SettingError {
            path: path.clone(),
            message: format!("unknown setting{}{}", suggest::hint(suggestion), known(declared, suggestion)),
        });
        path.pop();
    }
    let mut values = Map::new();
    for setting in declared {
        path.push(setting.name.into());
        let value = read_value(setting, given.get(setting.name), path, errors);
        path.pop();
        values.insert(setting.name.to_owned(), value);
    }
    values
}

fn read_value(
    setting: &Setting,
    given: Option<&Value>,
    path: &mut Vec<PathSegment>,
    errors: &mut Vec<SettingError>,
) -> Value {
    let Some(given) = given else { return absent(setting, path, errors) };
    let read = match (&setting.kind, given) {
        (SettingKind::Choice(words) | SettingKind::Required(words), value) => read_word(words, value),
        (SettingKind::Number { least, most, .. }, value) => match value.as_u64() {
            Some(number) if (*least..=*most).contains(&number) => Ok(number.into()),
            _ => Err(format!("expected a whole number from {least} to {most}, got {}", shown(value))),
        },
        (SettingKind::InputPath(_) | SettingKind::OutputFolder, Value::String(path)) => Ok(path.as_str().into()),
        (SettingKind::InputPath(_) | SettingKind::OutputFolder, other) => {
            Err(format!("expected a string, got {}", describe(other)))
        }
        (SettingKind::Map(inner), Value::Object(map)) => {
            Ok(Value::Object(read_map(&inner.iter().collect::<Vec<_>>(), map, path, errors)))
        }
        // A key without a value. A word omitted by mistake must not silently become the default.
        (SettingKind::Map(_), Value::Null) => return absent(setting, path, errors),
        (SettingKind::Map(_), other) => Err(format!("expected a map, got {}", describe(other))),
        (SettingKind::Texts(words), Value::Array(items)) => {
            Ok(read_items(items, path, errors, |item, _, _| match item {
                Value::String(text) if words.is_empty() => Ok(text.as_str().into()),
                other if words.is_empty() => Err(format!("expected a string, got {}", describe(other))),
                word => read_word(words, word),
            }))
        }
        (SettingKind::List(inner), Value::Array(items)) => {
            let declared: Vec<&Setting> = inner.iter().collect();
            Ok(read_items(items, path, errors, |item, path, errors| match item {
                Value::Object(map) => Ok(Value::Object(read_map(&declared, map, path, errors))),
                other => Err(format!("expected a map, got {}", describe(other))),
            }))
        }
        (SettingKind::Texts(_) | SettingKind::List(_), other) => {
            Err(format!("expected a list, got {}", describe(other)))
        }
    };
    read.unwrap_or_else(|message| {
        errors.push(SettingError { path: path.clone(), message });
        Value::Null
    })
}

fn read_items(
    items: &[Value],
    path: &mut Vec<PathSegment>,
    errors: &mut Vec<SettingError>,
    read: impl Fn(&Value, &mut Vec<PathSegment>, &mut Vec<SettingError>) -> Result<Value, String>,
) -> Value {
    let mut values = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        path.push(index.into());
        match read(item, path, errors) {
            Ok(value) => values.push(value),
            Err(message) => errors.push(SettingError { path: path.clone(), message }),
        }
        path.pop();
    }
    Value::Array(values)
}

fn absent(setting: &Setting, path: &mut Vec<PathSegment>, errors: &mut Vec<SettingError>) -> Value {
    match &setting.kind {
        SettingKind::Choice(words) => words.first().copied().unwrap_or_default().into(),
        SettingKind::Required(words) => {
            let place = path[..path.len().saturating_sub(1)].to_vec();
            let message = format!("missing setting \"{}\", expected {}", setting.name, list(words));
            errors.push(SettingError { path: place, message });
            Value::Null
        }
        SettingKind::Number { default, .. } => (*default).into(),
        SettingKind::InputPath(_) | SettingKind::OutputFolder => "".into(),
        SettingKind::Texts(_) | SettingKind::List(_) => Value::Array(Vec::new()),
        SettingKind::Map(inner) => {
            Value::Object(read_map(&inner.iter().collect::<Vec<_>>(), &Map::new(), path, errors))
        }
    }
}

fn read_word(words: &[&str], value: &Value) -> Result<Value, String> {
    match value {
        Value::String(word) if words.contains(&word.as_str()) => Ok(word.as_str().into()),
        // YAML reads an unquoted `off` as false.
        Value::Bool(false) if words.contains(&"off") => Ok("off".into()),
        Value::String(word) => {
            let suggestion = suggest::nearest(word, words.iter().copied());
            Err(format!("expected {}, got \"{word}\"{}", list(words), suggest::hint(suggestion)))
        }
        other => Err(format!("expected {}, got {}", list(words), describe(other))),
    }
}

/// Shows a number as it is, any other value by its type.
fn shown(value: &Value) -> String {
    if value.is_number() { value.to_string() } else { describe(value).to_owned() }
}

/// Lists the known settings if none is similar enough to suggest.
fn known(declared: &[&Setting], suggestion: Option<&str>) -> String {
    if suggestion.is_some() {
        return String::new();
    }
    let names: Vec<&str> = declared.iter().map(|setting| setting.name).collect();
    format!("; known settings: {}", names.join(", "))
}

fn list(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry;

    fn given(config: &Value) -> Result<Settings, Vec<String>> {
        let meta = registry::find("CRDUpgradeSafety").expect("it is registered").meta();
        parse(meta, config).map_err(|errors| errors.iter().map(ToString::to_string).collect())
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
                "failmode: unknown setting; did you mean \"failMode\"?",
                "mode: expected \"error\" or \"warn\", got \"warning\"; did you mean \"warn\"?",
                "versions.served: unknown setting; did you mean \"unserved\"?",
                "versions.removed: expected \"error\" or \"warn\", got a boolean",
            ]
        );
        assert_eq!(given(&json!(["mode"])).expect_err("invalid"), ["expected a map, got a list"]);
        assert_eq!(
            given(&json!({"versions": "warn"})).expect_err("invalid"),
            ["versions: expected a map, got a string"]
        );
        assert_eq!(
            given(&json!({"mode": null})).expect_err("invalid"),
            ["mode: expected \"error\" or \"warn\", got nothing"]
        );
        assert_eq!(
            given(&json!({"x": 1})).expect_err("invalid"),
            ["x: unknown setting; known settings: mode, failMode, profile, liveObjects, versions, checks"]
        );
    }
}
