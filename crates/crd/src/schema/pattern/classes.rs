//! Character classes: the Perl, POSIX and Unicode classes known to Go, and its simple case folding. The tables are
//! those of regex-syntax, restricted to what Unicode 15.0 assigns, as in Go.
//!
//! Follows Go's `regexp/syntax/perl_groups.go` and `unicode` tables.

use std::sync::OnceLock;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// General categories; the long names exist since Go 1.25.
const CATEGORIES: &str = "\
C Casedletter Cc Cf Closepunctuation Cn Cntrl Co Combiningmark Connectorpunctuation Control Cs Currencysymbol
Dashpunctuation Decimalnumber Digit Enclosingmark Finalpunctuation Format Initialpunctuation L Lc Letter
Letternumber Lineseparator Ll Lm Lo Lowercaseletter Lt Lu M Mark Mathsymbol Mc Me Mn Modifierletter Modifiersymbol N
Nd Nl No Nonspacingmark Number Openpunctuation Other Otherletter Othernumber Otherpunctuation Othersymbol P
Paragraphseparator Pc Pd Pe Pf Pi Po Privateuse Ps Punct Punctuation S Sc Separator Sk Sm So Spaceseparator
Spacingmark Surrogate Symbol Titlecaseletter Unassigned Uppercaseletter Z Zl Zp Zs";

const SCRIPTS: &str = "\
Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid
Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Dogra Duployan
Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han Hangul Hanunoo Hatran Hebrew
Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki Khudawadi Lao Latin Lepcha Limbu
Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Medefaidrin Miao Modi Mongolian Mro Multani
Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage Osmanya Palmyrene Phoenician Rejang Runic Samaritan
Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo Sundanese Syriac Tagalog Tagbanwa Takri Tamil Tangsa
Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Yezidi Yi";

/// Scripts whose names have several words. Go 1.25 and later do not find these in any spelling; older releases do.
const SCRIPTS_OF_SEVERAL_WORDS: &str = "\
Anatolianhieroglyphs Bassavah Canadianaboriginal Caucasianalbanian Cyprominoan Divesakuru Egyptianhieroglyphs
Gunjalagondi Hanifirohingya Imperialaramaic Inscriptionalpahlavi Inscriptionalparthian Kayahli Khitansmallscript
Lineara Linearb Masaramgondi Meeteimayek Mendekikakui Meroiticcursive Meroitichieroglyphs Nagmundari Newtailue
Nyiakengpuachuehmong Olchiki Oldhungarian Olditalic Oldnortharabian Oldpermic Oldpersian Oldsogdian Oldsoutharabian
Oldturkic Olduyghur Pahawhhmong Paucinhau Phagspa Psalterpahlavi Signwriting Sorasompeng Sylotinagri Taile Taitham
Taiviet Warangciti Zanabazarsquare";

/// A nonspacing mark in Unicode 15.0, a spacing mark later.
const RECATEGORISED: (char, char) = ('\u{1171e}', '\u{1171e}');

/// Pairs that fold into each other only since Unicode 15.1.
const FOLDED_LATER: [(char, char); 5] = [
    ('\u{390}', '\u{390}'),
    ('\u{3b0}', '\u{3b0}'),
    ('\u{1fd3}', '\u{1fd3}'),
    ('\u{1fe3}', '\u{1fe3}'),
    ('\u{fb05}', '\u{fb06}'),
];

/// The result of looking up a name in `\p{…}`.
pub(super) enum Named {
    Class(ClassUnicode),
    /// API servers of different versions treat the name differently.
    Disputed,
    Unknown,
}

fn is_among(words: &str, name: &str) -> bool {
    words.split_ascii_whitespace().any(|word| word == name)
}

/// The class of a name in `\p{…}`; case, spaces, hyphens and underscores are ignored.
pub(super) fn named(name: &str) -> Named {
    let name = canonical(name);
    let name = name.as_str();
    let class = match name {
        "Any" => ranges(&[('\0', char::MAX)]),
        "Ascii" => ranges(&[('\0', '\x7f')]),
        "Assigned" => assigned().clone(),
        "Cn" | "Unassigned" => unassigned(),
        // Valid strings contain no surrogates.
        "Cs" | "Surrogate" => ClassUnicode::empty(),
        "C" | "Other" => {
            let mut class = table("C");
            class.intersect(assigned());
            class.union(&unassigned());
            class
        }
        _ if is_among(CATEGORIES, name) || is_among(SCRIPTS, name) => {
            let mut class = table(name);
            class.intersect(assigned());
            match name {
                "Mn" | "Nonspacingmark" => class.union(&ranges(&[RECATEGORISED])),
                "Mc" | "Spacingmark" => class.difference(&ranges(&[RECATEGORISED])),
                _ => {}
            }
            class
        }
        _ if is_among(SCRIPTS_OF_SEVERAL_WORDS, name) => return Named::Disputed,
        _ => return Named::Unknown,
    };
    Named::Class(class)
}

fn canonical(name: &str) -> String {
    let name: String = name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).collect();
    let rest = name.get(1..).unwrap_or_default().to_ascii_lowercase();
    name.get(..1).unwrap_or_default().to_ascii_uppercase() + &rest
}

/// The class in the tables of regex-syntax.
fn table(name: &str) -> ClassUnicode {
    match regex_syntax::parse(&format!(r"\p{{{name}}}")).map(regex_syntax::hir::Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(class))) => class,
        // A class with a single member.
        Ok(HirKind::Literal(literal)) => {
            let text = String::from_utf8_lossy(&literal.0);
            ClassUnicode::new(text.chars().map(|character| ClassUnicodeRange::new(character, character)))
        }
        // Unreachable for the names above; a test covers all of them.
        _ => ClassUnicode::empty(),
    }
}

fn assigned() -> &'static ClassUnicode {
    static ASSIGNED: OnceLock<ClassUnicode> = OnceLock::new();
    ASSIGNED.get_or_init(|| {
        let mut class = table("Age=15.0");
        // Unassigned code points have an age too.
        class.difference(&table("Cn"));
        class
    })
}

fn unassigned() -> ClassUnicode {
    let mut class = assigned().clone();
    class.negate();
    class
}

/// Whether Go folds the class found by `named`; it has no folding table for cased letters.
pub(super) fn is_folded(name: &str) -> bool {
    !matches!(canonical(name).as_str(), "Lc" | "Casedletter")
}

/// The class extended by everything that differs from a member only in case.
pub(super) fn folded(class: &ClassUnicode) -> ClassUnicode {
    let mut old = class.clone();
    old.intersect(assigned());
    old.difference(&ranges(&FOLDED_LATER));
    old.case_fold_simple();
    old.intersect(assigned());
    old.union(class);
    old
}

/// `\d`, `\s`, `\w`: ASCII only, without the vertical tab.
pub(super) fn perl(letter: char) -> Option<ClassUnicode> {
    Some(match letter {
        'd' => ranges(&[('0', '9')]),
        's' => ranges(&[('\t', '\n'), ('\x0c', '\r'), (' ', ' ')]),
        'w' => word(),
        _ => return None,
    })
}

/// The word characters for `\b`.
pub(super) fn word() -> ClassUnicode {
    ranges(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')])
}

/// `[:alpha:]` and similar.
pub(super) fn posix(name: &str) -> Option<ClassUnicode> {
    Some(match name {
        "alnum" => ranges(&[('0', '9'), ('A', 'Z'), ('a', 'z')]),
        "alpha" => ranges(&[('A', 'Z'), ('a', 'z')]),
        "ascii" => ranges(&[('\0', '\x7f')]),
        "blank" => ranges(&[('\t', '\t'), (' ', ' ')]),
        "cntrl" => ranges(&[('\0', '\x1f'), ('\x7f', '\x7f')]),
        "digit" => ranges(&[('0', '9')]),
        "graph" => ranges(&[('!', '~')]),
        "lower" => ranges(&[('a', 'z')]),
        "print" => ranges(&[(' ', '~')]),
        "punct" => ranges(&[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
        "space" => ranges(&[('\t', '\r'), (' ', ' ')]),
        "upper" => ranges(&[('A', 'Z')]),
        "word" => word(),
        "xdigit" => ranges(&[('0', '9'), ('A', 'F'), ('a', 'f')]),
        _ => return None,
    })
}

/// `.`, with or without the newline.
pub(super) fn any(with_newline: bool) -> ClassUnicode {
    if with_newline { ranges(&[('\0', char::MAX)]) } else { ranges(&[('\0', '\t'), ('\x0b', char::MAX)]) }
}

pub(super) fn ranges(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|(first, last)| ClassUnicodeRange::new(*first, *last)))
}
