//! Effects of a change on objects and on requests.

use super::*;

/// Findings for a change of `spec.a`, beside a `spec.b` that gets shorter, with a rule of `spec`.
fn changed(old: &Value, new: &Value, rule: &str) -> RunReport {
    let with = |a: &Value, most: u32| {
        edited(|crd| {
            let spec = crd["spec"].as_object_mut().expect("an object");
            spec["versions"].as_array_mut().expect("versions").truncate(1);
            let version = &mut spec["versions"][0];
            version["subresources"] = json!({});
            version["selectableFields"] = json!([]);
            version["additionalPrinterColumns"] = json!([]);
            let fields = json!({"a": a, "b": {"type": "string", "maxLength": most}});
            version["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({
                "type": "object", "properties": fields, "x-kubernetes-validations": [{"rule": rule}],
            });
        })
    };
    let mut old = with(old, 9);
    old["status"] = json!({"storedVersions": ["v1"]});
    run_with(vec![update(old, with(new, 8))], &json!({}), Ok(Vec::new()))
}

fn found<'r>(report: &'r RunReport, path: &str) -> &'r Finding {
    let is_there = |finding: &&Finding| finding.path.as_deref() == Some(path);
    report.findings.iter().find(is_there).unwrap_or_else(|| panic!("{report:#?}"))
}

#[test]
fn value_that_a_rule_cannot_read_blocks_every_edit_of_its_object() {
    let report = changed(
        &json!({"x-kubernetes-int-or-string": true}),
        &json!({"type": "integer"}),
        "!has(self.a) || type(self.a) != bool",
    );
    assert!(found(&report, "spec.a").blocks.as_deref().is_some_and(|it| it.contains("any edit of the object")));
    assert!(!found(&report, "spec.b").blocks.as_deref().is_some_and(|it| it.contains("any edit of the object")));
}

#[test]
fn change_that_affects_unusual_values_only_warns_says_so_and_ranks_last() {
    // The server accepts a list where a string has a known format.
    let report = changed(&json!({"type": "string", "format": "date"}), &json!({"type": "string"}), "true");
    let unusual = found(&report, "spec.a");
    assert_eq!((unusual.verdict, unusual.severity), (Verdict::Breaking, Severity::Warning));
    assert!(unusual.message.contains("lets through by a quirk"), "{}", unusual.message);
    assert_eq!(found(&report, "spec.b").severity, Severity::Error);
    assert_eq!(report.findings.last(), Some(unusual), "{:#?}", report.findings);
}
