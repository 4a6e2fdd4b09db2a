//! Compares formats as patterns with the checks of the same formats that follow the server's code.

use super::*;
use crate::schema::pattern::{Budget, Language};
use crate::schema::pipeline::{Server, format_is_valid};

#[test]
fn formats_hold_what_the_api_server_accepts() {
    let server = Server { minor: 36 };
    let mut checked = 0;
    for (name, _) in FORMATS {
        let format = of_format(name).unwrap_or_else(|| panic!("{name} does not compile"));
        let language = Language { matching: vec![format], ..Language::default() };
        let mut texts = language.examples(40, &mut Budget::new(5_000_000));
        texts.extend(["", "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0000-02-29"].map(str::to_owned));
        for text in texts.clone() {
            for (index, character) in text.char_indices() {
                let (before, after) = (&text[..index], &text[index + character.len_utf8()..]);
                texts.push(format!("{before}{after}"));
                texts.extend(
                    ['0', '3', '9', 'A', 'g', 'Z', '-', '#', ' ', '=', '\n', 'é']
                        .map(|other| format!("{before}{other}{after}")),
                );
                texts.push(format!("{before}{character}{character}{after}"));
            }
            texts.push(format!("{text}\n"));
        }
        for text in texts {
            assert_eq!(format_is_valid(name, &text, server), Some(format.is_match(&text)), "{name} {text:?}");
            checked += 1;
        }
    }
    assert!(checked > 1000);
}

#[test]
fn dates_are_those_of_the_calendar() {
    let date = of_format("date").expect("known");
    for year in 0..=9999 {
        for day in ["02-28", "02-29", "02-30", "12-31", "04-31", "13-01", "00-10"] {
            let text = format!("{year:04}-{day}");
            assert_eq!(format_is_valid("date", &text, Server { minor: 36 }), Some(date.is_match(&text)), "{text}");
        }
    }
    for month in 0..=13 {
        for day in 0..=32 {
            let text = format!("2021-{month:02}-{day:02}");
            assert_eq!(format_is_valid("date", &text, Server { minor: 36 }), Some(date.is_match(&text)), "{text}");
        }
    }
}

#[test]
fn formats_without_a_regular_check_have_no_language() {
    for name in [
        "uri",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "cidr",
        "mac",
        "duration",
        "date-time",
        "isbn",
        "creditcard",
        "k8s-long-name",
        "int32",
        "",
    ] {
        assert!(of_format(name).is_none(), "{name}");
    }
    assert!(of_format("bson-object-id").is_some(), "hyphens do not count");
}
