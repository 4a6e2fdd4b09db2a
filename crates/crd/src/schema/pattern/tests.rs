//! Compares patterns with Go, and languages with an enumeration of short strings.

use proptest::prelude::*;

use super::*;

/// Each line has a pattern and whether Go finds it in each text of the first line; `!` if Go rejects it.
const GO: &str = include_str!("../../../tests/data/patterns-in-go.tsv");

fn texts_of(first: &str) -> Vec<String> {
    serde_json::from_str(first).expect("a list of texts")
}

#[test]
fn patterns_are_read_as_go_reads_them() {
    let file = std::env::var("PUSHBACK_PATTERNS").map(|path| std::fs::read_to_string(path).expect("readable")).ok();
    let mut lines = file.as_deref().unwrap_or(GO).lines();
    let texts = texts_of(lines.next().expect("texts"));
    let mut wrong = Vec::new();
    for line in lines {
        let (pattern, go) = line.split_once('\t').expect("two columns");
        let pattern: String = serde_json::from_str(pattern).expect("a string");
        let ours = match Pattern::parse(&pattern) {
            Err(error) if error.refused => "!".to_owned(),
            // API servers of different versions disagree about these.
            Err(_) => continue,
            Ok(pattern) => texts.iter().map(|text| if pattern.is_match(text) { '1' } else { '0' }).collect(),
        };
        if ours != go {
            let differs = texts.iter().zip(go.bytes().zip(ours.bytes())).find(|(_, (go, ours))| go != ours);
            wrong.push(format!(
                "{pattern:?}: {differs:?} (go {}, here {:?})",
                go.len(),
                Pattern::parse(&pattern).err()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

#[test]
fn what_go_refuses_has_a_place_and_a_reason() {
    for (pattern, offset, reason) in [
        ("ab[c", 2, "missing closing ]"),
        ("a**", 2, "invalid nested repetition operator"),
        ("a(?=b)", 1, "invalid or unsupported Perl syntax"),
        ("x{1001}", 1, "invalid repeat count"),
        ("é\\q", 2, "invalid escape sequence"),
    ] {
        let error = Pattern::parse(pattern).expect_err(pattern);
        assert_eq!((error.offset, error.reason.as_str(), error.refused), (offset, reason, true), "{pattern}");
    }
}

#[test]
fn what_api_servers_disagree_about_is_not_called_refused() {
    for pattern in [r"\p{Old_Italic}", r"\p{SignWriting}", r"\x{d800}", r"[\x{dfff}]"] {
        assert!(!Pattern::parse(pattern).expect_err(pattern).refused, "{pattern}");
    }
}

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A string that matches the first pattern and not the second.
fn difference(one: &str, other: &str) -> Found {
    let (one, other) = (pattern(one), pattern(other));
    let language = Language { matching: vec![&one], avoiding: vec![&other], ..Language::default() };
    language.example(&mut Budget::new(1_000_000))
}

fn found(text: &str) -> Found {
    Found::String(text.to_owned())
}

#[test]
fn differences_are_shown_by_the_shortest_readable_string() {
    for (one, other, shown) in [
        ("^http(s)?://.+$", "^https?://.+$", Found::Empty),
        ("^https?://.+$", "^http(s)?://.+$", Found::Empty),
        ("^[a-z0-9]+$", "^[a-z]+$", found("0")),
        ("a", "^a", found("ba")),
        ("^a", "a", Found::Empty),
        ("", "^[a-z]*$", found("0")),
        ("^.*$", "^[ -~]*$", found("ß")),
        ("(?i)^k$", "^[kK]$", found("\u{212a}")),
        (r"^\w+$", "^[a-zA-Z0-9_]+$", Found::Empty),
        (r"\bfoo\b", "foo", Found::Empty),
        ("foo", r"\bfoo\b", found("afoo")),
        ("(?m)^a$", "^a$", found("a\n")),
        ("^a{3,5}$", "^a{3,4}$", found("aaaaa")),
        ("[^\\x00-\\x{10FFFF}]", "b", Found::Empty),
    ] {
        assert_eq!(difference(one, other), shown, "{one} {other}");
    }
}

#[test]
fn windows_of_length_count_code_points() {
    let example = |matching: &str, least: u64, most: Option<u64>| {
        let matching = pattern(matching);
        Language { matching: vec![&matching], least, most, ..Language::default() }.example(&mut Budget::new(1_000_000))
    };
    assert_eq!(example("^[é]*$", 3, Some(3)), found("ééé"));
    assert_eq!(example("^[a-z]{2,4}$", 5, None), Found::Empty);
    assert_eq!(example("^[a-z]{2,4}$", 0, Some(1)), Found::Empty);
    assert_eq!(example("^[a-z]{2,4}$", 3, Some(2_147_483_648)), found("aaa"));
    assert_eq!(example("^(ab)*$", 3, Some(3)), Found::Empty);
    assert_eq!(example("^(ab)*$", 3, Some(4)), found("abab"));
    assert_eq!(example("", 0, Some(0)), found(""));
    assert_eq!(example("a", 5, Some(4)), Found::Empty);
    // Too long to walk to: the reachable states repeat.
    assert_eq!(example("^(ab)*$", 1_000_000_001, Some(1_000_000_001)), Found::Empty);
    assert_eq!(example("^.{0,253}$", 1 << 31, None), Found::Empty);
    assert!(matches!(example("^(ab)*$", 1_000_000_000, None), Found::Undecided(_)));
    let Found::String(long) = example("^(abc|de)*$", 65_536, Some(65_536)) else { panic!("a long string") };
    assert_eq!(long.len(), 65_536);
}

#[test]
fn strings_that_are_excepted_are_not_found() {
    let values = pattern("^(Always|Never|[0-9])$");
    let mut except = vec!["Always", "Never", "Sometimes", "é"];
    let digits: Vec<String> = (0..9).map(|digit| digit.to_string()).collect();
    except.extend(digits.iter().map(String::as_str));
    let language = |except| Language { matching: vec![&values], except, ..Language::default() };
    assert_eq!(language(except.clone()).example(&mut Budget::new(100_000)), found("9"));
    except.push("9");
    assert_eq!(language(except).example(&mut Budget::new(100_000)), Found::Empty);
}

#[test]
fn what_explodes_ends_undecided_within_its_budget() {
    for (one, other) in [("^(?:.*a.{100})$", "^(?:.*a.{99}a?.)$"), ("a.{200}b.{300}", "(a|b.{77}){9}c.{300}")] {
        let (one, other) = (pattern(one), pattern(other));
        let mut budget = Budget::new(300_000);
        let language = Language { matching: vec![&one], avoiding: vec![&other], ..Language::default() };
        assert!(matches!(language.example(&mut budget), Found::Undecided(_)));
        assert_eq!(budget.left(), 0);
    }
}

#[test]
fn examples_differ_and_belong_to_the_language() {
    let (one, other) = (pattern("^[a-zA-Z0-9.-]+$"), pattern("^[.-]"));
    let language = Language { matching: vec![&one], avoiding: vec![&other], most: Some(20), ..Language::default() };
    let examples = language.examples(8, &mut Budget::new(100_000));
    assert_eq!(examples.len(), 8);
    let distinct: std::collections::BTreeSet<_> = examples.iter().collect();
    assert_eq!(distinct.len(), 8);
    assert!(examples.iter().all(|example| one.is_match(example) && !other.is_match(example)), "{examples:?}");
    assert_eq!(examples[..3], ["a", "0", "A"]);
    assert_eq!(examples[7].len(), 20);
}

/// The distinct patterns in the definitions of seven well-known projects.
const CRD_PATTERNS: &str = include_str!("../../../tests/data/crd-patterns.jsonl");

#[test]
fn all_pairs_of_real_patterns_are_decided() {
    let patterns: Vec<Pattern> =
        CRD_PATTERNS.lines().map(|line| pattern(&serde_json::from_str::<String>(line).expect("a string"))).collect();
    let mut within = 0;
    for one in &patterns {
        for other in &patterns {
            let mut budget = Budget::new(200_000);
            let language = Language { matching: vec![one], avoiding: vec![other], ..Language::default() };
            match language.example(&mut budget) {
                Found::String(_) => {}
                Found::Empty => within += 1,
                Found::Undecided(why) => panic!("{why}: {} {}", one.as_str(), other.as_str()),
            }
        }
    }
    // 58 of these are a pattern within itself.
    assert_eq!(within, 393);
}

/// All strings of up to four code points over a small alphabet, shortest first.
fn short_strings() -> Vec<String> {
    let mut strings = vec![String::new()];
    let mut begin = 0;
    for _ in 0..4 {
        let end = strings.len();
        for index in begin..end {
            for letter in ['a', 'b', ' ', '\n', 'é'] {
                strings.push(format!("{}{letter}", strings[index]));
            }
        }
        begin = end;
    }
    strings
}

/// Patterns that distinguish strings over the small alphabet in many ways.
fn small_pattern() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(vec![
        "a", "b", "é", " ", "\\n", ".", "[ab]", "[^a]", "^", "$", "\\b", "\\B", "(?m:^)", "(?m:$)", "(?i:A)", "\\w",
        "\\s", "",
    ]);
    atom.prop_map(str::to_owned).prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            (inner, prop::sample::select(vec!["*", "+", "?", "{2}", "{1,3}", "{2,}"]))
                .prop_map(|(part, count)| format!("(?:{part}){count}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Every result is correct, among the shortest, and no language with a string is called empty.
    #[test]
    fn languages_hold_exactly_their_strings(
        texts in prop::collection::vec(small_pattern(), 0..4),
        split in 0_usize..4,
        least in 0_u64..4,
        beyond in prop::option::of(0_u64..3),
        except in prop::collection::vec("[ab é\n]{0,3}", 0..3),
    ) {
        let patterns: Vec<Pattern> = texts.iter().map(|text| pattern(text)).collect();
        let (matching, avoiding) = patterns.split_at(split.min(patterns.len()));
        let language = Language {
            matching: matching.iter().collect(),
            avoiding: avoiding.iter().collect(),
            least,
            most: beyond.map(|beyond| least + beyond),
            except: except.iter().map(String::as_str).collect(),
        };
        let holds = |text: &str| {
            let length = text.chars().count() as u64;
            language.matching.iter().all(|pattern| pattern.is_match(text))
                && !language.avoiding.iter().any(|pattern| pattern.is_match(text))
                && length >= least
                && language.most.is_none_or(|most| length <= most)
                && !except.iter().any(|except| except == text)
        };
        let shortest = short_strings().into_iter().find(|text| holds(text));
        match (language.example(&mut Budget::new(2_000_000)), shortest) {
            (Found::Empty, shortest) => prop_assert_eq!(shortest, None),
            (Found::String(example), shortest) => {
                prop_assert!(holds(&example), "{example:?}");
                if let Some(shortest) = shortest {
                    prop_assert!(example.chars().count() <= shortest.chars().count(), "{example:?} {shortest:?}");
                }
            }
            (Found::Undecided(why), _) => prop_assert!(false, "{why}"),
        }
        let examples = language.examples(5, &mut Budget::new(2_000_000));
        prop_assert!(examples.iter().all(|example| holds(example)), "{examples:?}");
    }
}

/// The number of cases; an environment variable can raise it.
fn cases() -> u32 {
    std::env::var("PUSHBACK_PATTERN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
}

/// Each class, with a digest of the code points that Go matches with it.
const GO_CLASSES: &str = include_str!("../../../tests/data/classes-in-go.tsv");

fn digest(text: &str) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn classes_and_case_folding_are_those_of_go() {
    use classes::{Named, folded, named, ranges};
    let class = |name: &str| match named(name) {
        Named::Class(class) => class,
        Named::Disputed | Named::Unknown => panic!("{name} is no class"),
    };
    let mut wrong = Vec::new();
    for line in GO_CLASSES.lines() {
        let (name, go) = line.split_once('\t').expect("two columns");
        let ours = if name == "orbits" {
            let mut rest = class("Any");
            let mut orbits = String::new();
            for category in ["L", "Mn", "Nl", "So"].map(class) {
                rest.difference(&category);
            }
            assert_eq!(folded(&rest), rest);
            let mut cased = class("Any");
            cased.difference(&rest);
            cased.difference(&class("Lo"));
            for character in cased.iter().flat_map(|range| range.start()..=range.end()) {
                let orbit = folded(&ranges(&[(character, character)]));
                let orbit: Vec<char> = orbit.iter().flat_map(|range| range.start()..=range.end()).collect();
                if orbit.len() > 1 {
                    let orbit: Vec<String> = orbit.iter().map(|one| format!("{:x}", u32::from(*one))).collect();
                    orbits += &format!("{:x}:{}\n", u32::from(character), orbit.join(","));
                }
            }
            orbits
        } else {
            let class = match name.strip_prefix("(?i)") {
                Some("LC" | "Cased_Letter") | None => class(name.trim_start_matches("(?i)")),
                Some(name) => folded(&class(name)),
            };
            let halves = class.iter().flat_map(|range| {
                let (first, last) = (u32::from(range.start()), u32::from(range.end()));
                [(first, last.min(0xd7ff)), (first.max(0xe000), last)]
            });
            let halves =
                halves.filter(|(first, last)| first <= last).map(|(first, last)| format!("{first:x}-{last:x}"));
            halves.collect::<Vec<_>>().join(" ")
        };
        if digest(&ours) != go {
            wrong.push(name);
        }
    }
    assert_eq!(wrong, <[&str; 0]>::default());
}
#[test]
fn a_window_makes_a_proof_no_harder() {
    let real = |start: &str| {
        let texts = CRD_PATTERNS.lines().map(|line| serde_json::from_str::<String>(line).expect("a string"));
        pattern(&texts.into_iter().find(|text| text.starts_with(start)).expect("one of them"))
    };
    let (one, other) = (real("^(System|"), real("^Hostname|IPAddress|NamedAddress|"));
    let language = Language { matching: vec![&one], avoiding: vec![&other], least: 253, ..Language::default() };
    assert_eq!(language.example(&mut Budget::new(2_000_000)), Found::Empty);
}

#[test]
fn a_part_is_searched_where_all_is_too_much() {
    let (one, other) = (pattern("(a|b)*a(a|b){12}"), pattern("^[ab]*b[ab]{14}$"));
    let language = Language { matching: vec![&one], avoiding: vec![&other], least: 40, ..Language::default() };
    let found = language.example(&mut Budget::new(200_000));
    let Found::String(example) = found else { panic!("{found:?}") };
    assert!(example.len() >= 40 && one.is_match(&example) && !other.is_match(&example), "{example}");
    let empty = Language { avoiding: vec![&one, &other], matching: vec![&one], least: 40, ..Language::default() };
    assert!(!matches!(empty.example(&mut Budget::new(200_000)), Found::String(_)));
}

#[test]
fn hostile_patterns_end_with_an_error_or_within_a_budget() {
    let nested = |count: usize, open: &str| format!("{}a{}", open.repeat(count), ")".repeat(count));
    let classes = |count: u32| -> String {
        (0..count).map(|one| format!("[\\x{{{:x}}}-\\x{{{:x}}}]", 0x1000 + one, 0x9000 + one)).collect()
    };
    for (pattern, refused) in [
        ("(".repeat(100_000), Some(true)),
        (nested(390, "("), None),
        (nested(900, "("), Some(false)),
        (nested(1001, "("), Some(true)),
        (nested(100_000, "(?:"), None),
        (format!("a{}", "*(?i)".repeat(390)), None),
        (format!("a{}", "*(?i)".repeat(1001)), Some(true)),
        ("{".repeat(200_000), Some(false)),
        (format!("[{}", "[:".repeat(200_000)), Some(true)),
        (format!("[{}:]", "[:".repeat(200_000)), Some(true)),
        (format!(r"\x{{{}", "0".repeat(200_000)), Some(true)),
        (r"\pL".repeat(30_000), Some(false)),
        (format!("(?i){}", classes(5000)), Some(false)),
        (classes(2000), None),
        ("(a{500}b{500}){1}".repeat(4000), Some(true)),
        (".{1000}".repeat(90), None),
        ("((a?b?){30}c?){30}".to_owned(), None),
    ] {
        let shown: String = pattern.chars().take(30).collect();
        match Pattern::parse(&pattern) {
            Err(error) => assert_eq!(Some(error.refused), refused, "{shown}: {error}"),
            Ok(pattern) => {
                assert_eq!(refused, None, "{shown}");
                pattern.is_match_within(&"ab".repeat(10_000), &mut Budget::new(100_000));
                let all = Language { avoiding: vec![&pattern], least: 10, ..Language::default() };
                all.example(&mut Budget::new(100_000));
                all.examples(10, &mut Budget::new(100_000));
            }
        }
    }
}
