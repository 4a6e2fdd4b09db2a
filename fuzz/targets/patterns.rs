//! Patterns as definitions of custom resources carry them: two of them and a text, in lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushback_crd::schema::pattern::{Budget, Found, Language, Pattern};

const STEPS: u64 = 50_000;

fuzz_target!(|input: &str| {
    let mut parts = input.splitn(3, '\n');
    let mut next = || parts.next().unwrap_or_default();
    let (one, other, text) = (Pattern::parse(next()), Pattern::parse(next()), next());
    for error in [&one, &other].into_iter().filter_map(|pattern| pattern.as_ref().err()) {
        assert!(!error.reason.is_empty());
    }
    let (Ok(one), Ok(other)) = (one, other) else { return };

    let language = Language { matching: vec![&one], avoiding: vec![&other], ..Language::default() };
    let holds = |text: &str| -> Option<bool> {
        Some(
            one.is_match_within(text, &mut Budget::new(STEPS))?
                && !other.is_match_within(text, &mut Budget::new(STEPS))?,
        )
    };
    match language.example(&mut Budget::new(STEPS)) {
        Found::String(example) => {
            assert_ne!(holds(&example), Some(false), "{example:?}");
            // With the one that was found left out, another is found.
            let others = Language { except: vec![&example], ..language.clone() };
            assert_ne!(others.example(&mut Budget::new(STEPS)), Found::String(example.clone()));
        }
        Found::Empty => assert_ne!(holds(text), Some(true), "{text:?}"),
        Found::Undecided(why) => assert!(!why.is_empty()),
    }

    // A window of the length that the text has.
    let length = text.chars().count() as u64;
    let window = Language { least: length, most: Some(length), ..language };
    if window.example(&mut Budget::new(STEPS)) == Found::Empty {
        assert_ne!(holds(text), Some(true), "{text:?}");
    }
    for example in window.examples(5, &mut Budget::new(STEPS)) {
        assert_eq!(example.chars().count() as u64, length);
        assert_ne!(holds(&example), Some(false), "{example:?}");
    }
});
