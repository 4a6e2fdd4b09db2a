//! The cache of questions about strings: an equal question costs nothing, a different one is evaluated.

use super::*;

#[test]
fn an_equal_question_about_text_is_answered_from_memory() {
    let mut asked = Asked::default();
    let mut steps = 10_000_000;
    let length = Range { least: 0, most: Some(50) };
    let texts = Texts { matching: vec!["^[a-z]+$", "a.c"], avoiding: vec!["^x"], length, ..Texts::default() };
    let first = asked.example(&texts, &[], &mut steps);
    assert!(matches!(first, Outcome::Found(_)), "{first:?}");
    let left = steps;
    let same = Texts { matching: vec!["a.c", "^[a-z]+$", "a.c"], ..texts.clone() };
    assert_eq!((asked.example(&same, &[], &mut steps), steps), (first.clone(), left));
    let other = Rc::new(vec![match &first {
        Outcome::Found(text) => text.clone(),
        _ => Value::Null,
    }]);
    assert_ne!(asked.example(&texts, &[other], &mut steps), first);
    assert!(steps < left);
}

#[test]
fn what_a_format_implies_every_text_of_it_has() {
    let mut generator = crate::schema::testing::Generator::new(7);
    let mut checked = std::collections::BTreeMap::<&str, usize>::new();
    let mut bounded = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..60_000 {
        let (format, text) = generator.formatted();
        if pipeline::format_is_valid(format, &text, Server::default()) != Some(true) {
            continue;
        }
        for pattern in implied(format).into_iter().chain(pattern::of_format(format)) {
            assert!(pattern.is_match(&text), "{format} {text:?}");
            *checked.entry(format).or_default() += 1;
        }
        let (length, window) = (text.chars().count() as i64, implied_length(format));
        assert!(window.least.is_none_or(|least| length >= least), "{format} {text:?}");
        assert!(window.most.is_none_or(|most| length <= most), "{format} {text:?}");
        *bounded.entry(normal(format)).or_default() += 1;
    }
    for format in ["hostname", "ipv6", "mac", "isbn", "creditcard", "k8slongname"] {
        assert!(bounded.get(format).is_some_and(|count| *count > 20), "{format}: {:?}", bounded.get(format));
    }
    for format in ["cidr", "ipv4", "ipv6", "email", "datetime", "uri", "duration", "date", "byte", "uuid"] {
        let valid = checked.iter().filter(|(known, _)| normal(known) == format).map(|(_, count)| *count).sum::<usize>();
        assert!(valid > 50, "{format}: {valid} texts");
    }
}

#[test]
fn longest_and_shortest_texts_of_a_format_are_within_its_bounds() {
    let bits = ["0000:0000:0000:0000:0000:ffff:127.100.100.100".to_owned(), "::".to_owned(), "a".to_owned()];
    let label = |length: usize| "a".repeat(length);
    let name = |last: usize| [label(63), label(63), label(63), label(last)].join(".");
    let mac = vec!["00"; 20].join(":");
    for (format, text, is_valid) in [
        ("ipv6", bits[0].as_str(), true),
        ("ipv6", bits[1].as_str(), true),
        ("hostname", name(63).as_str(), true),
        ("hostname", name(64).as_str(), false),
        ("hostname", bits[2].as_str(), true),
        ("k8s-long-name", name(61).as_str(), true),
        ("k8s-long-name", name(62).as_str(), false),
        ("mac", mac.as_str(), true),
        ("mac", "00005e005301", true),
        ("isbn10", "316148410X", true),
        ("creditcard", "4222222222222", true),
    ] {
        assert_eq!(pipeline::format_is_valid(format, text, Server::default()), Some(is_valid), "{format} {text}");
        let (length, window) = (text.chars().count() as i64, implied_length(format));
        let is_within = window.least.is_none_or(|it| length >= it) && window.most.is_none_or(|it| length <= it);
        assert!(is_within == is_valid, "{format} {text}");
    }
}

#[test]
fn a_date_time_may_hold_lines_where_nothing_is_looked_at() {
    let text = "2020-01-01T00:00:00Zt\n";
    assert_eq!(pipeline::format_is_valid("date-time", text, Server::default()), Some(true));
    let asked = Texts { formats: vec!["date-time"], avoiding: vec!["^.+$"], ..Texts::default() };
    assert!(matches!(asked.example(&[], &mut 10_000_000), Outcome::Found(_)));
}

#[test]
fn memory_for_questions_about_text_has_an_end() {
    let mut asked = Asked::default();
    let (long, shorter) = ("b".repeat(REMEMBERED), "b".repeat(100));
    for text in [&long, &shorter] {
        let except = Rc::new(vec![Value::from(text.as_str())]);
        asked.example(&Texts::default(), &[except], &mut 1_000_000);
    }
    assert_eq!(asked.answers.len(), 1);
    assert!(asked.bytes <= REMEMBERED);
}
