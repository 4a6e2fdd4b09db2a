//! Expressions in rules: checked when they are read, and shown where a rule is in ytt.

use super::errors;

#[test]
fn a_rule_in_ytt_is_refused_with_its_form_in_cel() {
    let wait = "waitRules:\n- ytt:\n    funcContractV1:\n      resource.star: |\n        def is_done(r):\n          if \
                r.status.phase == \"Up\":\n            return {\"done\": True, \"successful\": True}\n          end\n          return \
                {\"done\": False}\n        end\n  resourceMatchers: [{allMatcher: {}}]\n";
    assert_eq!(
        errors(wait),
        ["c.yaml:4:3: waitRules[0].ytt: rules in ytt are not run | in CEL this rule is `cel: {current: \
          'object.status.phase == \"Up\"'}`"]
    );
    let rebase = "rebaseRules:\n- ytt:\n    overlayContractV1:\n      overlay.yml: |\n        #@ load(\"@ytt:data\", \"data\")\n        \
                  #@overlay/match by=overlay.all\n        ---\n        spec:\n          size: #@ data.values.existing.spec.size\n  \
                  resourceMatchers: [{allMatcher: {}}]\n";
    assert_eq!(
        errors(rebase),
        [
            "c.yaml:4:3: rebaseRules[0].ytt: rules in ytt are not run | without ytt this rule is `path: [spec, size]` with \
          `cel: 'existing.spec.size'`"
        ]
    );
    for (list, hint) in [("rebaseRules", "write a rule for each field"), ("waitRules", "write it in CEL")] {
        let body = format!("{list}:\n- ytt: {{}}\n  resourceMatchers: [{{allMatcher: {{}}}}]\n");
        let error = errors(&body).remove(0);
        assert!(error.starts_with(&format!("c.yaml:4:3: {list}[0].ytt: rules in ytt are not run | {hint}")), "{error}");
    }
}

#[test]
fn expressions_are_checked_when_they_are_read() {
    let wait = |cel: &str| errors(&format!("waitRules:\n- cel: {cel}\n  resourceMatchers: [{{allMatcher: {{}}}}]\n"));
    assert_eq!(
        wait("{current: object.status.ready}"),
        ["c.yaml:4:9: waitRules[0].cel.current: it must give a bool, and gives dyn | the variables are object"]
    );
    assert_eq!(
        wait("{failed: 'false'}"),
        ["c.yaml:4:3: waitRules[0].cel: missing key `current`; without it the object is never ready"]
    );
    assert_eq!(
        wait("{current: 'true'}\n  conditionMatchers: []"),
        ["c.yaml:5:3: waitRules[0].conditionMatchers: expected either `conditionMatchers` or `cel`, found both"]
    );
    let rebase = |keys: &str| {
        errors(&format!("rebaseRules:\n- path: [a]\n  {keys}\n  resourceMatchers: [{{allMatcher: {{}}}}]\n"))
    };
    assert_eq!(
        rebase("cel: old.a"),
        ["c.yaml:5:3: rebaseRules[0].cel: undeclared reference to `old` | the variables are new, existing, current"]
    );
    assert_eq!(
        rebase("cel: new.a\n  type: copy"),
        ["c.yaml:6:3: rebaseRules[0].type: a rule with `cel` computes the value, and has neither `type` nor `sources`"]
    );
}
