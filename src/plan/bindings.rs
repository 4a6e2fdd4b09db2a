//! Config's bindings of change groups and rules, prepared once for each kind: thousands of objects share a few kinds,
//! and what a kind decides is not asked of each object again.

use std::collections::HashMap;
use std::sync::Arc;

use pushback_preflight::Position;
use serde_json::Value;

use super::Planned;
use super::graph::{ChangeNode, Rule, parse_rule};
use crate::config::matcher::ForKind;
use crate::config::{Config, Matcher, ordering};

/// The bindings of a Config, and what was prepared of them so far.
#[derive(Debug)]
pub(super) struct Bindings<'a> {
    config: &'a Config,
    kinds: HashMap<(String, String), Arc<OfKind<'a>>>,
}

/// The bindings that objects of a kind may have.
#[derive(Debug)]
struct OfKind<'a> {
    groups: Vec<Bound<Text<'a, String>>>,
    rules: Vec<Bound<Vec<Text<'a, Rule>>>>,
}

/// A binding for objects that `left` matches.
#[derive(Debug)]
struct Bound<T> {
    built_in: bool,
    left: ForKind,
    what: T,
}

/// A group or rule: read already, or with placeholders that each object fills in.
#[derive(Debug)]
enum Text<'a, T> {
    Read(Result<T, String>),
    Template { text: &'a str, ignore_if_cyclical: bool },
}

impl<'a> Bindings<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self { config, kinds: HashMap::new() }
    }

    /// Adds the groups and rules that Config binds to an object.
    pub(super) fn bind(
        &mut self,
        node: &mut ChangeNode,
        object: &Value,
        planned: &Planned,
        fail: &mut dyn FnMut(String),
    ) {
        let of_kind = self.of_kind(object);
        let applies =
            |built_in: bool, left: &ForKind| !(built_in && planned.strategies.no_default_order) && left.matches(object);
        for bound in of_kind.groups.iter().filter(|bound| applies(bound.built_in, &bound.left)) {
            let group = match &bound.what {
                Text::Read(group) => group.clone(),
                Text::Template { text, .. } => match ordering::expand(text, object) {
                    // A definition without its group is no member: what it lacks is told where it is judged.
                    Err(_) if bound.built_in => continue,
                    group => group,
                },
            };
            group.map_or_else(&mut *fail, |group| node.groups.push(group));
        }
        for bound in of_kind.rules.iter().filter(|bound| applies(bound.built_in, &bound.left)) {
            for text in &bound.what {
                let rule = match text {
                    Text::Read(rule) => rule.clone(),
                    Text::Template { text, ignore_if_cyclical } => {
                        ordering::expand(text, object).and_then(|text| rule(&text, *ignore_if_cyclical))
                    }
                };
                rule.map_or_else(&mut *fail, |rule| node.rules.push(rule));
            }
        }
    }

    fn of_kind(&mut self, object: &Value) -> Arc<OfKind<'a>> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let config = self.config;
        let prepare = |key: &(String, String)| Arc::new(OfKind::new(config, &key.0, &key.1));
        let key = (api_version, kind);
        if let Some(known) = self.kinds.get(&key) {
            return Arc::clone(known);
        }
        let prepared = prepare(&key);
        self.kinds.insert(key, Arc::clone(&prepared));
        prepared
    }
}

impl<'a> OfKind<'a> {
    fn new(config: &'a Config, api_version: &str, kind: &str) -> Self {
        let left = |matchers: &[Matcher], position: &Option<Position>| {
            let left = ForKind::of_any(matchers, api_version, kind);
            (left != ForKind::Always(false)).then_some((left, position.is_none()))
        };
        let groups = config.change_group_bindings.iter().filter_map(|binding| {
            let (left, built_in) = left(&binding.matchers, &binding.position)?;
            let what = Text::new(&binding.name, false, || Ok(binding.name.clone()));
            Some(Bound { built_in, left, what })
        });
        let rules = config.change_rule_bindings.iter().filter_map(|binding| {
            let (left, built_in) = left(&binding.matchers, &binding.position)?;
            let ignore_if_cyclical = binding.ignore_if_cyclical;
            let read = |text: &'a String| Text::new(text, ignore_if_cyclical, || rule(text, ignore_if_cyclical));
            Some(Bound { built_in, left, what: binding.rules.iter().map(read).collect() })
        });
        Self { groups: groups.collect(), rules: rules.collect() }
    }
}

impl<'a, T> Text<'a, T> {
    fn new(text: &'a str, ignore_if_cyclical: bool, read: impl FnOnce() -> Result<T, String>) -> Self {
        if text.contains('{') { Self::Template { text, ignore_if_cyclical } } else { Self::Read(read()) }
    }
}

/// Reads a rule.
pub(super) fn rule(text: &str, ignore_if_cyclical: bool) -> Result<Rule, String> {
    let mut rule = parse_rule(text)?;
    rule.ignore_if_cyclical = ignore_if_cyclical;
    Ok(rule)
}
