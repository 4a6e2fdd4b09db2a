//! Helm's annotations in rendered charts: hooks, which Helm would run at other times, and objects that Helm never deletes.

use pushback_manifest::{InputWarning, Manifest};
use pushback_objects::ObjectExt;
use serde_json::Value;

const HOOK: &str = "helm.sh/hook";

const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// Hooks that never run during an install or upgrade.
const HOOKS_OF_OTHER_COMMANDS: [&str; 7] =
    ["pre-delete", "post-delete", "pre-rollback", "post-rollback", "test", "test-success", "test-failure"];

/// Returns whether Helm would not create the object during an install or upgrade.
#[must_use]
pub fn is_hook_of_other_command(object: &Value) -> bool {
    let mut hooks = hooks(object).peekable();
    hooks.peek().is_some() && hooks.all(|hook| HOOKS_OF_OTHER_COMMANDS.contains(&hook))
}

/// Returns whether Helm keeps the object when it leaves the chart and when the release is uninstalled.
#[must_use]
pub fn is_kept(object: &Value) -> bool {
    object.annotation(RESOURCE_POLICY).is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

/// Removes hooks of other commands from the manifests. One warning names those, another one the hooks that are applied like
/// other objects.
pub fn leave_out_hooks(manifests: &mut Vec<Manifest>, warnings: &mut Vec<InputWarning>) {
    let left_out: Vec<Manifest> =
        manifests.extract_if(.., |manifest| is_hook_of_other_command(&manifest.value)).collect();
    let applied: Vec<&Manifest> = manifests.iter().filter(|manifest| hooks(&manifest.value).next().is_some()).collect();
    let left_out: Vec<&Manifest> = left_out.iter().collect();
    warnings.extend(warning(
        "helm-hook-left-out",
        "Helm does not run these hooks on install or upgrade; left out",
        &left_out,
    ));
    let message = "Helm hooks are applied and waited for like other objects, not before or after them, and not deleted \
        afterwards";
    warnings.extend(warning("helm-hook-applied", message, &applied));
}

fn warning(code: &'static str, message: &str, hooks_found: &[&Manifest]) -> Option<InputWarning> {
    let first = hooks_found.first()?;
    let name = |manifest: &&Manifest| {
        let hooks: Vec<&str> = hooks(&manifest.value).collect();
        format!("{} ({})", manifest.object, hooks.join(", "))
    };
    let names: Vec<String> = hooks_found.iter().map(name).collect();
    let path = ["metadata".into(), "annotations".into(), HOOK.into()];
    Some(InputWarning {
        code,
        message: format!("{message}: {}", names.join(", ")),
        position: first.positions.locate(&path),
    })
}

/// Returns the names in the annotation, which is a list separated by commas.
fn hooks(object: &Value) -> impl Iterator<Item = &str> {
    let names = object.annotation(HOOK).unwrap_or_default().split(',');
    names.map(str::trim).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hook_of_other_command_is_one_that_has_no_other_hook() {
        for (hook, expected) in [
            (json!("test"), true),
            (json!("pre-delete, post-rollback"), true),
            (json!("pre-upgrade,pre-delete"), false),
            (json!("pre-install"), false),
            (json!("unheard-of"), false),
            (json!(""), false),
            (json!(1), false),
        ] {
            let object = json!({"metadata": {"annotations": {HOOK: hook}}});
            assert_eq!(is_hook_of_other_command(&object), expected, "{object}");
        }
        assert!(!is_hook_of_other_command(&json!({})));
    }

    #[test]
    fn object_with_policy_keep_is_kept() {
        for (policy, expected) in [("keep", true), ("Keep ", true), ("delete", false), ("", false)] {
            let object = json!({"metadata": {"annotations": {RESOURCE_POLICY: policy}}});
            assert_eq!(is_kept(&object), expected, "{policy}");
        }
    }
}
