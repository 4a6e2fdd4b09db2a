//! `email`: a plain address such as `a.b@example.com`. The other forms that Go's `net/mail` parses (display names,
//! quotes, comments, groups, addresses in brackets) are not decided here.
//!
//! Called by `IsEmail` in k8s.io/kube-openapi `pkg/validation/strfmt/default.go`.

/// Whether the text is an address; `None` if only a full RFC 5322 parser could tell.
pub(super) fn is_address(text: &str) -> Option<bool> {
    let is_plain = text.chars().all(|character| is_atom(character) || matches!(character, '.' | '@'));
    match text.split_once('@') {
        None => Some(false),
        Some((local, domain)) if is_plain => Some(is_dot_atom(local) && is_dot_atom(domain)),
        Some(_) => None,
    }
}

/// Atoms separated by dots.
fn is_dot_atom(text: &str) -> bool {
    text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom))
}

fn is_atom(character: char) -> bool {
    !character.is_ascii() || (character.is_ascii_graphic() && !"()<>[]:;@\\,.\"".contains(character))
}
