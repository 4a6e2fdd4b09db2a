//! Enums whose variants each have one word, used in machine formats and for people.

/// Declares an enum that serde and `as_str` write as the same word.
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
            /// The variant's word in every output.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}
