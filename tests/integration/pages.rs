//! Pages in a real browser: they open without a complaint, answer what a release manager asks, and can be worked with by
//! mouse and by keyboard.

mod hostile;
mod looks;
mod sample;

use serde_json::{Value, json};

use self::sample::{ARGO_CD, STRIMZI, Sample};
use crate::support::browser::Browser;
use crate::support::markers::Markers;
use crate::support::{Pushback, TestCase, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    let own = cases![
        Browser: a_refusal_opens_without_a_complaint_and_answers_the_four_questions,
        Browser: the_filter_shows_what_fits_and_says_how_much,
        Browser: a_cause_is_unfolded_by_keyboard,
        Browser: a_permalink_opens_what_it_names,
        Browser: a_command_is_copied_as_it_stands,
        Browser: the_copied_config_accepts_the_refusal_for_a_month,
        Browser: two_thousand_findings_can_be_searched,
        Browser: the_order_of_the_changes_is_drawn_and_told,
        Browser: an_upgrade_diff_is_told_by_severity,
        Nothing: no_value_of_a_secret_is_in_a_page,
    ];
    [own, hostile::tests(), looks::tests()].concat()
}

const SHOWN: &str = "document.querySelectorAll('[data-severity]:not([hidden])').length";

fn a_refusal_opens_without_a_complaint_and_answers_the_four_questions() {
    let sample = Sample::refusal(&STRIMZI);
    let mut page = sample.open("");
    assert_eq!(page.complaints(), Vec::<String>::new());
    // What is refused?
    assert_eq!(page.text("document.querySelector('h1').innerText"), "Refused: 3 causes in 10 objects");
    // Who suffers?
    let rows = page.evaluate(
        "[...document.querySelectorAll('section[aria-labelledby=refused] tbody tr')].map(row => row.innerText)",
    );
    let rows: Vec<&str> = rows.as_array().expect("rows").iter().filter_map(Value::as_str).collect();
    assert_eq!(rows.len(), 10);
    assert!(rows[0].starts_with("kafkas.kafka.strimzi.io\t") && rows[0].contains("not counted"), "{rows:?}");
    // What do I do now?
    let now = page.text("document.querySelector('section[aria-labelledby=now]').innerText");
    assert!(now.contains("--storage=bridge") && now.contains("pushback check"), "{now}");
    // How do I accept it for a month?
    assert!(now.contains("Accept it for a month"), "{now}");
    // Each heading leads on from the one before, and each region has a name.
    let levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(it => Number(it.tagName[1]))");
    let levels: Vec<i64> = levels.as_array().expect("levels").iter().filter_map(Value::as_i64).collect();
    assert!(levels[0] == 1 && levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{levels:?}");
    let unnamed = page.evaluate(
        "[...document.querySelectorAll('[aria-labelledby]')].filter(it => !document.getElementById(it.getAttribute('aria-labelledby'))).length
         + [...document.querySelectorAll('input')].filter(it => !it.labels.length).length
         + [...document.querySelectorAll('button')].filter(it => !it.textContent.trim()).length",
    );
    assert_eq!(unnamed, 0);
}

fn the_filter_shows_what_fits_and_says_how_much() {
    let sample = Sample::refusal(&ARGO_CD);
    let all = sample.report()["causes"].as_array().map_or(0, Vec::len);
    let mut page = sample.open("");
    assert_eq!(page.evaluate(SHOWN), all);
    page.evaluate("document.getElementById('filter-text').focus()");
    page.type_text("maxLength description");
    assert_eq!(page.evaluate(SHOWN), 1);
    assert_eq!(page.text("document.getElementById('said').innerText"), format!("1 of {all} shown"));
    let sections = "[...document.querySelectorAll('[data-section]')].filter(it => it.checkVisibility()).length";
    assert_eq!(page.evaluate(sections), 1);
    page.type_text(" nothing like it");
    assert_eq!((page.evaluate(SHOWN), page.evaluate(sections)), (json!(0), json!(0)));
    page.evaluate(
        "(it => { it.value = ''; it.dispatchEvent(new Event('input')); })(document.getElementById('filter-text'))",
    );
    page.evaluate("document.querySelector('#filter input[value=error]').click()");
    assert_eq!(page.evaluate("document.querySelectorAll('.cause.error:not([hidden])').length"), 0);
}

fn a_cause_is_unfolded_by_keyboard() {
    let sample = Sample::refusal(&ARGO_CD);
    let mut page = sample.open("");
    page.press("Tab");
    assert_eq!(page.text("document.activeElement.className"), "skip", "the first stop leads past the head");
    let focused = "document.activeElement.matches('.cause > summary')";
    let is_open = "document.activeElement.parentElement.open";
    let arrived = (0..200).any(|_| {
        page.press("Tab");
        page.evaluate(focused) == true
    });
    assert!(arrived, "no cause can be reached with the keyboard");
    let before = page.evaluate(is_open);
    page.press("Enter");
    let after = page.evaluate(is_open);
    assert_ne!(before, after);
    page.press(" ");
    assert_eq!(page.evaluate(is_open), before);
    let outlined = page.text("getComputedStyle(document.activeElement).outlineStyle");
    assert_eq!(outlined, "solid", "it shows where the focus is");
}

fn a_permalink_opens_what_it_names() {
    let sample = Sample::refusal(&ARGO_CD);
    let findings = sample.report()["findings"].as_array().expect("findings").clone();
    let last = findings.last().expect("a finding")["fingerprint"].as_str().expect("a fingerprint").to_owned();
    let mut page = sample.open(&last);
    let seen = format!(
        "(it => it.checkVisibility() && it.getBoundingClientRect().top >= 0 \
         && it.getBoundingClientRect().top < innerHeight)(document.getElementById('{last}'))"
    );
    wait_until("the finding is in view", std::time::Duration::from_secs(30), || {
        (page.evaluate(&seen) == true).then_some(())
    });
    // Every finding and every cause has its place, and what a filter hides is shown to who asks for it.
    let all: Vec<&str> = findings.iter().filter_map(|finding| finding["fingerprint"].as_str()).collect();
    let missing = page.evaluate(&format!("{}.filter(id => !document.getElementById(id))", json!(all)));
    assert_eq!(missing, json!([]));
    page.evaluate("document.getElementById('filter-text').focus()");
    page.type_text("nothing like it");
    assert_eq!(page.evaluate(SHOWN), 0);
    let first = findings[0]["fingerprint"].as_str().expect("a fingerprint");
    page.evaluate(&format!("location.hash = '{first}'"));
    wait_until("the finding is shown", std::time::Duration::from_secs(30), || {
        (page.evaluate(&format!("document.getElementById('{first}').checkVisibility()")) == true).then_some(())
    });
}

/// Clicks the first copy button in an element, and what is in the clipboard then.
fn copied(page: &mut Browser, inside: &str) -> String {
    page.evaluate("navigator.clipboard.writeText('nothing')");
    page.evaluate(&format!("document.querySelector('{inside} .copy').click()"));
    wait_until("the text is copied", std::time::Duration::from_secs(30), || {
        let text = page.text("navigator.clipboard.readText()");
        (text != "nothing").then_some(text)
    })
}

fn a_command_is_copied_as_it_stands() {
    let sample = Sample::refusal(&STRIMZI);
    let mut page = sample.open("");
    let command = copied(&mut page, "section[aria-labelledby=now] .way");
    let wanted = sample.report()["causes"][0]["remedies"][0]["commands"][0].clone();
    assert_eq!(json!(command), wanted);
    assert_eq!(page.text("document.getElementById('said').innerText"), "Copied");
}

fn the_copied_config_accepts_the_refusal_for_a_month() {
    let sample = Sample::refusal(&ARGO_CD);
    let mut page = sample.open("");
    let config = copied(&mut page, "#accept ~ details");
    assert!(config.contains("expires: \""), "{config}");
    let pushback = &sample.pushback;
    pushback.write("accepted.yaml", config.replace("reason: \"\"", "reason: reviewed"));
    let passed = pushback.run(&["check", "-f", "new", "--cluster", "dir:old", "--config", "accepted.yaml"]).expect(0);
    assert!(passed.stdout.contains("waived: 55 findings"), "{}", passed.stdout);
}

fn two_thousand_findings_can_be_searched() {
    let sample = Sample::removed_fields((0..2_000).map(|number| format!("field{number}")));
    let mut page = sample.open("");
    assert_eq!(page.evaluate(SHOWN), 2_000);
    page.evaluate("document.getElementById('filter-text').focus()");
    page.type_text("field1234");
    assert_eq!(page.evaluate(SHOWN), 1);
    assert_eq!(
        page.text("document.querySelector('[data-severity]:not([hidden]) h4').textContent"),
        "field \"field1234\" is removed"
    );
    assert_eq!(page.complaints(), Vec::<String>::new());
}

fn no_value_of_a_secret_is_in_a_page() {
    let mut markers = Markers::default();
    let [old, new] = ["old", "new"].map(|side| markers.value(side));
    let sample = Sample::removed_fields(["gone".to_owned()]);
    let secret = |value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: a, namespace: b}}\nstringData: {{password: {value}}}\n"
        )
    };
    sample.pushback.write("old/secret.yaml", secret(&old)).write("new/secret.yaml", secret(&new));
    let again = sample.again();
    assert!(again.contains("is removed"), "{again}");
    markers.look_at("page", again.as_bytes());
    markers.assert_hidden(1);
}

fn the_order_of_the_changes_is_drawn_and_told() {
    let pushback = Pushback::new();
    let object = |kind: &str, name: &str, annotations: &Value| {
        json!({
            "apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop", "annotations": annotations},
        })
        .to_string()
    };
    let first = json!({"kapp.k14s.io/change-group": "example.com/first"});
    let second = json!({"kapp.k14s.io/change-rule": "upsert after upserting example.com/first"});
    let mut objects = vec![object("ConfigMap", "zulu", &first), object("ConfigMap", "alpha", &second)];
    objects.extend((0..5).map(|number| object("Secret", &format!("many-{number}"), &second)));
    pushback.write("in/all.yaml", objects.join("\n---\n"));
    let check = ["check", "-f", "in", "--cluster", "dir:live", "--new-base", "--report", "html=page.html"];
    pushback.run(&check).expect(0);
    let mut page = Browser::open(&pushback.directory().join("page.html"), "");
    assert_eq!(page.complaints(), Vec::<String>::new());
    let boxes = "[...document.querySelectorAll('.order g')].map(it => [...it.querySelectorAll('text')].map(text => text.textContent))";
    let expected = json!([["+ ConfigMap", "shop/zulu"], ["+ ConfigMap", "shop/alpha"], ["+ Secret", "5 objects"]]);
    assert_eq!(page.evaluate(boxes), expected);
    assert_eq!(page.evaluate("document.querySelectorAll('.order .edge').length"), 2);
    let tops = page.evaluate("[...document.querySelectorAll('.order .box')].map(it => it.getBoundingClientRect().top)");
    assert!(tops[0].as_f64() < tops[1].as_f64() && tops[1] == tops[2], "{tops}");
    let words = page.text("document.querySelector('.order + details').textContent");
    assert!(words.contains("create ConfigMap shop/zulu (in group example.com/first)"), "{words}");
    assert!(words.contains("create ConfigMap shop/alpha; waits for ConfigMap shop/zulu"), "{words}");
}

fn an_upgrade_diff_is_told_by_severity() {
    let sample = Sample::upgrade_diff(&STRIMZI);
    let mut page = sample.open("");
    assert_eq!(page.complaints(), Vec::<String>::new());
    assert_eq!(page.text("document.querySelector('h1').innerText"), "Upgrade 0.48.0 → 1.0.0: 24 breaking changes");
    let sections = page.evaluate("[...document.querySelectorAll('h2')].map(it => it.innerText)");
    assert_eq!(sections, json!(["Summary", "Breaking", "For information"]));
    // What is the same in several definitions is told once, with its places.
    assert_eq!(page.evaluate("document.querySelectorAll('.cause.breaking').length"), 3);
    let places = "document.querySelector('.cause.breaking').querySelectorAll('tbody tr[id]').length";
    assert_eq!(page.evaluate(places), 9);
    page.evaluate("document.querySelector('#filter input[value=breaking]').click()");
    assert_eq!(page.evaluate("document.querySelectorAll('.cause.breaking:not([hidden])').length"), 0);
    assert!(page.evaluate(SHOWN).as_u64() > Some(0));
}
