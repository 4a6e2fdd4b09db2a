//! Enums whose variants each have one word: in the machine formats, and for people.

/// An enum that is written as one word everywhere: by serde, and by `as_str`.
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
            /// Its word in every output.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}
