//! Which rules, settings and waivers are in effect: those of a policy source, plus what the judged manifests add. With
//! a source, manifests tighten and never loosen; without one they decide, and every loosening is reported.

use std::collections::HashMap;

use pushback_objects::finding::{Finding, Severity, Verdict};
use pushback_objects::object::ObjectRef;
use pushback_objects::source::display_path;
use serde_json::{Map, Value};

use crate::custom::{self, Definition};
use crate::default_set::{DefaultSet, LeftOut};
use crate::loosened::{Loosened, LoosenedKind, Loosening, RuleOff};
use crate::registry;
use crate::rule::Rule;
use crate::selection::{self, ConfigRule, Configured, Listed, Named, Origin, Selected, Selection, SelectionError};
use crate::settings;
use crate::strictness::{self, Difference, Looser};
use crate::waiver::Waiver;

/// The configuration of one side: a policy source, or the judged manifests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Side<'a> {
    /// `preflightRules`; `None` if no document has the key.
    pub rules: Option<&'a [ConfigRule<'a>]>,
    /// The rules that entries of it define. Those of the judged manifests count for nothing, unless the source defines
    /// the same.
    pub custom: &'a [Definition],
    /// `preflightWaivers`.
    pub waivers: &'a [Waiver],
    /// `policyLoosening`; `None` if no document has the key.
    pub loosening: Option<Loosening>,
    /// Whether the documents belong to several apps: a rule may repeat, and its strictest settings win.
    pub may_repeat: bool,
}

impl Side<'_> {
    /// Whether it chooses among the built-in rules: an entry that defines a rule only adds that one.
    fn chooses(&self) -> bool {
        let defines = |rule: &ConfigRule<'_>| self.custom.iter().any(|definition| definition.name == rule.name);
        self.rules.is_some_and(|rules| rules.is_empty() || !rules.iter().all(defines))
    }
}

/// The policy in effect for a run.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The selected rules, and how they were chosen.
    pub selection: Selection,
    /// The waivers in effect.
    pub waivers: Vec<Waiver>,
}

/// An error and its side: `true` for the policy source.
pub type PolicyError = (bool, SelectionError);

/// Resolves the flag and the Config into the rules of a run, with the Config as policy source.
///
/// `flag` is `None` without `--preflight`, else its raw values; a bare `--preflight` is the empty string.
/// `config` is `None` if no Config document has `preflightRules`, else all entries in input order.
/// The Config is validated even if the flag switches its rules off.
///
/// # Errors
/// Every error, those of the flag first.
pub fn select(flag: Option<&[String]>, config: Option<&[ConfigRule<'_>]>) -> Result<Selection, Vec<SelectionError>> {
    select_from(registry::RULES, flag, config)
}

/// Like [`select`], from a given list of rules.
///
/// # Errors
/// Those of [`select`].
pub fn select_from(
    rules: &[&'static dyn Rule],
    flag: Option<&[String]>,
    config: Option<&[ConfigRule<'_>]>,
) -> Result<Selection, Vec<SelectionError>> {
    let source = Side { rules: config, ..Side::default() };
    match resolve_from(rules, DefaultSet::Exists, flag, (Some(source), Side::default()), &[]) {
        Ok(policy) => Ok(policy.selection),
        Err(errors) => Err(errors.into_iter().map(|(_, error)| error).collect()),
    }
}

/// Resolves the policy in effect. `flag` is as in [`select`]; `given` are waivers of the command line. If there is a
/// `source`, whatever it omits has its default.
///
/// # Errors
/// Every error, those of the flag first, then those of the source.
pub fn resolve(
    flag: Option<&[String]>,
    source: Option<Side<'_>>,
    manifests: Side<'_>,
    given: &[Waiver],
) -> Result<Policy, Vec<PolicyError>> {
    resolve_from(registry::RULES, DefaultSet::Exists, flag, (source, manifests), given)
}

/// Like [`resolve`], from a given list of rules, with or without a default set among them.
///
/// # Errors
/// Those of [`resolve`].
pub fn resolve_from(
    rules: &[&'static dyn Rule],
    default_set: DefaultSet,
    flag: Option<&[String]>,
    (source, manifests): (Option<Side<'_>>, Side<'_>),
    given: &[Waiver],
) -> Result<Policy, Vec<PolicyError>> {
    let mut errors = Vec::new();
    let custom = custom::rules(source.map_or(&[], |source| source.custom));
    let rules = &[rules, &custom].concat();
    let named = selection::read_flag(rules, default_set, flag.unwrap_or_default(), &mut errors);
    let mut errors: Vec<PolicyError> = errors.into_iter().map(|error| (false, error)).collect();
    let mut wrong = Vec::new();
    let of_source = source.map(|source| (source.chooses(), read(rules, default_set, source, &[], &mut wrong)));
    errors.extend(wrong.drain(..).map(|error| (true, error)));
    let known = |definition: &&Definition| custom.iter().any(|rule| rule.meta().name == definition.name);
    let unknown: Vec<&str> =
        manifests.custom.iter().filter(|it| !known(it)).map(|definition| definition.name.as_str()).collect();
    let of_manifests = read(rules, default_set, manifests, &unknown, &mut wrong);
    errors.extend(wrong.into_iter().map(|error| (false, error)));
    if !errors.is_empty() {
        return Err(errors);
    }
    let resolving = Resolving {
        rules,
        default_set,
        named: named.as_ref(),
        source: of_source.as_ref().map(|(has_list, listed)| (*has_list, listed)),
        has_list: manifests.chooses(),
        manifests: &of_manifests,
    };
    let mut selection = resolving.selection();
    selection.loosened.extend(ignored_definitions(source, manifests));
    selection.loosening = loosening(source, manifests, &mut selection.loosened);
    let mut waivers: Vec<Waiver> = source.map_or(manifests.waivers, |source| source.waivers).to_vec();
    let mut of_source: HashMap<Vec<&str>, Vec<&Waiver>> = HashMap::new();
    for waiver in source.iter().flat_map(|source| source.waivers) {
        of_source.entry(waiver.named()).or_default().push(waiver);
    }
    for waiver in manifests.waivers {
        let is_within = |others: &Vec<&Waiver>| others.iter().any(|other| waiver.is_within(other));
        if !of_source.get(&waiver.named()).is_some_and(is_within) {
            selection.loosened.push(Loosened {
                kind: LoosenedKind::Waiver,
                what: waiver.title(),
                policy: None,
                manifests: Some(waiver.reason.as_str().into()),
                followed: source.is_none(),
                position: waiver.position.clone(),
                place: None,
            });
        }
    }
    waivers.extend(given.iter().cloned());
    Ok(Policy { selection, waivers })
}

fn read<'s>(
    rules: &[&'static dyn Rule],
    default_set: DefaultSet,
    side: Side<'s>,
    skip: &[&str],
    errors: &mut Vec<SelectionError>,
) -> Listed<'s> {
    selection::read_config(rules, default_set, side.rules.unwrap_or_default(), skip, side.may_repeat, errors)
}

struct Resolving<'a> {
    rules: &'a [&'static dyn Rule],
    default_set: DefaultSet,
    /// Names given by the flag.
    named: Option<&'a Named>,
    /// Whether the source lists rules, and its entries.
    source: Option<(bool, &'a Listed<'a>)>,
    /// Whether the manifests list rules.
    has_list: bool,
    manifests: &'a Listed<'a>,
}

/// A rule, and who asks for it.
struct Wanted<'a> {
    /// Whether it runs if neither flag nor manifests mention it.
    is_expected: bool,
    /// Whether the flag, or the manifests' list, has it as one of the default set.
    is_in_given_set: bool,
    /// The manifests' entry for it.
    entry: Option<&'a Configured<'a>>,
}

impl Resolving<'_> {
    fn selection(&self) -> Selection {
        let mut selection = Selection { origin: self.origin(), ..Selection::default() };
        for rule in self.rules {
            let name = rule.meta().name;
            let wanted = self.wanted(*rule);
            let is_listed = wanted.entry.is_some() || (self.manifests.includes_default && rule.meta().default);
            let left_out = wanted.is_expected && self.has_list && !is_listed;
            let runs = match (self.named, self.source) {
                (Some(named), _) => named.names(name) || wanted.is_in_given_set,
                (None, Some(_)) => wanted.is_expected || is_listed,
                (None, None) if self.has_list => is_listed,
                (None, None) => wanted.is_expected,
            };
            // A rule that refuses nothing where nobody asks for it is no check that could be loosened.
            let refuses =
                !rule.meta().unasked.contains(&("mode", "warn")) || self.source.is_some_and(|(listed, _)| listed);
            if left_out && refuses && self.named.is_none() && !rule.meta().is_custom {
                selection.loosened.push(Loosened {
                    kind: LoosenedKind::RuleOff,
                    what: name.to_owned(),
                    policy: None,
                    manifests: None,
                    followed: !runs,
                    position: None,
                    place: None,
                });
            }
            if runs {
                selection.rules.push(self.selected(*rule, &wanted, &mut selection.loosened));
            } else if (wanted.is_expected && refuses) || is_listed {
                let reason = match self.named {
                    Some(named) if named.is_none() => "--preflight=none",
                    Some(_) => "--preflight names other rules",
                    None => "the manifests' preflightRules leave it out",
                };
                selection.off.push(RuleOff { name: name.to_owned(), reason: reason.to_owned() });
            }
        }
        selection.left_out = self.left_out(&selection);
        selection
    }

    /// The default rules that a list leaves out; `None` if no rule runs, which is reported as such.
    fn left_out(&self, selection: &Selection) -> Option<LeftOut> {
        if self.default_set == DefaultSet::Absent || selection.rules.is_empty() {
            return None;
        }
        let list = if self.named.is_some() { "--preflight" } else { "preflightRules" };
        let running: Vec<&str> = selection.rules.iter().map(|selected| selected.rule.meta().name).collect();
        LeftOut::find(self.rules, &running, list)
    }

    fn origin(&self) -> Origin {
        match (self.named, self.source) {
            (Some(_), _) => Origin::Flag,
            (None, Some((true, _))) => Origin::Source,
            (None, None) if self.has_list => Origin::Config,
            (None, _) => Origin::Default,
        }
    }

    fn wanted(&self, rule: &dyn Rule) -> Wanted<'_> {
        let meta = rule.meta();
        let is_expected = match self.source {
            Some((true, listed)) => listed.find(meta.name).is_some() || (listed.includes_default && meta.default),
            _ => meta.default,
        };
        let is_set_given = self.named.map_or(self.manifests.includes_default, |named| named.includes_default);
        Wanted { is_expected, is_in_given_set: is_set_given && meta.default, entry: self.manifests.find(meta.name) }
    }

    fn selected(&self, rule: &'static dyn Rule, wanted: &Wanted<'_>, loosened: &mut Vec<Loosened>) -> Selected {
        let name = rule.meta().name;
        let Wanted { is_expected, is_in_given_set, entry } = wanted;
        let of_source = self.source.and_then(|(_, listed)| listed.find(name));
        // A rule that runs only because of the manifests is theirs alone.
        let added = !is_expected && self.named.is_none();
        let mut values = of_source.map_or_else(|| settings::defaults(rule.meta()), |source| source.values.clone());
        // What the manifests name runs with the defaults, and is compared with what would run without them.
        let is_of_default_set = match self.named {
            Some(named) => *is_in_given_set && !named.names(name),
            None => *is_expected || (*is_in_given_set && entry.is_none()),
        };
        let of_itself = if is_of_default_set && of_source.is_none() { rule.meta().unasked } else { &[] };
        let asked: Vec<_> = of_itself.iter().map(|(name, _)| (*name, values[*name].clone())).collect();
        values.extend(of_itself.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
        if let Some(wanted) = entry {
            let looser = if self.source.is_none() || added { Looser::Followed } else { Looser::NotFollowed };
            let empty = Map::new();
            let written = wanted.written.as_object().unwrap_or(&empty);
            let declared = settings::declared(rule.meta());
            let differences = strictness::meet(&declared, &mut values, written, &wanted.values, looser);
            let unwritten = asked.into_iter().filter(|(name, _)| !written.contains_key(*name));
            values.extend(unwritten.map(|(name, value)| (name.to_owned(), value)));
            let told = differences.into_iter().filter(|difference| !added || difference.names_outside);
            loosened.extend(told.map(|difference| looser_setting(name, wanted.index, difference)));
        }
        let origin = if added && self.source.is_some() { Origin::Config } else { self.origin() };
        Selected { rule, settings: settings::of_values(values), origin }
    }
}

fn looser_setting(rule: &str, entry: usize, difference: Difference) -> Loosened {
    let Difference { path, policy, manifests, names_outside, followed } = difference;
    Loosened {
        kind: if names_outside { LoosenedKind::OutsideOnly } else { LoosenedKind::LooserSetting },
        what: format!("{rule} {}", display_path(&path)),
        policy: Some(policy),
        manifests: Some(manifests),
        followed,
        position: None,
        place: Some((entry, path)),
    }
}

/// The rules that the manifests define and the source does not.
fn ignored_definitions(source: Option<Side<'_>>, manifests: Side<'_>) -> impl Iterator<Item = Loosened> {
    let of_source = source.map_or(&[][..], |source| source.custom);
    let is_ignored = |it: &&Definition| !of_source.iter().any(|other| other.says_the_same(it));
    manifests.custom.iter().filter(is_ignored).map(|definition| Loosened {
        kind: LoosenedKind::CustomRule,
        what: definition.name.clone(),
        policy: None,
        manifests: None,
        followed: false,
        position: Some(definition.position.clone()),
        place: None,
    })
}

/// The stricter value of both sides; a source without one warns.
fn loosening(source: Option<Side<'_>>, manifests: Side<'_>, loosened: &mut Vec<Loosened>) -> Loosening {
    let policy = source.and_then(|source| source.loosening).unwrap_or_default();
    if let Some(wanted) = manifests.loosening.filter(|wanted| *wanted < policy) {
        loosened.push(Loosened {
            kind: LoosenedKind::LooserSetting,
            what: "policyLoosening".to_owned(),
            policy: serde_json::to_value(policy).ok(),
            manifests: serde_json::to_value(wanted).ok(),
            followed: false,
            position: None,
            place: None,
        });
    }
    policy.max(manifests.loosening.unwrap_or_default())
}

impl Loosened {
    /// The finding that reports the loosening.
    pub(crate) fn finding(&self, loosening: Loosening) -> Finding {
        let Self { kind, what, policy, manifests, followed, position, .. } = self;
        let shown = |value: &Option<Value>| value.as_ref().map(Value::to_string).unwrap_or_default();
        let (check, message) = match (kind, followed) {
            (LoosenedKind::Waiver, true) => ("waiver", format!("the manifests' waiver of {what} counts")),
            (LoosenedKind::Waiver, false) => {
                ("waiver", format!("the manifests' waiver of {what} does not count: the policy comes from outside"))
            }
            (LoosenedKind::RuleOff, true) => {
                ("ruleOff", format!("{what} is switched off: the manifests' preflightRules leave it out"))
            }
            (LoosenedKind::RuleOff, false) => {
                ("ruleOff", format!("{what} runs, though the manifests' preflightRules leave it out"))
            }
            (LoosenedKind::LooserSetting, true) => (
                "looserSetting",
                format!("{what} is {}, and without the manifests' Config {}", shown(manifests), shown(policy)),
            ),
            (LoosenedKind::LooserSetting, false) => {
                ("looserSetting", format!("{what} stays {}: {} is not stricter", shown(policy), shown(manifests)))
            }
            (LoosenedKind::OutsideOnly, _) => (
                "outsideOnly",
                format!("{what} is ignored: a setting that names a file counts only in a policy source"),
            ),
            (LoosenedKind::CustomRule, _) => {
                ("customRule", format!("rule {what} is ignored: a rule is defined only in a policy source"))
            }
        };
        let verdict = if loosening == Loosening::Error { Verdict::Breaking } else { Verdict::Change };
        let mut finding = Finding::new(registry::POLICY, check, verdict, ObjectRef::default(), message)
            .at(position.clone())
            .path(what.clone())
            .values(policy.clone(), manifests.clone())
            .remedy(match (kind, followed) {
                (LoosenedKind::OutsideOnly | LoosenedKind::CustomRule, _) => {
                    "give the Config that has it with --config, or leave it out of the manifests"
                }
                (LoosenedKind::Waiver, false) => {
                    "add it to the policy, or accept the finding for this run with --waive"
                }
                (_, true) => "to forbid that, give a policy with --config, or use --policy-from outside",
                (_, false) => "change it in the policy; the manifests can only make it stricter",
            });
        finding.severity = if *followed { Severity::Info } else { Severity::Warning };
        finding
    }
}

#[cfg(test)]
mod tests;
