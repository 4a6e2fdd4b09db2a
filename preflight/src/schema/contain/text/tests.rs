//! What is remembered of questions about text: an equal question costs nothing, a different one is asked.

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
