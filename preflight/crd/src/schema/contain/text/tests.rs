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
    for _ in 0..60_000 {
        let (format, text) = generator.formatted();
        if pipeline::format_is_valid(format, &text, Server::default()) != Some(true) {
            continue;
        }
        for pattern in implied(format).into_iter().chain(pattern::of_format(format)) {
            assert!(pattern.is_match(&text), "{format} {text:?}");
            *checked.entry(format).or_default() += 1;
        }
    }
    for format in ["cidr", "ipv4", "ipv6", "email", "datetime", "uri", "hostname", "duration", "date", "byte", "uuid"] {
        let valid = checked.iter().filter(|(known, _)| normal(known) == format).map(|(_, count)| *count).sum::<usize>();
        assert!(valid > 50, "{format}: {valid} texts");
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
