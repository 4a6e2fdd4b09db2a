//! What to write instead of a rule in ytt: the same in CEL. The usual forms are translated; for others the keys to fill in are
//! named.

use std::collections::BTreeMap;

use pushback_crd::schema::cel::Gives;
use pushback_crd::schema::cel::admission::{Expression, Variable};
use pushback_objects::ObjectExt;
use serde_json::Value;

/// The hint for a wait rule with this `ytt`.
pub(super) fn wait_rule(ytt: &Value) -> String {
    let text = ytt.text("/funcContractV1/resource.star");
    match outcomes(text) {
        Some(outcomes) => {
            let keys: Vec<String> = outcomes.iter().map(|(key, cel)| format!("{key}: {}", quoted(cel))).collect();
            format!("in CEL this rule is `cel: {{{}}}`", keys.join(", "))
        }
        None => "write it in CEL, with the variable `object`: `cel: {failed: …, current: …, unblock: …, message: …}`"
            .to_owned(),
    }
}

/// The hint for a rebase rule with this `ytt`.
pub(super) fn rebase_rule(ytt: &Value) -> String {
    let text = ytt.text("/overlayContractV1/overlay.yml");
    match fields(text) {
        Some(fields) => {
            let rules = fields.iter().map(|(path, value)| {
                let path = path.iter().map(|key| quoted_key(key)).collect::<Vec<_>>().join(", ");
                match value {
                    Some(cel) => format!("`path: [{path}]` with `cel: {}`", quoted(cel)),
                    None => format!("`path: [{path}]` with `type: remove`"),
                }
            });
            format!("without ytt this rule is {}", rules.collect::<Vec<_>>().join(", and another one with "))
        }
        None => {
            "write a rule for each field, with the variables `new`, `existing` and `current`: `path: […]` with `cel: …`"
                .to_owned()
        }
    }
}

/// A flow scalar of YAML.
fn quoted(cel: &str) -> String {
    format!("'{}'", cel.replace('\'', "''"))
}

fn quoted_key(key: &str) -> String {
    if key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) { key.to_owned() } else { quoted(key) }
}

/// The outcomes of `def is_done(resource)`, where it only chooses between results by conditions.
fn outcomes(text: &str) -> Option<Vec<(&'static str, String)>> {
    let mut lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
    let head = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let parameter = head.strip_prefix("def is_done(")?.strip_suffix("):")?.trim();
    let mut names = BTreeMap::from([(parameter.to_owned(), "object".to_owned())]);
    let mut passed: Vec<String> = Vec::new();
    let mut condition: Option<String> = None;
    let mut found: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let body = joined(lines.filter(|line| !line.is_empty() && !line.starts_with('#') && *line != "end"))?;
    for line in &body {
        if let Some(rest) = line.strip_prefix("return ") {
            let own = condition.take();
            let outcome = outcome(rest)?;
            if let Some(key) = outcome {
                let unmet = passed.iter().filter(|other| own.as_deref().is_none_or(|own| !excludes(own, other)));
                let unmet = unmet.map(|other| format!("!({other})"));
                let all: Vec<String> = unmet.chain(own.clone()).collect();
                found.entry(key).or_default().push(if all.is_empty() { "true".to_owned() } else { all.join(" && ") });
            }
            match own {
                Some(own) => passed.push(own),
                None => break,
            }
        } else if let Some(rest) = line.strip_prefix("if ").or_else(|| line.strip_prefix("elif ")) {
            condition = Some(translated(rest.strip_suffix(':')?, &names)?);
        } else if line == "else:" {
            condition = None;
        } else {
            let (name, value) = line.split_once(" = ")?;
            let value = translated(value, &names)?;
            names.insert(name.to_owned(), value);
        }
    }
    let keys = ["failed", "current", "unblock"];
    let outcomes: Vec<_> = keys.into_iter().filter_map(|key| Some((key, found.get(key)?.join(" || ")))).collect();
    let compiles = outcomes.iter().all(|(_, cel)| is_valid(cel, &["object"], Some(Gives::Truth)));
    (compiles && !outcomes.is_empty()).then_some(outcomes)
}

/// Lines in which every bracket is closed.
fn joined<'t>(lines: impl Iterator<Item = &'t str>) -> Option<Vec<String>> {
    let mut joined: Vec<String> = Vec::new();
    let mut open = 0_i64;
    for line in lines {
        if open > 0 {
            let last = joined.last_mut()?;
            last.push(' ');
            last.push_str(line);
        } else {
            joined.push(line.to_owned());
        }
        let count = |bracket: [char; 3]| i64::try_from(line.matches(bracket).count()).unwrap_or(0);
        open += count(['(', '[', '{']) - count([')', ']', '}']);
    }
    Some(joined)
}

/// What a result means; `None` inside for one that is not done.
fn outcome(result: &str) -> Option<Option<&'static str>> {
    let plain: String = result.chars().filter(|c| !c.is_whitespace()).collect();
    if !plain.starts_with('{') || !plain.ends_with('}') {
        return None;
    }
    let says = |key: &str, word: &str| plain.contains(&format!("\"{key}\":{word}"));
    match (says("done", "True"), says("successful", "True")) {
        (true, true) => Some(Some("current")),
        (true, false) => Some(Some("failed")),
        (false, _) if says("unblockChanges", "True") => Some(Some("unblock")),
        (false, _) if says("done", "False") => Some(None),
        (false, _) => None,
    }
}

/// Whether two conditions compare the same with different values, so that at most one holds.
fn excludes(one: &str, other: &str) -> bool {
    match (one.split_once(" == "), other.split_once(" == ")) {
        (Some((left, value)), Some((other, another))) => {
            let is_constant = |text: &str| text.starts_with('"') && text.matches('"').count() == 2;
            left == other && value != another && is_constant(value) && is_constant(another)
        }
        _ => false,
    }
}

/// The fields that an overlay sets (with the expression) or removes, where it does nothing else.
fn fields(text: &str) -> Option<Vec<(Vec<String>, Option<String>)>> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut found = Vec::new();
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut removes = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let trimmed = line.trim();
        if let Some(code) = trimmed.strip_prefix("#@") {
            let code = code.trim();
            removes |= code == "overlay/remove";
            let says_nothing = ["load(", "overlay/match", "overlay/remove", "!"];
            if !says_nothing.iter().any(|start| code.starts_with(start)) {
                let (name, value) = code.split_once(" = ")?;
                let value = translated(value, &names)?;
                names.insert(name.trim().to_owned(), value);
            }
            continue;
        }
        if trimmed == "---" || trimmed.starts_with("#!") {
            continue;
        }
        let depth = line.len() - line.trim_start().len();
        let (key, value) = trimmed.split_once(':')?;
        let key = key.trim_matches(['"', '\'']).to_owned();
        open.retain(|(other, _)| *other < depth);
        let path: Vec<String> = open.iter().map(|(_, key)| key.clone()).chain([key.clone()]).collect();
        open.push((depth, key));
        let value = value.trim();
        if std::mem::take(&mut removes) {
            found.push((path, None));
        } else if let Some(code) = value.strip_prefix("#@") {
            found.push((path, Some(translated(code.trim(), &names)?)));
        } else if !value.is_empty() {
            let literal = value.trim_matches(['"', '\'']);
            found.push((path, Some(format!("{literal:?}"))));
        }
    }
    let compiles = |(_, cel): &(Vec<String>, Option<String>)| {
        cel.as_ref().is_none_or(|cel| is_valid(cel, &["new", "existing", "current"], None))
    };
    (!found.is_empty() && found.iter().all(compiles)).then_some(found)
}

fn is_valid(cel: &str, variables: &[&'static str], gives: Option<Gives>) -> bool {
    let variables: Vec<Variable> = variables.iter().map(|name| Variable { name, schema: None }).collect();
    Expression::compile(cel, &variables, gives).is_ok()
}

/// An expression of Starlark in CEL, with these names replaced; `None` if it may mean something else there.
fn translated(expression: &str, names: &BTreeMap<String, String>) -> Option<String> {
    let mut cel = String::new();
    let mut rest = expression.trim();
    for (values, variable) in [("existing", "existing"), ("new", "new"), ("_current", "current")] {
        if rest.contains(&format!("data.values.{values}")) {
            let replaced = rest.replace(&format!("data.values.{values}"), variable);
            return translated(&replaced, names);
        }
    }
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => rest[1..].find(first)? + 2,
            c if c.is_alphabetic() || c == '_' => {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        let is_field = cel.ends_with('.');
        let after_name = after.trim_start();
        match word {
            "True" => cel.push_str("true"),
            "False" => cel.push_str("false"),
            "None" => cel.push_str("null"),
            "and" => cel.push_str("&&"),
            "or" => cel.push_str("||"),
            "not" if after_name.starts_with("in ") => return None,
            "not" => {
                cel.push('!');
                rest = after_name;
                continue;
            }
            "len" => cel.push_str("size"),
            "str" => cel.push_str("string"),
            "startswith" => cel.push_str("startsWith"),
            "endswith" => cel.push_str("endsWith"),
            "for" | "if" | "else" | "lambda" | "getattr" | "type" => return None,
            "hasattr" => {
                let (arguments, after) = after_name.strip_prefix('(')?.split_once(')')?;
                let (of, field) = arguments.split_once(',')?;
                let field = field.trim().trim_matches(['"', '\'']);
                cel.push_str(&format!("has({}.{field})", translated(of, names)?));
                rest = after;
                continue;
            }
            word if !is_field && names.contains_key(word) => {
                let value = &names[word];
                let is_simple = value.chars().all(|c| c.is_alphanumeric() || "._[]\"'/-".contains(c));
                cel.push_str(&if is_simple { value.clone() } else { format!("({value})") });
            }
            word => cel.push_str(word),
        }
        rest = after;
    }
    Some(cel)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn star(text: &str) -> String {
        wait_rule(&json!({"funcContractV1": {"resource.star": text}}))
    }

    fn overlay(text: &str) -> String {
        rebase_rule(&json!({"overlayContractV1": {"overlay.yml": text}}))
    }

    #[test]
    fn a_function_that_chooses_by_the_status_is_three_expressions() {
        let text = "def is_done(resource):\n    state = resource.status.currentState\n    if state == \"Failed\":\n      return \
                    {\"done\": True, \"successful\": False, \"message\": \"Current state as Failed\"}\n    elif state == \"Running\":\n      \
                    return {\"done\": True, \"successful\": True, \"message\": \"\"}\n    else:\n      return {\"done\": False, \
                    \"message\": \"Not in Failed or Running state\"}\n    end\nend\n";
        assert_eq!(
            star(text),
            "in CEL this rule is `cel: {failed: 'object.status.currentState == \"Failed\"', \
             current: 'object.status.currentState == \"Running\"'}`"
        );
        let text = "def is_done(r):\n  if not hasattr(r, \"status\"):\n    return {\"done\": False}\n  end\n  if len(r.status.parts) > 2 \
                    and r.status.ok == True:\n    return {\n      \"done\": True,\n      \"successful\": True,\n    }\n  end\n  return \
                    {\"done\": False, \"unblockChanges\": True}\nend\n";
        assert_eq!(
            star(text),
            "in CEL this rule is `cel: {current: '!(!has(r.status)) && size(r.status.parts) > 2 && r.status.ok == true', \
             unblock: '!(!has(r.status)) && !(size(r.status.parts) > 2 && r.status.ok == true)'}`"
                .replace("r.status", "object.status")
        );
    }

    #[test]
    fn an_overlay_that_sets_fields_is_a_rule_for_each() {
        let text = "#@ load(\"@ytt:overlay\", \"overlay\")\n#@ load(\"@ytt:data\", \"data\")\n#@ name = \
                    data.values.existing.metadata.annotations[\"ex.com/a\"]\n\n#@overlay/match by=overlay.all\n---\nmetadata:\n  \
                    annotations:\n    #@overlay/match missing_ok=True\n    ex.com/a: #@ name\n    #@overlay/remove\n    \
                    ex.com/b:\nspec:\n  replicas: #@ data.values.new.spec.replicas + 1\n";
        assert_eq!(
            overlay(text),
            "without ytt this rule is `path: [metadata, annotations, ex.com/a]` with `cel: \
             'existing.metadata.annotations[\"ex.com/a\"]'`, and another one with `path: [metadata, annotations, ex.com/b]` with \
             `type: remove`, and another one with `path: [spec, replicas]` with `cel: 'new.spec.replicas + 1'`"
        );
    }

    #[test]
    fn what_is_not_understood_is_not_translated() {
        let generic = star("");
        assert!(generic.starts_with("write it in CEL"), "{generic}");
        for text in [
            "def is_done(r):\n  for c in r.status.conditions:\n    return {\"done\": True}\n  end\nend",
            "load(\"a.star\", \"b\")\ndef is_done(r):\n  return b(r)\nend",
            "def is_done(r):\n  return helper(r)\nend",
            "def is_done(r):\n  if other.x == 1:\n    return {\"done\": True, \"successful\": True}\n  end\nend",
        ] {
            assert_eq!(star(text), generic, "{text}");
        }
        let generic = overlay("");
        for text in ["#@ def f():\n#@ end\n---\na: 1\n", "---\na: #@ [x for x in y]\n", "- a\n", "---\na: #@ other.x\n"]
        {
            assert_eq!(overlay(text), generic, "{text}");
        }
    }
}
