//! The functions and operators that rules of Kubernetes 1.36 may call, with their overloads, in the order in which the API
//! server's checker tries them.

use super::types::Type;

/// A type of a signature.
#[derive(Clone, Copy, Debug)]
enum S {
    A,
    B,
    Dyn,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    Url,
    Quantity,
    Semver,
    Format,
    Ip,
    Cidr,
    Type,
    List(&'static S),
    Map(&'static S, &'static S),
    Optional(&'static S),
}

impl S {
    fn of(self) -> Type {
        match self {
            Self::A => Type::Variable(0),
            Self::B => Type::Variable(1),
            Self::Dyn => Type::Dyn,
            Self::Bool => Type::Bool,
            Self::Int => Type::Int,
            Self::Uint => Type::Uint,
            Self::Double => Type::Double,
            Self::String => Type::String,
            Self::Bytes => Type::Bytes,
            Self::Duration => Type::Duration,
            Self::Timestamp => Type::Timestamp,
            Self::Url => Type::Struct("kubernetes.URL".into()),
            Self::Quantity => Type::Struct("kubernetes.Quantity".into()),
            Self::Semver => Type::Struct("kubernetes.Semver".into()),
            Self::Format => Type::Struct("kubernetes.NamedFormat".into()),
            Self::Ip => Type::Opaque("net.IP"),
            Self::Cidr => Type::Opaque("net.CIDR"),
            Self::Type => Type::Meta,
            Self::List(of) => Type::list(of.of()),
            Self::Map(key, value) => Type::Map(key.of().into(), value.of().into()),
            Self::Optional(of) => Type::optional(of.of()),
        }
    }
}

/// What an overload costs beyond what its function costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Price {
    /// One unit, or what the function costs.
    Plain,
    /// The shorter of two texts or lists is gone through.
    Compare,
    AddText,
    AddList,
    Contained,
    Matches,
    Contains,
    StartsOrEnds,
    TextToBytes,
    BytesToText,
    Format,
    IndexList,
    IndexMap,
    Condition,
    /// Each item of one list with each of the other, so many times.
    Sets(u8),
    /// It reads a text instead of something that was read.
    WithText,
    /// It only looks at a part of what was read.
    Part,
    /// Not known here.
    Unknown,
}

/// A way to call a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overload {
    pub(super) is_member: bool,
    parameters: &'static [S],
    result: S,
    pub(super) price: Price,
}

/// Variables of a signature.
pub(super) const VARIABLES: u32 = 2;

impl Overload {
    /// Parameters and result, with variables of its own from `fresh` on.
    pub(super) fn signature(&self, fresh: u32) -> (Vec<Type>, Type) {
        let renamed = |one: S| one.of().renamed(fresh);
        (self.parameters.iter().map(|one| renamed(*one)).collect(), renamed(self.result))
    }
}

const fn global(parameters: &'static [S], result: S) -> Overload {
    Overload { is_member: false, parameters, result, price: Price::Plain }
}

const fn member(parameters: &'static [S], result: S) -> Overload {
    Overload { is_member: true, parameters, result, price: Price::Plain }
}

const fn at(price: Price, overload: Overload) -> Overload {
    Overload { price, ..overload }
}

const COMPARISONS: &[Overload] = &[
    global(&[S::Bool, S::Bool], S::Bool),
    global(&[S::Int, S::Int], S::Bool),
    global(&[S::Int, S::Double], S::Bool),
    global(&[S::Int, S::Uint], S::Bool),
    global(&[S::Uint, S::Uint], S::Bool),
    global(&[S::Uint, S::Double], S::Bool),
    global(&[S::Uint, S::Int], S::Bool),
    global(&[S::Double, S::Double], S::Bool),
    global(&[S::Double, S::Int], S::Bool),
    global(&[S::Double, S::Uint], S::Bool),
    at(Price::Compare, global(&[S::String, S::String], S::Bool)),
    at(Price::Compare, global(&[S::Bytes, S::Bytes], S::Bool)),
    global(&[S::Timestamp, S::Timestamp], S::Bool),
    global(&[S::Duration, S::Duration], S::Bool),
];

const OF_TIMES: &[Overload] = &[member(&[S::Timestamp], S::Int), member(&[S::Timestamp, S::String], S::Int)];
const OF_TIMES_AND_DURATIONS: &[Overload] =
    &[member(&[S::Timestamp], S::Int), member(&[S::Timestamp, S::String], S::Int), member(&[S::Duration], S::Int)];
const OF_ADDRESSES: &[Overload] = &[member(&[S::Ip], S::Bool)];
const OF_URLS: &[Overload] = &[member(&[S::Url], S::String)];
const OF_SEMVERS: &[Overload] = &[member(&[S::Semver], S::Int)];
const CHECKS_TEXT: &[Overload] = &[global(&[S::String], S::Bool)];
const OF_TEXTS: &[Overload] = &[member(&[S::String], S::String)];
const NO_ARGUMENTS: &[Overload] = &[global(&[], S::Format)];
const LIST_OF_TEXTS: S = S::List(&S::String);
const LIST: S = S::List(&S::A);
const MAP: S = S::Map(&S::A, &S::B);
const OPTIONAL: S = S::Optional(&S::A);

const SORTED: &[Overload] = &[
    member(&[S::List(&S::Int)], S::Bool),
    member(&[S::List(&S::Uint)], S::Bool),
    member(&[S::List(&S::Double)], S::Bool),
    member(&[S::List(&S::Bool)], S::Bool),
    member(&[S::List(&S::Duration)], S::Bool),
    member(&[S::List(&S::Timestamp)], S::Bool),
    member(&[S::List(&S::String)], S::Bool),
    member(&[S::List(&S::Bytes)], S::Bool),
];
const EXTREMES: &[Overload] = &[
    member(&[S::List(&S::Int)], S::Int),
    member(&[S::List(&S::Uint)], S::Uint),
    member(&[S::List(&S::Double)], S::Double),
    member(&[S::List(&S::Bool)], S::Bool),
    member(&[S::List(&S::Duration)], S::Duration),
    member(&[S::List(&S::Timestamp)], S::Timestamp),
    member(&[S::List(&S::String)], S::String),
    member(&[S::List(&S::Bytes)], S::Bytes),
];
const SUMS: &[Overload] = &[
    member(&[S::List(&S::Int)], S::Int),
    member(&[S::List(&S::Uint)], S::Uint),
    member(&[S::List(&S::Double)], S::Double),
    member(&[S::List(&S::Duration)], S::Duration),
];

/// The overloads of a function; `None` where it is not known.
pub(super) fn overloads(name: &str) -> Option<&'static [Overload]> {
    Some(match name {
        "_?_:_" => const { &[at(Price::Condition, global(&[S::Bool, S::A, S::A], S::A))] },
        "_&&_" | "_||_" => const { &[global(&[S::Bool, S::Bool], S::Bool)] },
        "!_" | "@not_strictly_false" => const { &[global(&[S::Bool], S::Bool)] },
        "_==_" | "_!=_" => const { &[at(Price::Compare, global(&[S::A, S::A], S::Bool))] },
        "_<_" | "_<=_" | "_>_" | "_>=_" => COMPARISONS,
        "_+_" => {
            const {
                &[
                    at(Price::AddText, global(&[S::Bytes, S::Bytes], S::Bytes)),
                    global(&[S::Double, S::Double], S::Double),
                    global(&[S::Duration, S::Duration], S::Duration),
                    global(&[S::Duration, S::Timestamp], S::Timestamp),
                    global(&[S::Timestamp, S::Duration], S::Timestamp),
                    global(&[S::Int, S::Int], S::Int),
                    at(Price::AddList, global(&[LIST, LIST], LIST)),
                    at(Price::AddText, global(&[S::String, S::String], S::String)),
                    global(&[S::Uint, S::Uint], S::Uint),
                ]
            }
        }
        "_-_" => {
            const {
                &[
                    global(&[S::Double, S::Double], S::Double),
                    global(&[S::Duration, S::Duration], S::Duration),
                    global(&[S::Int, S::Int], S::Int),
                    global(&[S::Timestamp, S::Duration], S::Timestamp),
                    global(&[S::Timestamp, S::Timestamp], S::Duration),
                    global(&[S::Uint, S::Uint], S::Uint),
                ]
            }
        }
        "_*_" | "_/_" => {
            const {
                &[
                    global(&[S::Double, S::Double], S::Double),
                    global(&[S::Int, S::Int], S::Int),
                    global(&[S::Uint, S::Uint], S::Uint),
                ]
            }
        }
        "_%_" => const { &[global(&[S::Int, S::Int], S::Int), global(&[S::Uint, S::Uint], S::Uint)] },
        "-_" => const { &[global(&[S::Double], S::Double), global(&[S::Int], S::Int)] },
        "_[_]" => {
            const {
                &[
                    at(Price::IndexList, global(&[LIST, S::Int], S::A)),
                    at(Price::IndexMap, global(&[MAP, S::A], S::B)),
                    global(&[S::Optional(&LIST), S::Int], OPTIONAL),
                    global(&[S::Optional(&MAP), S::A], S::Optional(&S::B)),
                ]
            }
        }
        "_[?_]" => {
            const {
                &[
                    global(&[LIST, S::Int], OPTIONAL),
                    global(&[S::Optional(&LIST), S::Int], OPTIONAL),
                    global(&[MAP, S::A], S::Optional(&S::B)),
                    global(&[S::Optional(&MAP), S::A], S::Optional(&S::B)),
                ]
            }
        }
        "@in" => const { &[at(Price::Contained, global(&[S::A, LIST], S::Bool)), global(&[S::A, MAP], S::Bool)] },
        _ => return standard(name).or_else(|| library(name)),
    })
}

fn standard(name: &str) -> Option<&'static [Overload]> {
    Some(match name {
        "size" => {
            const {
                &[
                    global(&[S::Bytes], S::Int),
                    member(&[S::Bytes], S::Int),
                    global(&[LIST], S::Int),
                    member(&[LIST], S::Int),
                    global(&[MAP], S::Int),
                    member(&[MAP], S::Int),
                    global(&[S::String], S::Int),
                    member(&[S::String], S::Int),
                ]
            }
        }
        "type" => const { &[global(&[S::A], S::Type)] },
        "dyn" => const { &[global(&[S::A], S::Dyn)] },
        "bool" => const { &[global(&[S::Bool], S::Bool), global(&[S::String], S::Bool)] },
        "bytes" => const { &[global(&[S::Bytes], S::Bytes), at(Price::TextToBytes, global(&[S::String], S::Bytes))] },
        "double" => {
            const {
                &[
                    global(&[S::Double], S::Double),
                    global(&[S::Int], S::Double),
                    global(&[S::String], S::Double),
                    global(&[S::Uint], S::Double),
                ]
            }
        }
        "duration" => {
            const {
                &[
                    global(&[S::Duration], S::Duration),
                    global(&[S::Int], S::Duration),
                    global(&[S::String], S::Duration),
                ]
            }
        }
        "int" => {
            const {
                &[
                    global(&[S::Int], S::Int),
                    global(&[S::Double], S::Int),
                    global(&[S::Duration], S::Int),
                    global(&[S::String], S::Int),
                    global(&[S::Timestamp], S::Int),
                    global(&[S::Uint], S::Int),
                ]
            }
        }
        "uint" => {
            const {
                &[
                    global(&[S::Uint], S::Uint),
                    global(&[S::Double], S::Uint),
                    global(&[S::Int], S::Uint),
                    global(&[S::String], S::Uint),
                ]
            }
        }
        "string" => {
            const {
                &[
                    global(&[S::String], S::String),
                    global(&[S::Bool], S::String),
                    at(Price::BytesToText, global(&[S::Bytes], S::String)),
                    global(&[S::Double], S::String),
                    global(&[S::Duration], S::String),
                    global(&[S::Int], S::String),
                    global(&[S::Timestamp], S::String),
                    global(&[S::Uint], S::String),
                    global(&[S::Ip], S::String),
                    global(&[S::Cidr], S::String),
                ]
            }
        }
        "timestamp" => {
            const {
                &[
                    global(&[S::Timestamp], S::Timestamp),
                    global(&[S::Int], S::Timestamp),
                    global(&[S::String], S::Timestamp),
                ]
            }
        }
        "contains" => const { &[at(Price::Contains, member(&[S::String, S::String], S::Bool))] },
        "startsWith" | "endsWith" => const { &[at(Price::StartsOrEnds, member(&[S::String, S::String], S::Bool))] },
        "matches" => {
            const {
                &[
                    global(&[S::String, S::String], S::Bool),
                    at(Price::Matches, member(&[S::String, S::String], S::Bool)),
                ]
            }
        }
        "getFullYear" | "getMonth" | "getDayOfYear" | "getDayOfMonth" | "getDate" | "getDayOfWeek" => OF_TIMES,
        "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds" => OF_TIMES_AND_DURATIONS,
        "optional.of" | "optional.ofNonZeroValue" => const { &[global(&[S::A], OPTIONAL)] },
        "optional.none" => const { &[global(&[], OPTIONAL)] },
        "value" => const { &[member(&[OPTIONAL], S::A)] },
        "hasValue" => const { &[member(&[OPTIONAL], S::Bool)] },
        "or" => const { &[member(&[OPTIONAL, OPTIONAL], OPTIONAL)] },
        "orValue" => const { &[member(&[OPTIONAL, S::A], S::A)] },
        "first" | "last" => const { &[member(&[LIST], OPTIONAL)] },
        "optional.unwrap" => const { &[global(&[S::List(&OPTIONAL)], LIST)] },
        "unwrapOpt" => const { &[member(&[S::List(&OPTIONAL)], LIST)] },
        _ => return None,
    })
}

fn library(name: &str) -> Option<&'static [Overload]> {
    Some(match name {
        "charAt" => const { &[member(&[S::String, S::Int], S::String)] },
        "indexOf" | "lastIndexOf" => {
            const {
                &[
                    member(&[S::String, S::String], S::Int),
                    member(&[S::String, S::String, S::Int], S::Int),
                    member(&[LIST, S::A], S::Int),
                ]
            }
        }
        "lowerAscii" | "upperAscii" | "trim" => OF_TEXTS,
        "replace" => {
            const {
                &[
                    member(&[S::String, S::String, S::String], S::String),
                    member(&[S::String, S::String, S::String, S::Int], S::String),
                ]
            }
        }
        "split" => {
            const {
                &[
                    member(&[S::String, S::String], LIST_OF_TEXTS),
                    member(&[S::String, S::String, S::Int], LIST_OF_TEXTS),
                ]
            }
        }
        "substring" => {
            const { &[member(&[S::String, S::Int], S::String), member(&[S::String, S::Int, S::Int], S::String)] }
        }
        "join" => const { &[member(&[LIST_OF_TEXTS], S::String), member(&[LIST_OF_TEXTS, S::String], S::String)] },
        "format" => const { &[at(Price::Format, member(&[S::String, S::List(&S::Dyn)], S::String))] },
        "strings.quote" => const { &[at(Price::Unknown, global(&[S::String], S::String))] },
        "find" => OF_PATTERNS,
        "findAll" => {
            const {
                &[
                    member(&[S::String, S::String], LIST_OF_TEXTS),
                    member(&[S::String, S::String, S::Int], LIST_OF_TEXTS),
                ]
            }
        }
        "isSorted" => SORTED,
        "sum" => SUMS,
        "min" | "max" => EXTREMES,
        "sets.contains" | "sets.intersects" => const { &[at(Price::Sets(1), global(&[LIST, LIST], S::Bool))] },
        "sets.equivalent" => const { &[at(Price::Sets(2), global(&[LIST, LIST], S::Bool))] },
        "slice" => const { &[at(Price::Unknown, member(&[LIST, S::Int, S::Int], LIST))] },
        "flatten" => {
            const {
                &[
                    at(Price::Unknown, member(&[S::List(&LIST)], LIST)),
                    at(Price::Unknown, member(&[S::List(&S::Dyn), S::Int], S::List(&S::Dyn))),
                ]
            }
        }
        "reverse" | "distinct" => const { &[at(Price::Unknown, member(&[LIST], LIST))] },
        "lists.range" => const { &[at(Price::Unknown, global(&[S::Int], S::List(&S::Int)))] },
        _ => return kubernetes(name),
    })
}

const OF_PATTERNS: &[Overload] = &[member(&[S::String, S::String], S::String)];

fn kubernetes(name: &str) -> Option<&'static [Overload]> {
    Some(match name {
        "url" => const { &[global(&[S::String], S::Url)] },
        "isURL" | "isQuantity" | "isIP" | "isCIDR" | "ip.isCanonical" => CHECKS_TEXT,
        "getScheme" | "getHost" | "getHostname" | "getPort" | "getEscapedPath" => OF_URLS,
        "getQuery" => const { &[member(&[S::Url], S::Map(&S::String, &LIST_OF_TEXTS))] },
        "quantity" => const { &[global(&[S::String], S::Quantity)] },
        "sign" => const { &[global(&[S::Quantity], S::Int)] },
        "isGreaterThan" | "isLessThan" => {
            const { &[member(&[S::Quantity, S::Quantity], S::Bool), member(&[S::Semver, S::Semver], S::Bool)] }
        }
        "compareTo" => {
            const { &[member(&[S::Quantity, S::Quantity], S::Int), member(&[S::Semver, S::Semver], S::Int)] }
        }
        "asApproximateFloat" => const { &[member(&[S::Quantity], S::Double)] },
        "asInteger" => const { &[member(&[S::Quantity], S::Int)] },
        "isInteger" => const { &[member(&[S::Quantity], S::Bool)] },
        "add" | "sub" => {
            const { &[member(&[S::Quantity, S::Quantity], S::Quantity), member(&[S::Quantity, S::Int], S::Quantity)] }
        }
        "semver" => const { &[global(&[S::String], S::Semver), global(&[S::String, S::Bool], S::Semver)] },
        "isSemver" => const { &[global(&[S::String], S::Bool), global(&[S::String, S::Bool], S::Bool)] },
        "major" | "minor" | "patch" => OF_SEMVERS,
        "ip" => const { &[global(&[S::String], S::Ip), at(Price::Part, member(&[S::Cidr], S::Ip))] },
        "family" => const { &[member(&[S::Ip], S::Int)] },
        "isUnspecified" | "isLoopback" | "isLinkLocalMulticast" | "isLinkLocalUnicast" | "isGlobalUnicast" => {
            OF_ADDRESSES
        }
        "cidr" => const { &[global(&[S::String], S::Cidr)] },
        "containsIP" => {
            const { &[at(Price::WithText, member(&[S::Cidr, S::String], S::Bool)), member(&[S::Cidr, S::Ip], S::Bool)] }
        }
        "containsCIDR" => {
            const { &[at(Price::WithText, member(&[S::Cidr, S::String], S::Bool)), member(&[S::Cidr, S::Cidr], S::Bool)] }
        }
        "prefixLength" => const { &[member(&[S::Cidr], S::Int)] },
        "masked" => const { &[member(&[S::Cidr], S::Cidr)] },
        "validate" => const { &[member(&[S::Format, S::String], S::Optional(&LIST_OF_TEXTS))] },
        "format.named" => const { &[global(&[S::String], S::Optional(&S::Format))] },
        "format.dns1123Label"
        | "format.dns1123Subdomain"
        | "format.dns1035Label"
        | "format.qualifiedName"
        | "format.dns1123LabelPrefix"
        | "format.dns1123SubdomainPrefix"
        | "format.dns1035LabelPrefix"
        | "format.labelValue"
        | "format.uri"
        | "format.uuid"
        | "format.byte"
        | "format.date"
        | "format.datetime" => NO_ARGUMENTS,
        _ => return None,
    })
}
