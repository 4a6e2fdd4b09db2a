//! Makes untrusted text safe to print: characters that a terminal acts on or a reader cannot see become escapes. All
//! text from input, server or environment passes through here before printing, and the output as a whole again.

use std::borrow::Cow;
use std::fmt::Write as _;

/// One line of text without terminal control characters; line breaks become `\n`.
#[must_use]
pub fn terminal_safe(text: &str) -> Cow<'_, str> {
    escape(text, false)
}

/// The same with line breaks kept (`\r\n` becomes `\n`).
#[must_use]
pub fn terminal_safe_lines(text: &str) -> Cow<'_, str> {
    escape(text, true)
}

fn escape(text: &str, keep_lines: bool) -> Cow<'_, str> {
    let kept = |character: char| keep_lines && character == '\n';
    let Some(first) = text.find(|character| is_hidden(character) && !kept(character)) else {
        return Cow::Borrowed(text);
    };
    let mut safe = String::with_capacity(text.len() + 16);
    safe.push_str(&text[..first]);
    let mut characters = text[first..].chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' if keep_lines && characters.peek() == Some(&'\n') => {}
            '\n' if !keep_lines => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            _ if is_hidden(character) && !kept(character) => {
                // Writing to a String cannot fail.
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
            }
            _ => safe.push(character),
        }
    }
    Cow::Owned(safe)
}

/// Returns whether a character is a control, changes the direction of text, is invisible, or is none: XML refuses U+FFFE and
/// U+FFFF. From Unicode's `Cc`, `Cf`, `Zl`, `Zp`, `Default_Ignorable_Code_Point` and `Noncharacter_Code_Point`; joiners
/// stay.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || u32::from(character) & 0xfffe == 0xfffe
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fdd0}'..='\u{fdef}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Text in which no line is a workflow command. CI runners read a job's log: GitHub's acts on a line that starts with
/// `::name` and contains another `::`; older runners and Azure's act on `##[name` and `##vso[name` anywhere. Writing
/// the first character as `\\u003a` prevents that, and JSON reads it as the same text.
#[must_use]
pub fn without_commands(text: &str) -> Cow<'_, str> {
    if !text.contains("::") && !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    // Any character that some reader takes as a line end.
    for line in text.split_inclusive(['\n', '\r']) {
        let mut rest = line;
        if is_command(line) {
            let start = line.len() - line.trim_start().len();
            safe.push_str(&line[..start]);
            safe.push_str("\\u003a");
            rest = &line[start + 1..];
        }
        while let Some(at) = rest.find("##") {
            let (before, from) = rest.split_at(at);
            safe.push_str(before);
            let word = from[2..].trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
            safe.push_str(if word.starts_with('[') { "\\u0023" } else { "#" });
            rest = &from[1..];
        }
        safe.push_str(rest);
    }
    Cow::Owned(safe)
}

/// Whether a line is a command such as `::error file=x::text`, after blanks. An address such as `::1` is not.
fn is_command(line: &str) -> bool {
    let Some((command, _)) = line.trim_start().strip_prefix("::").and_then(|rest| rest.split_once("::")) else {
        return false;
    };
    let name = command.split(' ').next().unwrap_or_default();
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphabetic() || "-_".contains(letter))
}

/// The same JSON with hidden characters inside strings written as `\uXXXX`: safe on a terminal, and equal for a parser.
#[must_use]
pub fn terminal_safe_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for character in json.chars() {
        // Outside strings, the only control characters are the line breaks of pretty JSON.
        if character != '\n' && is_hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_text_is_not_copied() {
        assert!(matches!(terminal_safe("image: web:1.9 – größer, 画像"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_a_terminal_acts_on_is_shown() {
        assert_eq!(terminal_safe("a\u{1b}[31mred\u{7}"), "a\\u{1b}[31mred\\u{7}");
        assert_eq!(terminal_safe("a\nb\r\tc"), "a\\nb\\r\\tc");
        assert_eq!(terminal_safe("\u{9b}2J"), "\\u{9b}2J");
        assert_eq!(terminal_safe("user\u{202e}txt.exe"), "user\\u{202e}txt.exe");
        assert_eq!(terminal_safe("ad\u{200b}min"), "ad\\u{200b}min");
        assert_eq!(terminal_safe("x\u{e0041}"), "x\\u{e0041}");
    }

    #[test]
    fn lines_are_kept_only_where_asked() {
        assert_eq!(terminal_safe_lines("a\r\nb\nc\rd\u{2028}e"), "a\nb\nc\\rd\\u{2028}e");
    }

    /// Commands of GitHub's runner, case-insensitive.
    const COMMANDS: [&str; 15] = [
        "add-mask",
        "add-matcher",
        "add-path",
        "debug",
        "echo",
        "endgroup",
        "error",
        "group",
        "internal-set-repo-path",
        "notice",
        "remove-matcher",
        "save-state",
        "set-env",
        "stop-commands",
        "warning",
    ];

    fn is_known(name: &str) -> bool {
        COMMANDS.contains(&name.to_lowercase().as_str()) || name.eq_ignore_ascii_case("set-output")
    }

    /// Whether the runner acts on a line, by its grammar: `::name properties::data` after blanks, or the older `##[name
    /// properties]data` anywhere.
    fn runner_acts_on(line: &str) -> bool {
        let name = |command: &str| command.split(' ').next().unwrap_or_default().to_owned();
        let now = line.trim_start().strip_prefix("::").and_then(|rest| rest.split_once("::"));
        let before = line.split_once("##[").and_then(|(_, rest)| rest.split_once(']'));
        [now, before].into_iter().flatten().any(|(command, _)| is_known(&name(command)))
    }

    #[test]
    fn a_line_that_a_runner_would_act_on_is_shown_to_it_in_another_spelling() {
        let safe = |text: &str| without_commands(text).into_owned();
        assert_eq!(safe("a\n  ::error file=x::y\n"), "a\n  \\u003a:error file=x::y\n");
        assert_eq!(safe("x ##[group]y ##vso[task.x]z ###[a]"), "x \\u0023#[group]y \\u0023#vso[task.x]z #\\u0023#[a]");
        for plain in ["::1 localhost ip6-localhost ::2", "a::b::c", "## [x]", "Vec::new()", "::::", ":: ::"] {
            assert_eq!(safe(plain), plain);
        }
    }

    #[test]
    fn json_means_the_same_afterwards() {
        let value = serde_json::json!({"a": "##[error]x", "b": "\\##[error]", "::error::": "::error::y"});
        for text in [value.to_string(), format!("{value:#}")] {
            let safe = without_commands(&text).into_owned();
            assert!(!safe.lines().any(runner_acts_on), "{safe}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).expect("json"), value);
        }
    }

    proptest! {
        #[test]
        fn no_line_is_a_command_for_a_runner(
            parts in prop::collection::vec(prop_oneof![
                Just("::".to_owned()), Just("##[".to_owned()), Just("##".to_owned()), Just("[".to_owned()),
                Just("]".to_owned()), Just(" ".to_owned()), Just("\n".to_owned()), Just("\r".to_owned()),
                Just("\u{2003}".to_owned()), Just("#".to_owned()), Just(":".to_owned()), Just("a=b,".to_owned()),
                prop::sample::select(&COMMANDS[..]).prop_map(str::to_owned), "[a-zA-Z]{0,3}",
            ], 0..12),
        ) {
            let text = parts.concat();
            let safe = without_commands(&text);
            prop_assert!(!safe.split(['\n', '\r']).any(runner_acts_on), "{safe:?}");
            prop_assert!(text.split(['\n', '\r']).any(runner_acts_on) || text.contains("##") || text.contains("::")
                || safe == text);
        }

        #[test]
        fn nothing_hidden_gets_through(text in any::<String>()) {
            let line = terminal_safe(&text);
            prop_assert!(line.bytes().all(|byte| byte >= 0x20 && byte != 0x7f));
            prop_assert!(!line.chars().any(is_hidden));
            prop_assert!(!terminal_safe_lines(&text).chars().any(|c| c != '\n' && is_hidden(c)));
        }

        #[test]
        fn hostile_characters_are_escaped_wherever_they_stand(
            before in "[a-z]{0,3}",
            hostile in prop_oneof![
                prop::char::range('\0', '\u{1f}'),
                prop::char::range('\u{7f}', '\u{9f}'),
                prop::char::range('\u{202a}', '\u{202e}'),
                prop::char::range('\u{2066}', '\u{2069}'),
                prop::char::range('\u{200b}', '\u{200f}'),
            ],
            after in "[a-z]{0,3}",
        ) {
            let text = format!("{before}{hostile}{after}");
            let safe = terminal_safe(&text);
            prop_assert!(!safe.contains(hostile));
            prop_assert!(safe.starts_with(&before) && safe.ends_with(&after) && safe.contains('\\'));
        }
    }
}
