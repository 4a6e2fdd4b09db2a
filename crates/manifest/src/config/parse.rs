//! Parses Config documents strictly: reports every error at once, each with its position, its path and what was
//! expected.
//! Unknown keys are errors, unless the caller takes those of a document as warnings.

mod matchers;
mod rules;
mod scalars;
mod shapes;
mod ytt;

use std::collections::BTreeMap;

use pushback_conversion::{GivenPlan, PlanSource};
use pushback_objects::object::ObjectExt;
use pushback_objects::reader::{Fields, Node, Reader, quote};
use pushback_objects::suggest::nearest;
use pushback_objects::{ObjectRef, PathSegment, Position, Positions};
use pushback_preflight::loosened::Loosening;
use serde_json::Value;

use super::Config;
use super::version::Version;
use crate::{InputError, InputWarning, Manifest};

/// What is wrong with a Config document.
pub type ConfigError = InputError;

/// Parses the documents of a YAML text. Arguments: its name in positions, and the text. Empty documents are null.
pub type ParseText<'a> = &'a dyn Fn(&str, &str) -> Result<Documents, InputError>;

/// The documents of a text, with their positions.
pub type Documents = Vec<(Value, Positions)>;

/// A ConfigMap with this label carries a Config document.
pub const CONFIG_LABEL: &str = "kapp.k14s.io/config";

/// The data key that holds the Config document.
pub const CONFIG_DATA_KEY: &str = "config.yml";

/// The kapp release whose Config this tool accepts: `minimumRequiredVersion` of a `kapp.k14s.io` document is compared
/// with it, not with this tool's own version. 0.65.0 has the newest of the supported keys.
pub const COMPATIBLE_KAPP_VERSION: &str = "0.65.0";

const KAPP_GROUP: &str = "kapp.k14s.io";
const OWN_GROUP: &str = "pushback.dev";

/// Parses Config documents, and ConfigMaps that carry one, in input order. Does not look up rule names. Where `ignored`
/// is given, unknown keys of a document are warnings there, as kapp ignores them; those of its entries stay errors.
///
/// # Errors
/// All errors of all documents in the order of the input, then rules that are listed twice.
pub fn parse(
    documents: &[Manifest],
    tool_version: &str,
    parse_text: ParseText<'_>,
    mut ignored: Option<&mut Vec<InputWarning>>,
) -> Result<Config, Vec<ConfigError>> {
    let mut config = Config::default();
    let mut errors = Vec::new();
    for manifest in documents {
        if manifest.value.text("/kind") == "ConfigMap" {
            match config_map_documents(manifest, parse_text) {
                Ok(inner) => {
                    for (value, positions) in inner {
                        read((&value, &positions), tool_version, &mut ignored, &mut config, &mut errors);
                    }
                }
                Err(error) => errors.push(error),
            }
        } else {
            read((&manifest.value, &manifest.positions), tool_version, &mut ignored, &mut config, &mut errors);
        }
    }
    errors.extend(repeated_rules(&config));
    if errors.is_empty() { Ok(config) } else { Err(errors) }
}

/// The Config documents inside a ConfigMap.
fn config_map_documents(manifest: &Manifest, parse_text: ParseText<'_>) -> Result<Documents, ConfigError> {
    let path = [PathSegment::from("data"), PathSegment::from(CONFIG_DATA_KEY)];
    let name = ObjectRef::of(&manifest.value);
    let Some(text) = manifest.value.get("data").and_then(|data| data.get(CONFIG_DATA_KEY)).and_then(Value::as_str)
    else {
        return Err(ConfigError {
            message: format!("data: {name} has the label {CONFIG_LABEL} and no text under `{CONFIG_DATA_KEY}`"),
            position: manifest.positions.locate(&path),
            hints: vec![format!("put the Config document under `{CONFIG_DATA_KEY}`, or remove the label")],
        });
    };
    // Lines count from the start of the text: where it starts in the file depends on its quoting there.
    let file = format!("{} ({name}, {CONFIG_DATA_KEY})", manifest.positions.file());
    let mut documents = parse_text(&file, text)?;
    documents.retain(|(value, _)| !value.is_null());
    if documents.is_empty() {
        return Err(ConfigError {
            message: format!("data[\"{CONFIG_DATA_KEY}\"]: expected a Config document, found none"),
            position: manifest.positions.locate(&path),
            hints: Vec::new(),
        });
    }
    Ok(documents)
}

fn read(
    (value, positions): (&Value, &Positions),
    tool_version: &str,
    ignored: &mut Option<&mut Vec<InputWarning>>,
    config: &mut Config,
    errors: &mut Vec<ConfigError>,
) {
    let reader = Reader::new(positions);
    if let Some(read) = read_document(&reader.root(value), tool_version, ignored) {
        *config = Config::merge(std::mem::take(config), read);
    }
    errors.extend(reader.into_errors());
}

fn read_document(root: &Node<'_>, tool_version: &str, ignored: &mut Option<&mut Vec<InputWarning>>) -> Option<Config> {
    let fields = root.any_fields();
    // Under another kind or version every key would be unknown; a single error is clearer.
    let group = document_group(&fields)?;
    unknown_keys(&fields, ignored);
    if let Some(metadata) = fields.optional("metadata") {
        let _ = metadata.map();
    }
    let mut config = Config {
        minimum_required_version: minimum_required_version(&fields, group, tool_version),
        preflight_waivers: entries(&fields, "preflightWaivers", rules::preflight_waiver),
        admission_exemptions: entries(&fields, "admissionExemptions", rules::admission_exemption)
            .into_iter()
            .flatten()
            .collect(),
        conversion_plans: entries(&fields, "conversionPlans", |node| GivenPlan::of_entry(node, PlanSource::Manifests)),
        change_group_bindings: entries(&fields, "changeGroupBindings", rules::change_group_binding),
        change_rule_bindings: entries(&fields, "changeRuleBindings", rules::change_rule_binding),
        rebase_rules: fields.list("rebaseRules").iter().filter_map(rules::rebase_rule).collect(),
        diff_mask_rules: entries(&fields, "diffMaskRules", rules::path_rule),
        wait_rules: fields.list("waitRules").iter().filter_map(rules::wait_rule).collect(),
        ownership_label_rules: entries(&fields, "ownershipLabelRules", rules::path_rule),
        orphaned: entries(&fields, "deleteStrategyRules", rules::delete_strategy_rule).into_iter().flatten().collect(),
        exclusive_fields: entries(&fields, "fieldOwnershipRules", rules::field_ownership_rule),
        additional_labels: fields.optional("additionalLabels").map(|node| rules::labels(&node)).unwrap_or_default(),
        label_scoping_rules: entries(&fields, "labelScopingRules", rules::label_scoping_rule),
        last_applied_exclusions: entries(&fields, "diffAgainstLastAppliedFieldExclusionRules", rules::path_rule),
        template_rules: entries(&fields, "templateRules", rules::template_rule),
        ..Config::default()
    };
    // What a manifest does not set is never compared with the live object, so that there is nothing to leave out.
    let _ = entries(&fields, "diffAgainstExistingFieldExclusionRules", rules::path_rule);
    // An empty list differs from an absent one: it runs no rule.
    if let Some(node) = fields.optional("preflightRules") {
        config.preflight_rules = Some(node.list().iter().map(rules::preflight_rule).collect());
        config.preflight_rules_at = Some(node.position());
    }
    if let Some(node) = fields.optional("policyLoosening") {
        let word = node.choice(&[("warn", Loosening::Warn), ("error", Loosening::Error)]);
        config.policy_loosening = word.map(|word| (word, node.position()));
    }
    Some(config)
}

/// Refuses unknown keys of a document, or takes them as warnings. Refused either way is a key that is a known one but for
/// its case, since kapp reads it as that one, and one that is nearly a key of the policy: without it no rule would run.
fn unknown_keys(fields: &Fields<'_>, ignored: &mut Option<&mut Vec<InputWarning>>) {
    let matters = |key: &str| {
        let known = nearest(key, shapes::CONFIG.iter().copied());
        known.is_some_and(|known| known.eq_ignore_ascii_case(key) || shapes::POLICY.contains(&known))
    };
    for (key, node, hint) in fields.unknown(shapes::CONFIG) {
        match ignored {
            Some(warnings) if !matters(key) => {
                let message = format!("unknown key {} of a Config is ignored; {hint}", quote(key));
                warnings.push(InputWarning { code: "config-key", message, position: node.position() });
            }
            _ => node.note("unknown key", &[&hint]),
        }
    }
}

/// The document's API group, if it is a Config document of a known version.
fn document_group(fields: &Fields<'_>) -> Option<&'static str> {
    let (kind, api_version) = (fields.required("kind"), fields.required("apiVersion"));
    kind?.choice(&[("Config", ())])?;
    api_version?.choice(&[("kapp.k14s.io/v1alpha1", KAPP_GROUP), ("pushback.dev/v1alpha1", OWN_GROUP)])
}

fn entries<T>(fields: &Fields<'_>, key: &str, read: impl Fn(&Node<'_>) -> T) -> Vec<T> {
    fields.list(key).iter().map(read).collect()
}

fn minimum_required_version(fields: &Fields<'_>, group: &str, tool_version: &str) -> Option<String> {
    let node = fields.optional("minimumRequiredVersion")?;
    let text = match node.value() {
        // 1.0 and 1.10 lose digits when YAML reads them as numbers.
        Value::Number(_) => {
            return node.expected("a version such as 0.65.0", &["write it in quotes and with all three parts"]);
        }
        _ => node.text()?,
    };
    if let Some(without) = text.strip_prefix('v').filter(|without| Version::parse(without).is_some()) {
        return node.malformed("a version without `v`", &[&format!("write \"{without}\"")]);
    }
    let Some(required) = Version::parse(text) else {
        return node.malformed("a version such as 0.65.0", &[]);
    };
    let (ours, what) = if group == KAPP_GROUP {
        (COMPATIBLE_KAPP_VERSION, format!("this tool reads Config as kapp {COMPATIBLE_KAPP_VERSION} does"))
    } else {
        (tool_version, format!("this is pushback {tool_version}"))
    };
    if Version::parse(ours).is_some_and(|ours| ours < required) {
        return node.fail(
            format!("version {text} or later is required; {what}"),
            &["use a newer release, or lower minimumRequiredVersion"],
        );
    }
    Some(text.to_owned())
}

/// Reports rules that have two entries: which settings apply would be ambiguous.
fn repeated_rules(config: &Config) -> Vec<ConfigError> {
    let mut first: BTreeMap<&str, &Position> = BTreeMap::new();
    let mut errors = Vec::new();
    for rule in config.preflight_rules.iter().flatten().filter(|rule| !rule.name.is_empty()) {
        if let Some(earlier) = first.get(rule.name.as_str()) {
            errors.push(ConfigError {
                message: format!("rule {} is listed twice, first at {earlier}", quote(&rule.name)),
                position: rule.position.clone(),
                hints: vec!["keep one entry, with the settings that you want".to_owned()],
            });
        } else {
            first.insert(&rule.name, &rule.position);
        }
    }
    errors
}

#[cfg(test)]
mod tests;
