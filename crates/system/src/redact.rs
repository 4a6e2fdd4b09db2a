//! Removes secret values from text that quotes them, such as messages of servers and webhooks.
//! Works on text alone; the caller says which values are secret.

use std::fmt;

use base64::Engine;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::Value;

/// Shorter values are masked only as whole words: masking every `a` would leave no message.
const MIN_PART: usize = 4;

/// Shorter lines of a longer value are too likely to occur in unrelated text.
const MIN_LINE: usize = 8;

/// A shorter word after `Bearer` may be an ordinary word.
const MIN_TOKEN: usize = 16;

/// How the header of a JSON Web Token starts: `{"` in base64, in lower case.
const JSON_WEB_TOKEN: &str = "eyj";

const BASE64_FORMS: [GeneralPurpose; 4] = [STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD, URL_SAFE];

const MASK: &str = "***";

/// Text that is or names a URL, without its user, query and fragment, which can be secret; the digest of its content,
/// `#sha256=…`, is none.
pub fn url(text: &str) -> String {
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let text = text.split('?').next().unwrap_or_default();
    let digest = digest_in(fragment).map(|digest| format!("#{DIGEST}{digest}")).unwrap_or_default();
    // A missing slash makes it a path, and hides no password.
    let mistyped = || {
        text.split_once(":/").filter(|(scheme, _)| {
            let scheme = scheme.to_ascii_lowercase();
            scheme.ends_with("http") || scheme.ends_with("https")
        })
    };
    if is_reference(text) {
        return text.to_owned();
    }
    match text.split_once("://").or_else(mistyped) {
        Some((scheme, rest)) => format!("{scheme}://{}{digest}", rest.rsplit('@').next().unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns whether a text is or names an artifact of a registry, `oci://HOST/PATH@VERSION`: then an @ is not that of a user.
fn is_reference(text: &str) -> bool {
    let Some((before, rest)) = text.split_once("://") else { return false };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_host = match host.rsplit_once(':') {
        Some((host, port)) => !host.contains('@') && port.bytes().all(|digit| digit.is_ascii_digit()),
        None => !host.contains('@'),
    };
    let is_version = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+:-".contains(&byte));
    let is_plain = match path.split_once('@') {
        Some((_, version)) => is_version(version),
        None => true,
    };
    before.ends_with("oci") && is_host && is_plain
}

/// How a digest behind the # of a URL starts.
pub const DIGEST: &str = "sha256=";

/// The digest behind the # of a URL: 64 hexadecimal digits and nothing else.
pub fn digest_in(fragment: &str) -> Option<&str> {
    let digest = fragment.strip_prefix(DIGEST)?;
    (digest.len() == 64 && digest.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(digest)
}

/// Values of a request that no message may show. Empty for requests without Secrets.
#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<String>,
    /// Also mask values that the server quotes and the request did not contain: the server may have changed one.
    strict: bool,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

impl Secrets {
    /// The values in the body of a request about a Secret, be it an object or a patch.
    pub fn of_body(body: &Value) -> Self {
        let mut values = Vec::new();
        match body {
            // A JSON patch: the values of its operations.
            Value::Array(operations) => {
                for operation in operations {
                    collect(operation.get("value").unwrap_or(&Value::Null), &mut values);
                }
            }
            object => {
                for field in ["data", "stringData"] {
                    collect(object.get(field).unwrap_or(&Value::Null), &mut values);
                }
                // `kubectl apply` keeps the whole manifest in an annotation.
                collect(object.pointer("/metadata/annotations").unwrap_or(&Value::Null), &mut values);
            }
        }
        Self::of(&values)
    }

    /// The values of the Secrets among some objects, for text that is no message of a server.
    pub fn of_secrets<'a>(objects: impl Iterator<Item = &'a Value>) -> Self {
        let is_secret =
            |object: &&Value| object["kind"].as_str() == Some("Secret") && object["apiVersion"].as_str() == Some("v1");
        let values = objects.filter(is_secret).flat_map(|secret| Self::of_body(secret).values).collect();
        Self { values, strict: false }.sort()
    }

    /// Values that the user declared secret, wherever they occur.
    pub fn of_values<'a>(found: impl Iterator<Item = &'a Value>) -> Self {
        let mut values = Vec::new();
        found.for_each(|value| collect(value, &mut values));
        Self::of(&values)
    }

    /// Credentials: masked if a server or proxy echoes them; other text stays as it is.
    pub fn of_credentials(given: &[String]) -> Self {
        Self { strict: false, ..Self::of(given) }
    }

    fn of(given: &[String]) -> Self {
        let mut values: Vec<String> = given.iter().flat_map(|value| spellings(value)).collect();
        values.retain(|value| !value.is_empty());
        Self { values, strict: true }.sort()
    }

    /// Combines two sets so that both are masked at once: after one mask, the rest of a value is no longer recognised.
    pub fn and(mut self, other: &Self) -> Self {
        self.values.extend(other.values.iter().cloned());
        self.strict |= other.strict;
        self.sort()
    }

    fn sort(mut self) -> Self {
        // The longest first, so that a value that contains another is masked whole.
        self.values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.values.dedup();
        self
    }

    /// The text with every value replaced.
    pub fn mask(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for value in &self.values {
            if masked.contains(value.as_str()) {
                masked = if value.len() >= MIN_PART {
                    replace_with_word(&masked, value)
                } else {
                    replace_word(&masked, value)
                };
            }
        }
        let masked = mask_tokens(masked);
        if self.strict { blank_invalid_values(&cut_excerpt(&masked)) } else { masked }
    }
}

fn collect(value: &Value, values: &mut Vec<String>) {
    match value {
        Value::String(text) => values.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, values)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, values)),
        Value::Number(number) => values.push(number.to_string()),
        Value::Null | Value::Bool(_) => {}
    }
}

/// A value in every form in which a message may quote it.
fn spellings(value: &str) -> Vec<String> {
    let mut whole = vec![value.to_owned()];
    let joined: String = value.split_whitespace().collect();
    let decoded = BASE64_FORMS.iter().find_map(|form| form.decode(&joined).ok());
    whole.extend(decoded.and_then(|bytes| String::from_utf8(bytes).ok()));
    // What a value contains is just as secret: the lines of a key, the passwords in a registry configuration.
    let mut all = Vec::new();
    for text in &whole {
        all.extend(text.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE).map(str::to_owned));
        if let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
            collect(&inner, &mut all);
        }
        if text.len() >= MIN_PART {
            all.push(url::form_urlencoded::byte_serialize(text.as_bytes()).collect());
            all.push(text.bytes().map(|byte| format!("{byte:02x}")).collect());
            all.extend(BASE64_FORMS.iter().map(|form| form.encode(text)));
        }
    }
    all.extend(whole);
    let quoted: Vec<String> = all.iter().map(|text| Value::from(text.as_str()).to_string()).collect();
    all.extend(quoted.iter().filter_map(|text| text.strip_prefix('"')?.strip_suffix('"')).map(str::to_owned));
    all
}

/// Masks credentials by their form: the client library renews tokens itself and does not expose the new ones.
fn mask_tokens(mut text: String) -> String {
    let is_of_token = |character: char| character.is_ascii_alphanumeric() || "-._~+/=".contains(character);
    for mark in ["bearer ", "basic ", JSON_WEB_TOKEN] {
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| rest.to_ascii_lowercase().find(mark)) {
            let is_web_token = mark == JSON_WEB_TOKEN;
            let start = from + found + if is_web_token { 0 } else { mark.len() };
            let rest = &text[start..];
            let token = &rest[..rest.find(|character| !is_of_token(character)).unwrap_or(rest.len())];
            let end = start + token.len();
            let is_token = if is_web_token { token.matches('.').count() >= 2 } else { token.len() >= MIN_TOKEN };
            from = if is_token {
                text.replace_range(start..end, MASK);
                start + MASK.len()
            } else {
                start + usize::from(is_web_token)
            };
        }
    }
    text
}

/// Replaces a text together with the word around it, because the rest of the word may belong to the secret.
fn replace_with_word(text: &str, part: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(part) {
        let (before, found) = rest.split_at(start);
        replaced.push_str(before.trim_end_matches(is_inside));
        replaced.push_str(MASK);
        rest = found.strip_prefix(part).unwrap_or_default().trim_start_matches(is_inside);
    }
    replaced.push_str(rest);
    replaced
}

/// Whether a character can be inside a word or a base64 value.
fn is_inside(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '+' | '/' | '=')
}

/// Replaces a text where it is a whole word.
fn replace_word(text: &str, word: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(word) {
        let (before, found) = rest.split_at(start);
        let after = found.strip_prefix(word).unwrap_or_default();
        let bounded = !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        replaced.push_str(before);
        replaced.push_str(if bounded { MASK } else { word });
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

/// Cuts a decoder's excerpt of the body and all that follows: `error found in #10 byte of ...|…|...`,
/// `expected string, got &value.valueUnstructured{…}`.
fn cut_excerpt(text: &str) -> String {
    for mark in ["error found in #", ", got "] {
        if let Some((before, _)) = text.split_once(mark) {
            return format!("{before}{mark}{MASK}");
        }
    }
    text.to_owned()
}

/// `Invalid value: "…": must be` becomes `Invalid value: ***: must be`, whatever the server quoted or escaped.
fn blank_invalid_values(text: &str) -> String {
    const MARKS: [&str; 3] = ["Invalid value: ", "Unsupported value: ", "Duplicate value: "];
    let mut rest = text;
    let mut blanked = String::with_capacity(text.len());
    while let Some((start, mark)) =
        MARKS.iter().filter_map(|mark| rest.find(mark).map(|start| (start, *mark))).min_by_key(|(start, _)| *start)
    {
        let value_start = start + mark.len();
        let (before, value) = rest.split_at(value_start);
        blanked.push_str(before);
        blanked.push_str(MASK);
        rest = value.get(length_of_value(value)..).unwrap_or_default();
    }
    blanked.push_str(rest);
    blanked
}

/// Length of a quoted, bracketed or bare value at the start of a text.
fn length_of_value(text: &str) -> usize {
    if !text.starts_with('"') {
        return text.find(": ").unwrap_or(text.len());
    }
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_masked_plain_and_decoded() {
        let secrets = Secrets::of_body(&json!({"data": {"password": "aHVudGVyMg=="}, "stringData": {"pin": "42"}}));
        assert_eq!(
            secrets.mask("webhook said hunter2 is weak, 42 and \"42\" too, sent aHVudGVyMg==, rule 420"),
            "webhook said *** is weak, *** and \"***\" too, sent ***, rule 420"
        );
    }

    #[test]
    fn a_value_is_masked_however_it_is_written() {
        let secrets = Secrets::of_body(&json!({"stringData": {"password": "p\"a s+\nhunter2-line"}}));
        for quoted in [
            "p\"a s+\nhunter2-line",
            r#"p\"a s+\nhunter2-line"#,
            "p%22a+s%2B%0Ahunter2-line",
            "702261 20732b0a68756e746572322d6c696e65",
            "hunter2-line",
            "cCJhIHMrCmh1bnRlcjItbGluZQ==",
            "cCJhIHMrCmh1bnRlcjItbGluZQ",
        ] {
            let shown = secrets.mask(&format!("refused: {}!", quoted.replace("702261 20", "70226120")));
            assert_eq!(shown, "refused: ***!");
        }
    }

    #[test]
    fn what_is_left_of_a_longer_value_is_masked_with_its_part() {
        let secrets = Secrets::of_body(&json!({"stringData": {"new": "hunter2"}}));
        assert_eq!(secrets.mask("was old-hunter22, and aHVudGVyMg=="), "was old-***, and ***");
    }

    #[test]
    fn what_is_inside_of_a_value_is_masked_too() {
        let inner = r#"{"auths":{"registry.example":{"username":"robot","password":"hunter2"}}}"#;
        let body = json!({"data": {".dockerconfigjson": STANDARD.encode(inner)}});
        let secrets = Secrets::of_body(&body);
        assert_eq!(
            secrets.mask("registry.example: robot may not log in with hunter2"),
            "registry.example: *** may not log in with ***"
        );
    }

    #[test]
    fn quoted_values_are_blanked_even_if_the_server_changed_them() {
        let secrets = Secrets::of_body(&json!({"data": {}}));
        assert_eq!(
            secrets.mask(
                "data[a]: Invalid value: \"so \\\"quoted\\\"\": must be x, data[b]: Invalid value: 12: must be y"
            ),
            "data[a]: Invalid value: ***: must be x, data[b]: Invalid value: ***: must be y"
        );
    }

    #[test]
    fn an_unclosed_quote_masks_to_the_end() {
        assert_eq!(Secrets::of_body(&json!({})).mask("Invalid value: \"abc"), "Invalid value: ***");
    }

    #[test]
    fn values_of_a_json_patch_are_masked_but_not_its_paths() {
        let secrets = Secrets::of_body(&json!([{"op": "replace", "path": "/data/key", "value": "c2VjcmV0"}]));
        assert_eq!(secrets.mask("replace /data/key with c2VjcmV0 (secret)"), "replace /data/key with *** (***)");
    }

    #[test]
    fn what_a_decoder_shows_of_the_body_is_cut() {
        let secrets = Secrets::of_body(&json!({"stringData": {"a": "x"}}));
        assert_eq!(
            secrets.mask("bad input, error found in #10 byte of ...|a\":\"x|..."),
            "bad input, error found in #***"
        );
        assert_eq!(secrets.mask(".data.a: expected string, got &value{Value:77}"), ".data.a: expected string, got ***");
    }

    #[test]
    fn a_url_is_shown_without_what_can_be_secret() {
        assert_eq!(url("https://user:s3cret@exa mple/a?token=s3cret"), "https://exa mple/a");
        assert_eq!(url("--file=https://user:s3cret@example.com/a#s3cret"), "--file=https://example.com/a");
        assert_eq!(url("--file=HTTPS:/user:s3cret@example.com/a"), "--file=HTTPS://example.com/a");
        assert_eq!(url("--cluster=dir:/a@b"), "--cluster=dir:/a@b");
        for reference in ["oci://ghcr.io/a/b@sha256:00", "--file=helm:oci://localhost:5000/chart@1.2.3+b"] {
            assert_eq!(url(reference), reference);
        }
        assert_eq!(url("oci://user:s3cret@host/a@1.0"), "oci://1.0");
        assert_eq!(url("oci://user:s3/cret@host/a"), "oci://host/a");
    }

    #[test]
    fn credentials_that_a_server_hands_back_are_masked_and_nothing_else() {
        let secrets = Secrets::of_credentials(&["hunter2-token".to_owned(), "me:hunter2".to_owned()]);
        assert_eq!(
            secrets
                .mask("refused Bearer hunter2-token and Basic bWU6aHVudGVyMg==: spec.replicas: Invalid value: -1: no"),
            "refused Bearer *** and Basic ***: spec.replicas: Invalid value: -1: no"
        );
        assert!(!format!("{secrets:?}").contains("hunter2"));
    }

    #[test]
    fn other_objects_are_shown_as_they_are() {
        assert_eq!(
            Secrets::default().mask("spec.replicas: Invalid value: -1: no"),
            "spec.replicas: Invalid value: -1: no"
        );
    }
}
