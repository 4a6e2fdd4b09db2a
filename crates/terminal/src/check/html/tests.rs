use proptest::prelude::*;
use pushback_preflight::causes;

use super::*;
use crate::escape::{is_hidden, terminal_safe_lines};
use crate::fixture::{check_report, every_character, hostile_report, report_quoting};

/// The tags of a page without their attributes' values, and what stands between them.
fn tags(page: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some((_, from)) = rest.split_once('<') {
        let (tag, after) = from.split_once('>').expect("an end of the tag");
        let mut parts = tag.split('"');
        let names: String = std::iter::from_fn(|| {
            let name = parts.next()?;
            parts.next();
            Some(name)
        })
        .collect();
        tags.push(names);
        rest = after;
    }
    tags
}

/// What templates made, without the page's own style and script.
fn body(page: &str) -> &str {
    let (_, body) = page.split_once("<body>").expect("a body");
    body.split_once("<script>").expect("a script").0
}

#[test]
fn the_four_questions_have_an_answer_at_the_top() {
    let report = CheckReport { today: "2026-01-31".to_owned(), ..check_report() };
    let page = text(&report);
    let (top, causes) = page.split_once("<h2 id=\"causes\">").expect("causes");
    for answer in [
        "<h1>Refused: 1 cause in 1 object</h1>",
        "What is refused, and who suffers",
        "foos.ex.com</a>",
        "What to do now",
        "Accept it for a month",
        // A month after the last day of January is the last one of February.
        "expires: &#34;2026-02-28&#34;",
    ] {
        assert!(top.contains(answer), "{answer}\n{top}");
    }
    assert!(causes.contains("id=\"9c1185a5deadbeef\""), "a finding is linked to by its fingerprint");
}

#[test]
fn findings_of_one_cause_and_two_severities_have_two_places() {
    let mut report = check_report();
    let mut other = report.findings[0].clone();
    other.fingerprint = "0123456789abcdef".to_owned();
    other.severity = Severity::Warning;
    other.object.name = "bars.ex.com".to_owned();
    report.findings = vec![report.findings[0].clone(), other];
    report.causes = causes(&report.findings);
    assert_eq!(report.causes.len(), 1);
    let page = text(&report);
    let ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "{ids:?}");
    assert!(page.contains(&format!("id=\"{}-2\"", anchor(&report.causes[0].fingerprint))));
}

/// The text between the tags of a page, as a browser reads it.
fn content(page: &str) -> String {
    let between = page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    let escaped: String = between.collect();
    let mut read = String::new();
    let mut rest = escaped.as_str();
    while let Some((before, after)) = rest.split_once('&') {
        let (entity, after) = after.split_once(';').expect("an end of the entity");
        let number = entity.strip_prefix('#').and_then(|number| number.parse().ok());
        read += before;
        read.push(number.and_then(char::from_u32).unwrap_or_else(|| panic!("&{entity};")));
        rest = after;
    }
    read + rest
}

#[test]
fn every_character_makes_no_markup_and_reads_back() {
    let mark = |page: &str| tags(body(page)).into_iter().collect::<BTreeSet<_>>();
    let known: BTreeSet<String> =
        ["word", "`word`", ""].iter().flat_map(|word| mark(&text(&report_quoting(word)))).collect();
    for part in every_character(1 << 14) {
        let page = text(&report_quoting(&part));
        assert!(mark(&page).is_subset(&known), "{part:?}");
        // A backquote is shown as a change of the font.
        let shown = terminal_safe_lines(&part).replace('`', "");
        assert!(content(body(&page)).replace('`', "").contains(&shown), "{part:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn hostile_text_makes_no_markup(evil in any::<String>()) {
        let page = text(&hostile_report(&evil));
        prop_assert!(!page.chars().any(|c| c != '\n' && is_hidden(c)));
        let mark = |page: &str| tags(body(page)).into_iter().collect::<BTreeSet<_>>();
        // Text decides which parts there are, but about no tag or attribute.
        let known: BTreeSet<String> = ["word", "`word`", ""].iter().flat_map(|word| mark(&text(&hostile_report(word)))).collect();
        let made = mark(&page);
        prop_assert!(made.is_subset(&known), "{:?}", made.difference(&known).collect::<Vec<_>>());
    }
}
