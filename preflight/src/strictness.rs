//! Which of two values of a setting is stricter, by the order that the setting declares. With a policy source, the
//! judged manifests can only be stricter; a value that cannot be compared is ignored.

use pushback_objects::source::PathSegment;
use serde_json::{Map, Value};

use crate::rule::{Order, Setting, SettingKind};

/// How a value compares with the one that it would replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Same,
    Stricter,
    /// Looser, or not comparable.
    NotStricter,
}

/// A value in the manifests that is not stricter than the policy's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    /// Path inside `config`.
    pub(crate) path: Vec<PathSegment>,
    /// The policy's value.
    pub(crate) policy: Value,
    /// The manifests' value.
    pub(crate) manifests: Value,
    /// Whether the value names something that only a policy source may name.
    pub(crate) names_outside: bool,
    /// Whether the value is in effect anyway.
    pub(crate) followed: bool,
}

/// Whether looser values are in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looser {
    /// There is a policy source, so they are not.
    NotFollowed,
    /// The manifests decide, so they are.
    Followed,
}

/// Merges the manifests' values `read` (as configured: `written`) into the policy's `values`: stricter ones, and looser
/// ones if those are allowed. Returns the values that are not stricter.
pub(crate) fn meet(
    declared: &[&Setting],
    values: &mut Map<String, Value>,
    written: &Map<String, Value>,
    read: &Map<String, Value>,
    looser: Looser,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    meet_at(declared, values, (written, read), looser, &mut Vec::new(), &mut differences);
    differences
}

fn meet_at(
    declared: &[&Setting],
    values: &mut Map<String, Value>,
    (written, read): (&Map<String, Value>, &Map<String, Value>),
    looser: Looser,
    path: &mut Vec<PathSegment>,
    differences: &mut Vec<Difference>,
) {
    for setting in declared.iter().filter(|setting| written.contains_key(setting.name)) {
        let Some(given) = read.get(setting.name) else { continue };
        let ours = values.entry(setting.name).or_insert(Value::Null);
        path.push(setting.name.into());
        match (setting.order, &setting.kind, written.get(setting.name)) {
            (Order::Each, SettingKind::Map(inner), Some(Value::Object(written))) => {
                if let (Value::Object(ours), Value::Object(given)) = (ours, given) {
                    meet_at(&inner.iter().collect::<Vec<_>>(), ours, (written, given), looser, path, differences);
                }
            }
            (order, ..) => {
                let (step, met) = step(order, ours, given);
                if step == Step::NotStricter {
                    let names_outside = order == Order::Outside;
                    let followed = looser == Looser::Followed && !names_outside;
                    let difference = Difference {
                        path: path.clone(),
                        policy: ours.clone(),
                        manifests: given.clone(),
                        names_outside,
                        followed,
                    };
                    differences.push(difference);
                    *ours = if followed { given.clone() } else { met };
                } else {
                    *ours = met;
                }
            }
        }
        path.pop();
    }
}

/// Compares a value with the policy's; returns the result and the value in effect if looser ones are not allowed.
fn step(order: Order, ours: &Value, given: &Value) -> (Step, Value) {
    if ours == given {
        return (Step::Same, ours.clone());
    }
    let stricter = match order {
        Order::Words(words) => {
            let rank = |value: &Value| words.iter().position(|word| value.as_str() == Some(word));
            matches!((rank(ours), rank(given)), (Some(ours), Some(given)) if given < ours)
        }
        Order::Smaller => matches!((ours.as_u64(), given.as_u64()), (Some(ours), Some(given)) if given < ours),
        Order::FirstMatch { key, strictest } => return first_match(key, strictest, ours, given),
        Order::Each | Order::Outside | Order::Unordered => false,
    };
    if stricter { (Step::Stricter, given.clone()) } else { (Step::NotStricter, ours.clone()) }
}

/// The policy's entries, after those of the manifests that can only make it stricter.
fn first_match(key: &str, strictest: &str, ours: &Value, given: &Value) -> (Step, Value) {
    let entries = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let (policy, manifests) = (entries(ours), entries(given));
    let added: Vec<Value> = manifests.iter().filter(|entry| entry[key] == strictest).cloned().collect();
    let met: Vec<Value> = added.into_iter().chain(policy).collect();
    // It is the manifests' list if they keep the policy's entries after their own.
    let step = if met == manifests { Step::Stricter } else { Step::NotStricter };
    (step, Value::Array(met))
}

#[cfg(test)]
mod tests {
    use pushback_objects::source::Positions;
    use serde_json::json;

    use super::*;
    use crate::registry;
    use crate::rule::RuleMeta;
    use crate::settings;

    fn met(rule: &str, policy: &Value, manifests: &Value, looser: Looser) -> (Map<String, Value>, Vec<String>) {
        let meta: &RuleMeta = registry::find(rule).expect("a rule").meta();
        let read = |config: &Value| settings::read(meta, config, &Positions::default()).expect("valid");
        let mut values = read(policy);
        let written = manifests.as_object().expect("a map");
        let differences = meet(&settings::declared(meta), &mut values, written, &read(manifests), looser);
        let told = differences.iter().map(|difference| {
            let Difference { path, policy, manifests, followed, .. } = difference;
            format!("{} {policy} {manifests} {followed}", pushback_objects::source::display_path(path))
        });
        (values, told.collect())
    }

    #[test]
    fn what_is_stricter_is_taken_over_and_what_is_looser_is_told() {
        let policy = json!({"mode": "warn", "checks": {"enum": "off"}});
        let manifests = json!({
            "mode": "error", "failMode": "open", "profile": "published", "liveObjects": "decide",
            "versions": {"removed": "warn"}, "checks": {"enum": "warn", "scope": false, "required": "error"},
        });
        let (values, told) = met("CRDUpgradeSafety", &policy, &manifests, Looser::NotFollowed);
        assert_eq!((&values["mode"], &values["failMode"]), (&json!("error"), &json!("closed")));
        assert_eq!((&values["checks"]["enum"], &values["checks"]["scope"]), (&json!("warn"), &json!("error")));
        assert_eq!((&values["profile"], &values["liveObjects"]), (&json!("data"), &json!("report")));
        assert_eq!(
            told,
            [
                "failMode \"closed\" \"open\" false",
                "profile \"data\" \"published\" false",
                "liveObjects \"report\" \"decide\" false",
                "versions.removed \"error\" \"warn\" false",
                "checks.scope \"error\" \"off\" false",
            ]
        );
        let (values, told) = met("CRDUpgradeSafety", &policy, &manifests, Looser::Followed);
        assert_eq!((&values["failMode"], &values["checks"]["scope"]), (&json!("open"), &json!("off")));
        assert!(told.len() == 5 && told.iter().all(|line| line.ends_with("true")), "{told:?}");
    }

    #[test]
    fn what_is_not_written_says_nothing() {
        let policy = json!({"mode": "warn", "checks": {"enum": "off"}});
        let (values, told) = met("CRDUpgradeSafety", &policy, &json!({"checks": {}}), Looser::NotFollowed);
        assert_eq!((&values["mode"], &values["checks"]["enum"], told.len()), (&json!("warn"), &json!("off"), 0));
    }

    #[test]
    fn entries_that_refuse_go_in_front_and_others_count_for_nothing() {
        let entry = |kind: &str, action: &str| json!({"kinds": [kind], "action": action});
        let policy = json!({"rules": [entry("A", "warn")]});
        let actions = |values: &Map<String, Value>| -> Vec<String> {
            let rules = values["rules"].as_array().expect("a list").iter();
            rules.map(|entry| format!("{} {}", entry["kinds"][0], entry["action"])).collect()
        };
        let looser = json!({"rules": [entry("B", "refuse"), entry("A", "allow")]});
        let (values, told) = met("FieldConflicts", &policy, &looser, Looser::NotFollowed);
        assert_eq!((actions(&values), told.len()), (vec![r#""B" "refuse""#.into(), r#""A" "warn""#.into()], 1));
        let stricter = json!({"rules": [entry("B", "refuse"), entry("A", "warn")]});
        let (values, told) = met("FieldConflicts", &policy, &stricter, Looser::NotFollowed);
        assert_eq!((actions(&values).len(), told.len()), (2, 0));
    }

    #[test]
    fn files_are_named_by_a_source_of_policy_alone() {
        let manifests = json!({"model": "/etc/passwd", "experiments": "out", "failOn": "info"});
        let (values, told) = met("UpgradeDiff", &json!({"failOn": "warning"}), &manifests, Looser::Followed);
        assert_eq!((&values["model"], &values["experiments"]), (&json!(""), &json!("")));
        assert_eq!(values["failOn"], "info");
        assert!(told.iter().all(|line| line.ends_with("false")) && told.len() == 2, "{told:?}");
        let (values, told) =
            met("UpgradeDiff", &json!({"model": "m.yaml"}), &json!({"model": "m.yaml"}), Looser::NotFollowed);
        assert_eq!((&values["model"], told.len()), (&json!("m.yaml"), 0));
    }

    #[test]
    fn every_setting_declares_an_order_that_fits_what_it_takes() {
        fn visit(rule: &str, settings: &[Setting]) {
            for Setting { name, kind, order, .. } in settings {
                let fits = match (order, kind) {
                    (Order::Words(ordered), SettingKind::Choice(words) | SettingKind::Required(words)) => {
                        words.iter().any(|word| ordered.contains(word))
                    }
                    (Order::Smaller, SettingKind::Number { .. }) | (Order::Unordered, SettingKind::Texts(_)) => true,
                    (Order::Outside, SettingKind::InputPath(_) | SettingKind::OutputFolder) => true,
                    (Order::Each, SettingKind::Map(inner)) => {
                        visit(rule, inner);
                        true
                    }
                    (Order::FirstMatch { key, strictest }, SettingKind::List(inner)) => {
                        visit(rule, inner);
                        let action = inner.iter().find(|setting| setting.name == *key).expect("the key");
                        matches!(action.kind, SettingKind::Required(words) if words.contains(strictest))
                    }
                    _ => false,
                };
                assert!(fits, "{rule}: {name}: {order:?} for {kind:?}");
            }
        }
        visit("every rule", settings::COMMON);
        registry::metas().for_each(|meta| visit(meta.name, meta.settings));
    }
}
