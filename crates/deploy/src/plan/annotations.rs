//! kapp's annotations on an object: how it is created, updated, deleted, ordered and waited for.
//! An annotation without effect is told.

use std::time::Duration;

use pushback_manifest::{InputError, InputWarning};
use pushback_objects::duration::parse as parse_duration;
use pushback_objects::object::split_api_version;
use pushback_objects::suggest::nearest;
use pushback_objects::{ObjectKey, PathSegment, Positions};
use serde::Deserialize;
use serde_json::Value;

use super::{Action, Difference, deploy_logs, helm};

pub const PREFIX: &str = "kapp.k14s.io/";

/// Set by kapp or pushback, not by users; in an input they come from a dump of a live object.
pub const WRITTEN: [&str; 7] = [
    "identity",
    "original",
    "original-diff",
    "original-diff-full",
    "original-diff-md5",
    "last-renewed-time",
    "is-configmap-migrated",
];

/// The accepted annotations, and the accepted values of each; an empty list accepts any. Those in
/// `SUFFIXED` also accept a suffix.
pub const ACCEPTED: [(&str, &[&str]); 25] = [
    ("create-strategy", &["", "fallback-on-update", "fallback-on-update-or-noop"]),
    ("update-strategy", &["", "fallback-on-replace", "always-replace", "skip"]),
    ("delete-strategy", &["", "orphan"]),
    ("owned-for-deletion", &[""]),
    ("nonce", &[""]),
    ("exists", &[""]),
    ("noop", &[""]),
    ("disable-wait", &[]),
    ("disable-associated-resources-wait", &[""]),
    ("disable-default-change-group-and-rules", &[]),
    ("disable-default-ownership-label-rules", &[]),
    ("disable-default-label-scoping-rules", &[]),
    ("disable-label-scoping", &[]),
    ("apps-v1-deployment-wait-minimum-replicas-available", &[]),
    ("change-group", &[]),
    ("change-rule", &[]),
    ("versioned", &[]),
    ("versioned-keep-original", &[]),
    ("num-versions", &[]),
    ("versioned-explicit-ref", &[]),
    ("renew-duration", &[]),
    ("disable-original", &[]),
    ("deploy-logs", &deploy_logs::WHOSE),
    ("deploy-logs-container-names", &[]),
    ("disable-default-secretgen-rebase-rules", &[]),
];

/// Annotations that may be repeated with a suffix, `change-group.db`.
const SUFFIXED: [&str; 3] = ["change-group", "change-rule", "versioned-explicit-ref"];

/// How an object is updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdateStrategy {
    /// Server-side apply.
    #[default]
    Apply,
    /// Delete and create if the server calls the update invalid.
    FallbackOnReplace,
    /// Delete and create.
    AlwaysReplace,
    /// Never update.
    Skip,
}

impl UpdateStrategy {
    /// The action for an update with this strategy.
    pub(super) fn action(self, difference: Box<Difference>) -> Action {
        match self {
            Self::AlwaysReplace => Action::Replace(difference),
            Self::Apply | Self::FallbackOnReplace | Self::Skip => Action::Update(difference),
        }
    }

    /// Parses the name; server-side apply for any other.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name {
            "fallback-on-replace" => Self::FallbackOnReplace,
            "always-replace" => Self::AlwaysReplace,
            "skip" => Self::Skip,
            _ => Self::Apply,
        }
    }
}

/// What becomes of an object that somebody else creates between the plan and the write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CreateStrategy {
    /// It is not written, and the plan is made anew where nothing has been written yet.
    #[default]
    Create,
    /// It is updated.
    FallbackOnUpdate,
    /// It is updated where it differs.
    FallbackOnUpdateOrNoop,
}

/// What an object's annotations request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strategies {
    /// `update-strategy`.
    pub update: UpdateStrategy,
    /// `create-strategy`.
    pub create: CreateStrategy,
    /// `delete-strategy: orphan`.
    pub orphan: bool,
    /// Helm's `resource-policy: keep`, of a live object.
    pub kept_by_helm: bool,
    /// `owned-for-deletion`.
    pub owned_for_deletion: bool,
    /// `nonce`.
    pub nonce: bool,
    /// `exists`.
    pub exists: bool,
    /// `noop`: never write the object, but keep it in the app.
    pub noop: bool,
    /// `disable-wait`.
    pub disable_wait: bool,
    /// `disable-associated-resources-wait`: do not search for causes below the object.
    pub disable_associated_wait: bool,
    /// `disable-default-change-group-and-rules`.
    pub no_default_order: bool,
    /// `disable-default-ownership-label-rules`.
    pub no_ownership_labels: bool,
    /// `disable-default-label-scoping-rules`.
    pub no_label_scoping: bool,
    /// `disable-original`: without kapp's copy of the manifest.
    pub no_original: bool,
    /// `change-group`, each with its annotation key.
    pub change_groups: Vec<(String, String)>,
    /// `change-rule`, each with its annotation key.
    pub change_rules: Vec<(String, String)>,
    /// `versioned`: the name gets a version, and a change is a new object.
    pub versioned: bool,
    /// `versioned-keep-original`: an object under the plain name as well.
    pub keep_original: bool,
    /// `num-versions`: how many older versions stay.
    pub num_versions: Option<usize>,
    /// `renew-duration`: how long after its last renewal the object is written again.
    pub renew_after: Option<Duration>,
    /// `versioned-explicit-ref`, each with its annotation key.
    pub explicit_references: Vec<(String, ExplicitReference)>,
}

impl Strategies {
    /// Drops the requests that make an applied object differ from its manifest: the base was not applied.
    pub fn take_literally(&mut self) {
        self.versioned = false;
        self.nonce = false;
        self.renew_after = None;
    }
}

/// A reference to a versioned object that only an annotation tells.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExplicitReference {
    /// API version of the object; only its group counts.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object in the input.
    pub name: String,
    /// Its namespace, if it is not that of the object that refers.
    #[serde(default)]
    pub namespace: String,
}

impl ExplicitReference {
    /// The identities that it may mean: in the given namespace unless it names one, or cluster-scoped.
    #[must_use]
    pub fn keys(&self, namespace: &str) -> [ObjectKey; 2] {
        let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
        [namespace, ""].map(|namespace| ObjectKey {
            group: split_api_version(&self.api_version).0.to_owned(),
            kind: self.kind.clone(),
            namespace: namespace.to_owned(),
            name: self.name.clone(),
        })
    }

    /// As kapp writes it.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut text = format!("apiVersion: {}\nkind: {}\nname: {}\n", self.api_version, self.kind, self.name);
        if !self.namespace.is_empty() {
            text.push_str(&format!("namespace: {}\n", self.namespace));
        }
        text
    }
}

/// Reads the annotations of an input object.
///
/// # Errors
/// Every annotation that has an invalid value.
pub fn read(object: &Value, positions: &Positions) -> Result<Strategies, Vec<InputError>> {
    let mut strategies = Strategies::default();
    let mut errors = deploy_logs::check_templates(object, positions);
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        let Some(name) = key.strip_prefix(PREFIX) else { continue };
        let value = value.as_str().unwrap_or_default();
        if let Err((message, hints)) = read_one(&mut strategies, key, name, value) {
            let path: [PathSegment; 3] = ["metadata".into(), "annotations".into(), key.as_str().into()];
            errors.push(InputError { message, position: positions.locate(&path), hints });
        }
    }
    if errors.is_empty() { Ok(strategies) } else { Err(errors) }
}

/// Reads the annotations of a live object, which control its deletion; unknown ones are ignored.
#[must_use]
pub fn read_live(object: &Value) -> Strategies {
    let mut strategies = Strategies { kept_by_helm: helm::is_kept(object), ..Strategies::default() };
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        if let Some(name) = key.strip_prefix(PREFIX) {
            let _ = read_one(&mut strategies, key, name, value.as_str().unwrap_or_default());
        }
    }
    strategies
}

fn read_one(strategies: &mut Strategies, key: &str, name: &str, value: &str) -> Result<(), (String, Vec<String>)> {
    let Some((known, allowed)) = ACCEPTED.iter().find(|(known, _)| *known == name || takes_suffix(known, name)) else {
        return Ok(());
    };
    if !allowed.is_empty() && !allowed.contains(&value) {
        let words = allowed.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
        return Err((format!("annotation {key} is {value:?}, expected {words}"), Vec::new()));
    }
    match *known {
        "create-strategy" => {
            strategies.create = match value {
                "fallback-on-update" => CreateStrategy::FallbackOnUpdate,
                "fallback-on-update-or-noop" => CreateStrategy::FallbackOnUpdateOrNoop,
                _ => CreateStrategy::Create,
            };
        }
        "update-strategy" => strategies.update = UpdateStrategy::of(value),
        "delete-strategy" => strategies.orphan = value == "orphan",
        "owned-for-deletion" => strategies.owned_for_deletion = true,
        "nonce" => strategies.nonce = true,
        "exists" => strategies.exists = true,
        "noop" => strategies.noop = true,
        "disable-wait" => strategies.disable_wait = true,
        "disable-associated-resources-wait" => strategies.disable_associated_wait = true,
        "disable-default-change-group-and-rules" => strategies.no_default_order = true,
        "disable-default-ownership-label-rules" => strategies.no_ownership_labels = true,
        "disable-default-label-scoping-rules" | "disable-label-scoping" => strategies.no_label_scoping = true,
        "change-group" => strategies.change_groups.push((key.to_owned(), value.to_owned())),
        "change-rule" => strategies.change_rules.push((key.to_owned(), value.to_owned())),
        "versioned" => strategies.versioned = true,
        "versioned-keep-original" => strategies.keep_original = true,
        "disable-original" => strategies.no_original = true,
        "num-versions" => {
            let number = value.parse().ok().filter(|number| *number > 0);
            let expected = || (format!("annotation {key} is {value:?}, expected a number of at least 1"), Vec::new());
            strategies.num_versions = Some(number.ok_or_else(expected)?);
        }
        "renew-duration" => {
            let expected =
                || (format!("annotation {key} is {value:?}, expected a duration such as \"720h\""), Vec::new());
            strategies.renew_after = Some(parse_duration(value).filter(|after| !after.is_zero()).ok_or_else(expected)?);
        }
        "versioned-explicit-ref" => {
            let reference = serde_yaml::from_str(value).map_err(|error| {
                let hint = "write it as `apiVersion: v1`, `kind: ConfigMap`, `name: settings`, each on its own line";
                (format!("annotation {key} is no reference to an object: {error}"), vec![hint.to_owned()])
            })?;
            strategies.explicit_references.push((key.to_owned(), reference));
        }
        // Evaluated with readiness, or without an effect.
        _ => {}
    }
    Ok(())
}

/// Warns of kapp's annotations that have no effect: misspelt ones above all.
#[must_use]
pub fn without_effect(object: &Value, positions: &Positions) -> Vec<InputWarning> {
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let keys = annotations.into_iter().flatten().map(|(key, _)| key);
    let names = keys.filter_map(|key| Some((key, key.strip_prefix(PREFIX)?)));
    let is_known = |name: &str| {
        WRITTEN.contains(&name) || ACCEPTED.iter().any(|(known, _)| *known == name || takes_suffix(known, name))
    };
    let warning = |(key, name): (&String, &str)| {
        let known = nearest(name, ACCEPTED.iter().map(|(known, _)| *known));
        let meant = known.map(|known| format!("; did you mean {PREFIX}{known}?")).unwrap_or_default();
        let why = format!("kapp has no such annotation{meant}");
        let path: [PathSegment; 3] = ["metadata".into(), "annotations".into(), key.as_str().into()];
        InputWarning {
            code: "annotation",
            message: format!("annotation {key} has no effect: {why}"),
            position: positions.locate(&path),
        }
    };
    names.filter(|(_, name)| !is_known(name)).map(warning).collect()
}

fn takes_suffix(known: &str, name: &str) -> bool {
    SUFFIXED.contains(&known) && is_named(name, known)
}

/// Whether this is `change-group` itself, or has a suffix that makes it unique, `change-group.db`.
fn is_named(name: &str, wanted: &str) -> bool {
    name.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether an annotation is bookkeeping that must not travel with a copied manifest.
#[must_use]
pub fn is_bookkeeping(key: &str) -> bool {
    key.strip_prefix(PREFIX).is_some_and(|name| WRITTEN.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(key: &str, value: &str) -> Value {
        json!({"metadata": {"annotations": {key: value}}})
    }

    fn error(key: &str, value: &str) -> String {
        read(&object(key, value), &Positions::of_file("a.yaml")).expect_err("refused")[0].message.clone()
    }

    #[test]
    fn known_annotations_are_read() {
        let read = |key: &str, value: &str| read(&object(key, value), &Positions::of_file("a.yaml")).expect("accepted");
        assert_eq!(read("kapp.k14s.io/update-strategy", "always-replace").update, UpdateStrategy::AlwaysReplace);
        assert!(read("kapp.k14s.io/delete-strategy", "orphan").orphan);
        assert_eq!(read("kapp.k14s.io/change-rule.db", "upsert after upserting x").change_rules.len(), 1);
        assert_eq!(read("example.com/anything", "x"), Strategies::default());
    }

    #[test]
    fn what_has_no_effect_is_told_and_what_is_wrong_is_refused() {
        let told = |key: &str| {
            let warnings = without_effect(&object(key, ""), &Positions::of_file("a.yaml"));
            warnings.into_iter().map(|warning| warning.message).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(
            told("kapp.k14s.io/chnage-group"),
            "annotation kapp.k14s.io/chnage-group has no effect: kapp has no such annotation; did you mean \
             kapp.k14s.io/change-group?"
        );
        assert!(told("kapp.k14s.io/zzz").ends_with("kapp has no such annotation"));
        assert_eq!(told("kapp.k14s.io/change-rule.db") + &told("kapp.k14s.io/original") + &told("example.com/a"), "");
        assert_eq!(
            error("kapp.k14s.io/update-strategy", "replace"),
            "annotation kapp.k14s.io/update-strategy is \"replace\", expected \"\", \"fallback-on-replace\", \
             \"always-replace\", \"skip\""
        );
    }
}
