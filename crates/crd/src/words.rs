//! Enums whose variants each have one word, used in machine formats and for people.

/// Declares an enum that serde, `as_str` and `of` write and read as the same word.
#[macro_export]
macro_rules! words {
    ($(#[$documentation:meta])* pub enum $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$documentation])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::serde::Serialize, ::serde::Deserialize,
        )]
        pub enum $name {
            $($(#[$of_variant])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All variants, in order.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The variant's word in every output.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The variant with this word.
            #[must_use]
            pub fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|variant| variant.as_str() == word)
            }
        }
    };
}
