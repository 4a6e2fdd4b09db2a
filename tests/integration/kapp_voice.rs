//! kapp's voice: the scripted session that was recorded from kapp, replayed under kapp's name. What differs is listed
//! here, each with its reason.

mod recorded;
mod session;

use regex::Regex;

use self::session::Session;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: under_kapps_name_errors_are_kapps,
        ApiServer: a_prompt_is_answered_by_what_standard_input_holds,
        ApiServer: secrets_stay_masked_whatever_the_flag_says,
        Controllers: a_session_reads_as_kapp_tells_it,
    ]
}

fn under_kapps_name_errors_are_kapps() {
    let session = Session::alone();
    let ran = session.link(&["deploy", "-f", "in-1.yaml"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "kapp: Error: Expected app name to be non-empty\n"));
    assert_eq!(session.link(&["version"]).code, 0);
}

fn a_prompt_is_answered_by_what_standard_input_holds() {
    let session = Session::on(TestCluster::shared());
    let deploy = ["deploy", "-a", "asked", "-f", "in-6.yaml"];
    let declined = session.answer(&deploy, "n\n");
    assert_eq!((declined.code, declined.stderr.as_str()), (1, "kapp: Error: Stopped\n"));
    assert!(declined.stdout.ends_with("\nContinue? [yN]: n\n\n"), "{}", declined.stdout);
    let unanswered = session.answer(&deploy, "");
    assert_eq!(unanswered.stderr, "kapp: Error: Asking for confirmation:\n  EOF\n");
    let agreed = session.answer(&deploy, "y\n");
    assert!(agreed.code == 0 && agreed.stdout.ends_with("\nSucceeded\n"), "{}{}", agreed.stdout, agreed.stderr);
}

fn secrets_stay_masked_whatever_the_flag_says() {
    let session = Session::on(TestCluster::shared());
    let deploy = |value: &str, flag: &str| {
        let secret =
            format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\nstringData: {{password: {value}}}\n");
        session.write("secret.yaml", &secret);
        let ran = session.answer(&["deploy", "-a", "masked", "-f", "secret.yaml", "-c", "-y", flag], "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains("value not shown"), "{told}");
        for secret in [value, &base64(value)] {
            assert!(!told.contains(secret), "{told}");
        }
        told
    };
    deploy("marker-one", "--diff-mask=true");
    let told = deploy("marker-two", "--diff-mask=false");
    assert!(told.contains("without effect here: --diff-mask=false"), "{told}");
}

fn base64(text: &str) -> String {
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text)
}

fn a_session_reads_as_kapp_tells_it() {
    let known: Vec<Regex> =
        recorded::DIFFERENCES.iter().map(|(line, _)| Regex::new(line).expect("a pattern")).collect();
    let mut unknown = Vec::new();
    for form in ["tty", "plain", "json"] {
        let session = Session::on(TestCluster::shared());
        for step in recorded::steps(form) {
            let differences = session.replay(&step).into_iter();
            let differences = differences.filter(|line| !known.iter().any(|known| known.is_match(line)));
            unknown.extend(differences.map(|line| format!("{form} {}: {line}", step.name)));
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}
