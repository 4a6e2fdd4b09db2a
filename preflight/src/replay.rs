//! What a run judged by, besides its facts: rules with their settings, waivers, the day, what the server said. With the
//! facts it gives the same verdict again, anywhere.

use pushback_objects::source::Positions;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::default_set::LeftOut;
use crate::judge::RunReport;
use crate::loosened::{Loosened, Loosening, RuleOff};
use crate::rule::{Judgement, Rule};
use crate::selection::{Origin, Selected, Selection};
use crate::session::Session;
use crate::waiver::{Accepted, Waiver};
use crate::{Facts, registry, settings};

/// What a run judged by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JudgedBy {
    /// The rules that ran, in their order.
    pub rules: Vec<JudgedRule>,
    /// Who decided which rules run.
    pub origin: Origin,
    /// Rules that would have run if they had not been switched off.
    pub off: Vec<RuleOff>,
    /// Rules of the default set that a list of rules left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Where the manifests were less strict than the policy.
    pub loosened: Vec<Loosened>,
    /// What a loosening did.
    pub loosening: Loosening,
    /// Number of objects affected by each waived finding before, by fingerprint.
    pub accepted: Accepted,
    /// The waivers.
    pub waivers: Vec<Waiver>,
    /// The day of the run, which waivers are judged by.
    pub today: String,
    /// What the API server rejected or could not check.
    pub server: Judgement,
}

/// A rule that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JudgedRule {
    /// Its name.
    pub name: String,
    /// The `config` that gives it its settings.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// Who chose it.
    pub origin: Origin,
    /// Whether the policy has brought it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_custom: bool,
}

impl JudgedBy {
    /// What a run with this selection judges by.
    #[must_use]
    pub fn of(selection: &Selection, waivers: &[Waiver], today: &str, server: Judgement) -> Self {
        let rule = |selected: &Selected| {
            let (name, config) = selected.written();
            let is_custom = selected.rule.meta().is_custom;
            JudgedRule { name: name.to_owned(), config, origin: selected.origin, is_custom }
        };
        let Selection { rules, origin, off, left_out, loosened, loosening, accepted } = selection;
        Self {
            rules: rules.iter().map(rule).collect(),
            origin: *origin,
            off: off.clone(),
            left_out: left_out.clone(),
            loosened: loosened.clone(),
            loosening: *loosening,
            accepted: accepted.clone(),
            waivers: waivers.to_vec(),
            today: today.to_owned(),
            server,
        }
    }

    /// The verdict on facts. `custom` are the rules that the policy brings.
    ///
    /// # Errors
    /// Each rule that is not known, or whose settings are not valid, in a sentence.
    pub fn replay(&self, facts: Facts, custom: &[&'static dyn Rule]) -> Result<RunReport, Vec<String>> {
        let mut session = Session::new(self.selection(custom)?, facts);
        // Nobody answers: what a rule asks beyond the facts is not available to it.
        while !session.needs().is_empty() {}
        Ok(session.finish(self.server.clone(), &self.waivers, &self.today).0)
    }

    fn selection(&self, custom: &[&'static dyn Rule]) -> Result<Selection, Vec<String>> {
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        for judged in &self.rules {
            match judged.select(custom) {
                Ok(selected) => rules.push(selected),
                Err(wrong) => errors.extend(wrong),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Selection {
            rules,
            origin: self.origin,
            off: self.off.clone(),
            left_out: self.left_out.clone(),
            loosened: self.loosened.clone(),
            loosening: self.loosening,
            accepted: self.accepted.clone(),
        })
    }
}

impl JudgedRule {
    fn select(&self, custom: &[&'static dyn Rule]) -> Result<Selected, Vec<String>> {
        let Self { name, config, origin, is_custom } = self;
        let found = match is_custom {
            true => registry::find_in(custom, name).map_err(|_| format!("rule {name} is the policy's own")),
            false => registry::find(name).map_err(|error| error.to_string()),
        };
        let rule = found.map_err(|error| vec![error])?;
        let config = Value::Object(config.clone());
        let values = settings::read(rule.meta(), &config, &Positions::default())
            .map_err(|errors| errors.iter().map(|error| format!("rule {name}: {error}")).collect::<Vec<_>>())?;
        Ok(Selected { rule, settings: settings::of_values(values), origin: *origin })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::judge::Outcome;
    use crate::policy::select;

    fn judged_by(names: &[&str]) -> JudgedBy {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let selection = select(Some(&names), None).expect("rules");
        JudgedBy::of(&selection, &[], "2026-01-01", Judgement::default())
    }

    #[test]
    fn what_was_judged_by_comes_back_from_its_file() {
        let judged = judged_by(&["CRDUpgradeSafety", "RemovedAPIs"]);
        let text = serde_json::to_string(&judged).expect("JSON");
        assert_eq!(serde_json::from_str::<JudgedBy>(&text).expect("a value"), judged);
        assert_eq!(judged.replay(Facts::default(), &[]).expect("a verdict").outcome, Outcome::Passed);
    }

    #[test]
    fn a_waiver_that_follows_from_an_option_still_does() {
        let waiver = Waiver { may_be_unused: true, ..Waiver::default() };
        let text = serde_json::to_string(&waiver).expect("JSON");
        assert_eq!(serde_json::from_str::<Waiver>(&text).expect("a waiver"), waiver);
    }

    #[test]
    fn a_rule_that_is_not_there_and_a_setting_that_is_none_are_told() {
        let mut judged = judged_by(&["CRDUpgradeSafety"]);
        judged.rules[0].config = json!({"mode": "off"}).as_object().cloned().unwrap_or_default();
        let rule = |name: &str, is_custom| JudgedRule {
            name: name.to_owned(),
            is_custom,
            ..judged_by(&["RemovedAPIs"]).rules[0].clone()
        };
        judged.rules.extend([rule("Removed", false), rule("OurRule", true)]);
        insta::assert_snapshot!(judged.replay(Facts::default(), &[]).expect_err("three errors").join("\n"), @r#"
        rule CRDUpgradeSafety: mode: expected `error` or `warn`, found "off"
        unknown preflight rule "Removed"; did you mean "RemovedAPIs"?
        rule OurRule is the policy's own
        "#);
    }
}
