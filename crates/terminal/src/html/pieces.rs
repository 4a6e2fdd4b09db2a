//! Sentences with code in them, as findings write them: `set \`spec.f\` first`.

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) is_code: bool,
}

/// The parts of a sentence that begins like one: steps are written to follow a label.
pub(crate) fn capitalised(step: &str) -> Vec<Piece> {
    let mut pieces = pieces(step);
    if let Some(first) = pieces.first_mut().filter(|first| !first.is_code) {
        let mut characters = first.text.chars();
        let capital: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
        first.text = capital + characters.as_str();
    }
    pieces
}

/// The parts of a sentence between backquotes and around them. One that nothing closes is text.
fn pieces(sentence: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = sentence;
    while let Some((before, (code, after))) =
        rest.split_once('`').and_then(|(before, from)| Some((before, from.split_once('`')?)))
    {
        pieces.push(Piece { text: before.to_owned(), is_code: false });
        pieces.push(Piece { text: code.to_owned(), is_code: true });
        rest = after;
    }
    pieces.push(Piece { text: rest.to_owned(), is_code: false });
    pieces.retain(|piece| !piece.text.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn code_stands_between_backquotes() {
        let shown = |sentence: &str| {
            let shown = |piece: &Piece| if piece.is_code { format!("<{}>", piece.text) } else { piece.text.clone() };
            pieces(sentence).iter().map(shown).collect::<String>()
        };
        assert_eq!(shown("set `a` and `b`"), "set <a> and <b>");
        assert_eq!(shown("one ` alone"), "one ` alone");
        assert_eq!(capitalised("`a` first"), pieces("`a` first"));
        assert_eq!(capitalised("set `a`")[0].text, "Set ");
    }

    proptest! {
        #[test]
        fn nothing_else_is_lost(sentence in any::<String>()) {
            let together: String = pieces(&sentence).into_iter().map(|piece| piece.text).collect();
            prop_assert_eq!(together.replace('`', ""), sentence.replace('`', ""));
        }
    }
}
