//! Arguments that select a part of an app, or limit what is written, under kapp's names.

use clap::Args;
use pushback_deploy::plan::filter::{Age, ChangeFilter, Criteria, ObjectFilter, Pattern, Tree};
use pushback_deploy::plan::live::Scope;
use pushback_deploy::plan::part::Selection;
use pushback_events::RunFailure;
use pushback_preflight::selector::LabelSelector;
use pushback_system::environment::wall_clock;

use crate::run::app_name::namespace;
use crate::run::error::CommandError;
use crate::run::options::Allowed;

/// Value of `--filter`, if it is not empty.
#[derive(Clone, Debug, Default)]
pub struct ObjectTree(Option<Tree<Criteria>>);

/// Which objects.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct FilterArgs {
    /// Only objects that this JSON selects, with and, or, not and resource:
    /// {"and": [{"not": {"resource": {"kinds": ["Secret"]}}}, {"resource": {"namespaces": ["shop"]}}]}
    #[arg(long, value_name = "JSON", value_parser = tree, default_value = "", hide_default_value = true,
          hide_short_help = true)]
    pub filter: ObjectTree,
    /// Only objects younger (5m-) or older (500h+) than this
    #[arg(long, value_name = "AGE", hide_short_help = true)]
    pub filter_age: Option<String>,
    /// Only objects of these kinds; as in all these lists * stands for anything at the start or the end, and ! in front
    /// for all others. The rest of the app stays as it is
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub filter_kind: Vec<String>,
    /// Only these objects, KIND/NAME
    #[arg(long, value_name = "OBJECTS", value_delimiter = ',', hide_short_help = true)]
    pub filter_kind_name: Vec<String>,
    /// Only objects of these kinds in these namespaces, KIND/NAMESPACE; KIND/ for cluster-scoped ones
    #[arg(long, value_name = "KINDS", value_delimiter = ',', hide_short_help = true)]
    pub filter_kind_ns: Vec<String>,
    /// Only these objects, KIND/NAMESPACE/NAME
    #[arg(long, value_name = "OBJECTS", value_delimiter = ',', hide_short_help = true)]
    pub filter_kind_ns_name: Vec<String>,
    /// Only objects that one of these label selectors selects
    #[arg(long, value_name = "SELECTORS", hide_short_help = true)]
    pub filter_labels: Vec<String>,
    /// Only objects with these names
    #[arg(long, value_name = "NAMES", value_delimiter = ',', hide_short_help = true)]
    pub filter_name: Vec<String>,
    /// Only objects in these namespaces
    #[arg(long, value_name = "NAMES", value_delimiter = ',', hide_short_help = true)]
    pub filter_ns: Vec<String>,
    /// Look for the app's objects in the namespaces that its record and the input name, and nowhere else, even where the
    /// user may list them in the whole cluster
    #[arg(long, hide_short_help = true)]
    pub dangerous_scope_to_fallback_allowed_namespaces: bool,
}

/// Which changes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct ChangeFilterArgs {
    /// Only changes that this JSON selects, with and, or, not, ops, existingResource and newResource:
    /// {"and": [{"ops": ["update"]}, {"existingResource": {"kinds": ["Deployment"]}}]}
    #[arg(long, value_name = "JSON", value_parser = ChangeFilter::parse, default_value = "", hide_default_value = true,
          hide_short_help = true)]
    pub diff_filter: ChangeFilter,
}

/// The part of an app.
#[derive(Clone, Debug, Default, Args)]
pub struct SelectionArgs {
    #[command(flatten)]
    pub filters: FilterArgs,
    #[command(flatten)]
    pub change_filter: ChangeFilterArgs,
}

impl SelectionArgs {
    /// Converts the arguments to a selection.
    ///
    /// # Errors
    /// An age, a label selector or a list of parts cannot be read.
    pub fn resolve(self) -> Result<Selection, CommandError> {
        let scope = self.filters.scope();
        Ok(Selection { scope, objects: self.filters.resolve()?, changes: self.change_filter.diff_filter })
    }
}

/// Where something may be written.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Plan")]
pub struct AllowArgs {
    /// Refuse objects in other namespaces than those of --allow-ns, --into-ns, --map-ns and --namespace, and
    /// cluster-scoped ones
    #[arg(long, hide_short_help = true)]
    pub allow_check: bool,
    /// With --allow-check: allow objects in these namespaces
    #[arg(long, value_name = "NAMES", value_parser = namespace, value_delimiter = ',', hide_short_help = true)]
    pub allow_ns: Vec<String>,
    /// With --allow-check: allow objects in all namespaces
    #[arg(long, hide_short_help = true)]
    pub allow_all_ns: bool,
    /// With --allow-check: allow cluster-scoped objects
    #[arg(long, hide_short_help = true)]
    pub allow_cluster: bool,
}

impl AllowArgs {
    /// Resolves to what may be written; `None` if everything may.
    #[must_use]
    pub fn resolve(self) -> Option<Allowed> {
        let namespaces = (!self.allow_all_ns).then(|| given(self.allow_ns).collect());
        self.allow_check.then_some(Allowed { namespaces, cluster_scoped: self.allow_cluster })
    }
}

impl FilterArgs {
    /// Where objects are looked for.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self.dangerous_scope_to_fallback_allowed_namespaces {
            true => Scope::KnownNamespaces,
            false => Scope::Cluster,
        }
    }

    /// Resolves to a filter.
    ///
    /// # Errors
    /// An age, a label selector or a list of parts cannot be read.
    pub fn resolve(self) -> Result<ObjectFilter, CommandError> {
        let patterns = |texts: Vec<String>| given(texts).map(|text| Pattern::new(&text)).collect::<Vec<_>>();
        let age = self.filter_age.unwrap_or_default();
        let wrong = |flag: &str, message: String| CommandError::usage(format!("--{flag}: {message}"));
        let created = if age.is_empty() { Ok(Age::default()) } else { Age::parse(&age, wall_clock()) };
        let criteria = Criteria {
            created: created.map_err(|message| {
                wrong("filter-age", message).because(RunFailure::Flag { flag: "--filter-age", value: age })
            })?,
            kinds: patterns(self.filter_kind),
            namespaces: patterns(self.filter_ns),
            names: patterns(self.filter_name),
            kind_names: parts("filter-kind-name", "KIND/NAME", self.filter_kind_name)?,
            kind_namespaces: parts("filter-kind-ns", "KIND/NAMESPACE", self.filter_kind_ns)?,
            kind_namespace_names: parts("filter-kind-ns-name", "KIND/NAMESPACE/NAME", self.filter_kind_ns_name)?,
            labels: self
                .filter_labels
                .iter()
                .flat_map(|text| selectors(text))
                .map(|text| LabelSelector::parse(text).map_err(|error| wrong("filter-labels", error.to_string())))
                .collect::<Result<_, _>>()?,
        };
        Ok(ObjectFilter { criteria, tree: self.filter.0 })
    }
}

fn tree(text: &str) -> Result<ObjectTree, String> {
    Ok(ObjectTree(if text.is_empty() { None } else { Some(ObjectFilter::tree_of(text)?) }))
}

/// Scripts pass flags that may be empty.
fn given(texts: Vec<String>) -> impl Iterator<Item = String> {
    texts.into_iter().filter(|text| !text.is_empty())
}

fn parts<const N: usize>(flag: &str, form: &str, texts: Vec<String>) -> Result<Vec<[Pattern; N]>, CommandError> {
    let read = |text: String| {
        Pattern::parts(&text).ok_or_else(|| CommandError::usage(format!("--{flag}: expected {form}, not {text}")))
    };
    given(texts).map(read).collect()
}

/// Splits at commas, except within parentheses: `a=b,c in (d,e)` are two selectors, as in kapp.
fn selectors(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let split = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    split.filter(|text| !text.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_are_split_where_one_ends() {
        assert_eq!(selectors("a=b,c in (d,e),!f"), ["a=b", "c in (d,e)", "!f"]);
        assert!(selectors("").is_empty());
    }

    #[test]
    fn empty_flags_select_everything() {
        let empty = || vec![String::new()];
        let arguments = FilterArgs {
            filter_age: Some(String::new()),
            filter_kind: empty(),
            filter_labels: empty(),
            filter_kind_name: empty(),
            ..FilterArgs::default()
        };
        assert!(arguments.resolve().expect("no filter").is_empty());
    }
}
