//! Config's bindings of change groups and rules, prepared once per kind: thousands of objects share a few kinds, so
//! that matchers which depend only on the kind are evaluated once.

use std::collections::HashMap;
use std::sync::Arc;

use pushback_manifest::config::matcher::ForKind;
use pushback_manifest::config::{Config, Matcher, ordering};
use pushback_objects::Position;
use serde_json::Value;

use super::Planned;
use super::graph::{ChangeNode, Rule, parse_rule};

/// The bindings of a Config, and those prepared so far.
#[derive(Debug)]
pub(super) struct Bindings<'a> {
    config: &'a Config,
    kinds: HashMap<(String, String), Arc<KindBindings<'a>>>,
}

/// The bindings that may apply to objects of a kind.
#[derive(Debug)]
struct KindBindings<'a> {
    groups: Vec<Binding<Text<'a, String>>>,
    rules: Vec<Binding<Vec<Text<'a, Rule>>>>,
}

/// A binding for objects that `matcher` matches.
#[derive(Debug)]
struct Binding<T> {
    built_in: bool,
    matcher: ForKind,
    value: T,
}

/// A group or rule: either parsed, or with placeholders to expand for each object.
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
        let applies = |built_in: bool, matcher: &ForKind| {
            !(built_in && planned.strategies.no_default_order) && matcher.matches(object)
        };
        for bound in of_kind.groups.iter().filter(|bound| applies(bound.built_in, &bound.matcher)) {
            let group = match &bound.value {
                Text::Read(group) => group.clone(),
                Text::Template { text, .. } => match ordering::expand(text, object) {
                    // A definition without its group is not a member: the missing group is reported elsewhere.
                    Err(_) if bound.built_in => continue,
                    group => group,
                },
            };
            group.map_or_else(&mut *fail, |group| node.groups.push(group));
        }
        for bound in of_kind.rules.iter().filter(|bound| applies(bound.built_in, &bound.matcher)) {
            for text in &bound.value {
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

    fn of_kind(&mut self, object: &Value) -> Arc<KindBindings<'a>> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let config = self.config;
        let prepare = |key: &(String, String)| Arc::new(KindBindings::new(config, &key.0, &key.1));
        let key = (api_version, kind);
        if let Some(known) = self.kinds.get(&key) {
            return Arc::clone(known);
        }
        let prepared = prepare(&key);
        self.kinds.insert(key, Arc::clone(&prepared));
        prepared
    }
}

impl<'a> KindBindings<'a> {
    fn new(config: &'a Config, api_version: &str, kind: &str) -> Self {
        let matcher = |matchers: &[Matcher], position: &Option<Position>| {
            let matcher = ForKind::of_any(matchers, api_version, kind);
            (matcher != ForKind::Always(false)).then_some((matcher, position.is_none()))
        };
        let groups = config.change_group_bindings.iter().filter_map(|binding| {
            let (matcher, built_in) = matcher(&binding.matchers, &binding.position)?;
            let value = Text::new(&binding.name, false, || Ok(binding.name.clone()));
            Some(Binding { built_in, matcher, value })
        });
        let rules = config.change_rule_bindings.iter().filter_map(|binding| {
            let (matcher, built_in) = matcher(&binding.matchers, &binding.position)?;
            let ignore_if_cyclical = binding.ignore_if_cyclical;
            let read = |text: &'a String| Text::new(text, ignore_if_cyclical, || rule(text, ignore_if_cyclical));
            Some(Binding { built_in, matcher, value: binding.rules.iter().map(read).collect() })
        });
        Self { groups: groups.collect(), rules: rules.collect() }
    }
}

impl<'a, T> Text<'a, T> {
    fn new(text: &'a str, ignore_if_cyclical: bool, read: impl FnOnce() -> Result<T, String>) -> Self {
        if text.contains('{') { Self::Template { text, ignore_if_cyclical } } else { Self::Read(read()) }
    }
}

/// Parses a rule.
pub(super) fn rule(text: &str, ignore_if_cyclical: bool) -> Result<Rule, String> {
    let mut rule = parse_rule(text)?;
    rule.ignore_if_cyclical = ignore_if_cyclical;
    Ok(rule)
}
