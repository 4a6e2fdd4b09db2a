//! Checks whether a folder of models is complete for one version of a release: mandatory fields, definitions, the name
//! of the folder, and contradictions between models.

use pushback_objects::source::{Document, InputError, Position};
use serde::Serialize;

use super::model::Operator;
use super::model_file;

/// A folder of models.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    /// Name of the folder, without its parents.
    pub name: String,
    /// Path of the folder, for messages.
    pub position: Position,
    /// Model files in the folder.
    pub models: Vec<Document>,
    /// Number of CustomResourceDefinitions in `crds/`.
    pub definitions: usize,
}

/// A check and the problems that it found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// `models`, `metadata`, `crds`, `directory` or `operators`.
    pub name: &'static str,
    /// The question that the check answers.
    pub asks: &'static str,
    /// The problems; empty if the check passes.
    pub problems: Vec<InputError>,
}

/// All checks, in the order of the report.
#[must_use]
pub fn check(folder: &Folder) -> Vec<Check> {
    let (operators, mut models) = model_file::read(&folder.models);
    if folder.models.is_empty() {
        let hint = "a model is a document with `operator:` and `components:`";
        models.push(problem(&folder.position, "there is no model".to_owned(), hint));
    }
    let metadata = operators.iter().flat_map(metadata).collect();
    let mut crds = Vec::new();
    if folder.definitions == 0 {
        let hint = "put the CustomResourceDefinitions of the release there, a file each";
        crds.push(problem(&folder.position, "there is no CustomResourceDefinition in crds/".to_owned(), hint));
    }
    let directory = operators.iter().filter_map(|operator| directory(folder, operator)).collect();
    let (_, conflicts) = model_file::merge(operators);
    vec![
        Check { name: "models", asks: "every model can be read", problems: models },
        Check { name: "metadata", asks: "every model names version, platform and olmChannel", problems: metadata },
        Check { name: "crds", asks: "definitions stand in crds/", problems: crds },
        Check {
            name: "directory",
            asks: "the name of the directory is the version of every model",
            problems: directory,
        },
        Check { name: "operators", asks: "models of one operator do not contradict each other", problems: conflicts },
    ]
}

fn problem(position: &Position, message: String, hint: &str) -> InputError {
    InputError { message, position: position.clone(), hints: vec![hint.to_owned()] }
}

fn metadata(operator: &Operator) -> Vec<InputError> {
    let fields =
        [("version", &operator.version), ("platform", &operator.platform), ("olmChannel", &operator.olm_channel)];
    let missing = fields.into_iter().filter(|(_, value)| value.is_empty());
    missing
        .map(|(field, _)| {
            let message = format!("operator {:?} has no {field}", operator.name);
            problem(&operator.position, message, &format!("add `{field}:` below `operator:`"))
        })
        .collect()
}

/// `odh-v2.10` matches all versions `2.10…` of the platform `odh`.
fn directory(folder: &Folder, operator: &Operator) -> Option<InputError> {
    let is_named = !operator.version.is_empty();
    if !is_named || names_version(&folder.name, &operator.platform, &operator.version) {
        return None;
    }
    let message = format!(
        "operator {:?} has version {:?}, and the directory is called {:?}",
        operator.name, operator.version, folder.name
    );
    let hint =
        format!("call the directory v{}, with the platform and a dash before it where you like", operator.version);
    Some(problem(&operator.position, message, &hint))
}

/// Whether a name is a version or a prefix of it, part by part, after an optional platform and an optional `v`.
fn names_version(name: &str, platform: &str, version: &str) -> bool {
    let bare = |text: &str| text.strip_prefix(['v', 'V']).unwrap_or(text).to_owned();
    let dashed = format!("{}-", platform.to_lowercase());
    let without = name.to_lowercase().strip_prefix(&dashed).filter(|_| !platform.is_empty()).map(str::to_owned);
    let version = bare(version).to_lowercase();
    [Some(name.to_lowercase()), without].into_iter().flatten().any(|name| {
        let name = bare(&name);
        let rest = version.strip_prefix(&name);
        !name.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+']))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pushback_objects::source::Positions;
    use serde_json::{Value, json};

    use super::*;

    fn model(change: impl Fn(&mut Value)) -> Document {
        let mut value = json!({
            "operator": {"name": "o", "namespace": "n", "version": "2.10.0", "platform": "odh", "olmChannel": "stable"},
            "components": [{
                "name": "c",
                "controller": "K",
                "managedResources": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}],
            }],
            "recovery": {"reconcileTimeout": "300s", "maxReconcileCycles": 10},
        });
        change(&mut value);
        Document { value, positions: Arc::new(Positions::of_file("m.yaml")) }
    }

    fn folder(models: Vec<Document>) -> Folder {
        let position = Position { file: "knowledge/v2.10".to_owned(), ..Position::default() };
        Folder { name: "v2.10".to_owned(), position, models, definitions: 1 }
    }

    fn problems(folder: &Folder) -> Vec<String> {
        let checks = check(folder);
        let problem =
            |check: &Check, problem: &InputError| format!("{}: {}: {}", check.name, problem.position, problem.message);
        checks
            .iter()
            .flat_map(|found| found.problems.iter().map(|one| problem(found, one)).collect::<Vec<_>>())
            .collect()
    }

    #[test]
    fn a_complete_folder_has_no_problem() {
        assert_eq!(problems(&folder(vec![model(|_| {})])), [""; 0]);
    }

    #[test]
    fn each_check_says_what_is_missing() {
        let bare = model(|value| {
            for field in ["version", "platform", "olmChannel"] {
                value["operator"].as_object_mut().unwrap().remove(field);
            }
        });
        let mut without = folder(vec![bare]);
        without.definitions = 0;
        assert_eq!(
            problems(&without),
            [
                "metadata: m.yaml: operator \"o\" has no version",
                "metadata: m.yaml: operator \"o\" has no platform",
                "metadata: m.yaml: operator \"o\" has no olmChannel",
                "crds: knowledge/v2.10: there is no CustomResourceDefinition in crds/",
            ]
        );
        let other = model(|value| value["operator"]["version"] = json!("2.11.0"));
        assert_eq!(
            problems(&folder(vec![other])),
            ["directory: m.yaml: operator \"o\" has version \"2.11.0\", and the directory is called \"v2.10\""]
        );
        assert_eq!(problems(&folder(vec![])), ["models: knowledge/v2.10: there is no model"]);
        let wrong = model(|value| value["operator"]["versoin"] = json!("2.10.0"));
        assert_eq!(problems(&folder(vec![wrong])), ["models: m.yaml: operator.versoin: unknown key"]);
    }

    type Edit = fn(&mut Value);

    #[test]
    fn models_of_one_operator_merge_unless_they_contradict_each_other() {
        let second = |change: Edit| {
            model(|value| {
                value["components"][0]["name"] = json!("other");
                change(value);
            })
        };
        assert_eq!(problems(&folder(vec![model(|_| {}), second(|_| {})])), [""; 0]);
        let conflicts: [(Edit, &str); 6] = [
            (
                |it| it["operator"]["namespace"] = json!("m"),
                "operator \"o\" has namespace \"m\" here and \"n\" at m.yaml",
            ),
            (
                |it| it["operator"]["version"] = json!("2.10.1"),
                "operator \"o\" has version \"2.10.1\" here and \"2.10.0\" at m.yaml",
            ),
            (
                |it| it["operator"]["platform"] = json!("x"),
                "operator \"o\" has platform \"x\" here and \"odh\" at m.yaml",
            ),
            (
                |it| it["operator"]["olmChannel"] = json!("x"),
                "operator \"o\" has olmChannel \"x\" here and \"stable\" at m.yaml",
            ),
            (
                |it| it["components"][0]["name"] = json!("c"),
                "component \"c\" of operator \"o\" is already given at m.yaml",
            ),
            (
                |it| it["recovery"]["maxReconcileCycles"] = json!(3),
                "operator \"o\" has another recovery here than at m.yaml",
            ),
        ];
        for (change, message) in conflicts {
            assert_eq!(
                problems(&folder(vec![model(|_| {}), second(change)])),
                [format!("operators: m.yaml: {message}")]
            );
        }
        // Another operator does not matter.
        let other = second(|it| {
            it["operator"]["name"] = json!("p");
            it["operator"]["namespace"] = json!("m");
        });
        assert_eq!(problems(&folder(vec![model(|_| {}), other])), [""; 0]);
    }

    #[test]
    fn a_directory_names_a_version_or_the_beginning_of_it() {
        for (name, platform, version) in [
            ("v2.10", "odh", "2.10.0"),
            ("odh-v2.10", "odh", "2.10.0"),
            ("ODH-v2.10.0", "odh", "v2.10.0"),
            ("2", "", "2.10.0"),
            ("v3.3", "rhoai", "3.3.1-rc.1"),
            ("v3.3.1", "rhoai", "3.3.1+build"),
        ] {
            assert!(names_version(name, platform, version), "{name} {version}");
        }
        for (name, platform, version) in [
            ("v2.1", "odh", "2.10.0"),
            ("rhoai-v2.10", "odh", "2.10.0"),
            ("v2.10.0.1", "odh", "2.10.0"),
            ("v2.11", "odh", "2.10.0"),
            ("knowledge", "", "2.10.0"),
            ("v", "", "2.10.0"),
            ("", "", "2.10.0"),
        ] {
            assert!(!names_version(name, platform, version), "{name} {version}");
        }
    }
}
