//! The Kubernetes releases since which the API server knows a feature of CRDs. The one table for all checks that are asked
//! about another version than the newest one.
//!
//! Follows k8s.io/apiserver `pkg/cel/environment/base.go`: an expression may use a library from the release after the one
//! that introduced it. The limits of costs have been the same since rules are on by default.

/// A list of names and the minor release since which they are known: 34 for 1.34.
type Since = (u32, &'static [&'static str]);

/// Validation ratcheting.
pub(super) const RATCHETING: u32 = 30;

/// String formats that are newer than rules, without hyphens. Earlier releases accept any text in them.
const FORMATS: [Since; 1] = [(34, &["k8sshortname", "k8slongname"])];

/// Fields of a CRD. Earlier releases reject the field, or remove it without an error while it is behind a feature gate.
const FIELDS: [Since; 5] = [
    (25, &["x-kubernetes-validations"]),
    (27, &["messageExpression"]),
    (28, &["reason", "fieldPath"]),
    (30, &["optionalOldSelf"]),
    (31, &["selectableFields"]),
];

/// Functions of CEL that create the values of their library, or belong to one without such values. `.` and `*` stand for all
/// functions below a name.
const FUNCTIONS: [Since; 7] = [
    (29, &["quantity", "isQuantity", "optional.*", "optMap", "optFlatMap", OPTIONAL]),
    (30, &["format", "strings.quote", "sets.*"]),
    (31, &["ip", "isIP", "ip.isCanonical", "cidr", "isCIDR"]),
    (32, &["format.*"]),
    (33, &[TWO_VARIABLES, "transformList", "transformMap", "transformMapEntry"]),
    (34, &["semver", "isSemver"]),
    (35, &["slice", "flatten", "reverse", "distinct", "sort", "sortBy", "lists.range"]),
];

/// Optional fields and indices: `a.?b`, `a[?0]`.
pub(super) const OPTIONAL: &str = "optional selection";

/// Macros with two variables: `list.all(index, value, …)`.
pub(super) const TWO_VARIABLES: &str = "macros with two variables";

fn since(table: &[Since], name: &str) -> Option<u32> {
    let library = name.split_once('.').map(|(library, _)| format!("{library}.*"));
    let is_name = |known: &&str| *known == name || library.as_deref() == Some(*known);
    table.iter().find(|(_, names)| names.iter().any(is_name)).map(|(since, _)| *since)
}

/// Returns the first release that knows a field of a CRD; `None` if all releases know it.
pub(super) fn of_field(name: &str) -> Option<u32> {
    since(&FIELDS, name)
}

/// Returns the first release that knows a string format; `None` if all releases know it.
pub(super) fn of_format(name: &str) -> Option<u32> {
    since(&FORMATS, name)
}

/// Returns the first release whose rules may use a function, macro or operator of CEL; `None` if all releases may.
pub(super) fn of_function(name: &str) -> Option<u32> {
    since(&FUNCTIONS, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_libraries_are_found() {
        assert_eq!(
            [of_function("semver"), of_function("sets.contains"), of_function("size")],
            [Some(34), Some(30), None]
        );
        assert_eq!([of_function("format"), of_function("format.uri")], [Some(30), Some(32)]);
        assert_eq!([of_field("selectableFields"), of_field("versions")], [Some(31), None]);
        assert_eq!([of_format("k8sshortname"), of_format("date")], [Some(34), None]);
    }
}
