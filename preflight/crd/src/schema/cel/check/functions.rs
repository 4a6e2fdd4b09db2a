//! The functions and operators available to rules in Kubernetes 1.36, with their overloads, in the order in which the
//! API server's checker tries them.
//!
//! Follows cel-go `common/stdlib/standard.go` and k8s.io/apiserver `pkg/cel/environment/base.go` (which libraries there
//! are) and `pkg/cel/library`.

use super::types::Type;

/// A type in a signature.
#[derive(Clone, Copy, Debug)]
enum Shape {
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
    List(&'static Shape),
    Map(&'static Shape, &'static Shape),
    Optional(&'static Shape),
}

impl Shape {
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

/// How the cost of an overload differs from that of its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Price {
    /// One unit, or the cost of the function.
    Plain,
    /// The shorter of two strings or lists is scanned.
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
    /// Each item of one list with each of the other, this many times.
    Sets(u8),
    /// It parses a string instead of using a parsed value.
    WithText,
    /// It only reads a part of a parsed value.
    Part,
    /// Not known here.
    Unknown,
}

/// One overload of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overload {
    pub(super) is_member: bool,
    parameters: &'static [Shape],
    result: Shape,
    pub(super) price: Price,
}

/// Number of type variables in a signature.
pub(super) const VARIABLES: u32 = 2;

impl Overload {
    /// Parameter types and result type, with type variables numbered from `fresh`.
    pub(super) fn signature(&self, fresh: u32) -> (Vec<Type>, Type) {
        let renamed = |one: Shape| one.of().renamed(fresh);
        (self.parameters.iter().map(|one| renamed(*one)).collect(), renamed(self.result))
    }
}

const fn global(parameters: &'static [Shape], result: Shape) -> Overload {
    Overload { is_member: false, parameters, result, price: Price::Plain }
}

const fn member(parameters: &'static [Shape], result: Shape) -> Overload {
    Overload { is_member: true, parameters, result, price: Price::Plain }
}

const fn at(price: Price, overload: Overload) -> Overload {
    Overload { price, ..overload }
}

const COMPARISONS: &[Overload] = &[
    global(&[Shape::Bool, Shape::Bool], Shape::Bool),
    global(&[Shape::Int, Shape::Int], Shape::Bool),
    global(&[Shape::Int, Shape::Double], Shape::Bool),
    global(&[Shape::Int, Shape::Uint], Shape::Bool),
    global(&[Shape::Uint, Shape::Uint], Shape::Bool),
    global(&[Shape::Uint, Shape::Double], Shape::Bool),
    global(&[Shape::Uint, Shape::Int], Shape::Bool),
    global(&[Shape::Double, Shape::Double], Shape::Bool),
    global(&[Shape::Double, Shape::Int], Shape::Bool),
    global(&[Shape::Double, Shape::Uint], Shape::Bool),
    at(Price::Compare, global(&[Shape::String, Shape::String], Shape::Bool)),
    at(Price::Compare, global(&[Shape::Bytes, Shape::Bytes], Shape::Bool)),
    global(&[Shape::Timestamp, Shape::Timestamp], Shape::Bool),
    global(&[Shape::Duration, Shape::Duration], Shape::Bool),
];

const OF_TIMES: &[Overload] =
    &[member(&[Shape::Timestamp], Shape::Int), member(&[Shape::Timestamp, Shape::String], Shape::Int)];
const OF_TIMES_AND_DURATIONS: &[Overload] = &[
    member(&[Shape::Timestamp], Shape::Int),
    member(&[Shape::Timestamp, Shape::String], Shape::Int),
    member(&[Shape::Duration], Shape::Int),
];
const OF_ADDRESSES: &[Overload] = &[member(&[Shape::Ip], Shape::Bool)];
const OF_URLS: &[Overload] = &[member(&[Shape::Url], Shape::String)];
const OF_SEMVERS: &[Overload] = &[member(&[Shape::Semver], Shape::Int)];
const CHECKS_TEXT: &[Overload] = &[global(&[Shape::String], Shape::Bool)];
const OF_TEXTS: &[Overload] = &[member(&[Shape::String], Shape::String)];
const NO_ARGUMENTS: &[Overload] = &[global(&[], Shape::Format)];
const LIST_OF_TEXTS: Shape = Shape::List(&Shape::String);
const LIST: Shape = Shape::List(&Shape::A);
const MAP: Shape = Shape::Map(&Shape::A, &Shape::B);
const OPTIONAL: Shape = Shape::Optional(&Shape::A);

const SORTED: &[Overload] = &[
    member(&[Shape::List(&Shape::Int)], Shape::Bool),
    member(&[Shape::List(&Shape::Uint)], Shape::Bool),
    member(&[Shape::List(&Shape::Double)], Shape::Bool),
    member(&[Shape::List(&Shape::Bool)], Shape::Bool),
    member(&[Shape::List(&Shape::Duration)], Shape::Bool),
    member(&[Shape::List(&Shape::Timestamp)], Shape::Bool),
    member(&[Shape::List(&Shape::String)], Shape::Bool),
    member(&[Shape::List(&Shape::Bytes)], Shape::Bool),
];
const EXTREMES: &[Overload] = &[
    member(&[Shape::List(&Shape::Int)], Shape::Int),
    member(&[Shape::List(&Shape::Uint)], Shape::Uint),
    member(&[Shape::List(&Shape::Double)], Shape::Double),
    member(&[Shape::List(&Shape::Bool)], Shape::Bool),
    member(&[Shape::List(&Shape::Duration)], Shape::Duration),
    member(&[Shape::List(&Shape::Timestamp)], Shape::Timestamp),
    member(&[Shape::List(&Shape::String)], Shape::String),
    member(&[Shape::List(&Shape::Bytes)], Shape::Bytes),
];
const SUMS: &[Overload] = &[
    member(&[Shape::List(&Shape::Int)], Shape::Int),
    member(&[Shape::List(&Shape::Uint)], Shape::Uint),
    member(&[Shape::List(&Shape::Double)], Shape::Double),
    member(&[Shape::List(&Shape::Duration)], Shape::Duration),
];

/// The overloads of a function; `None` if it is unknown.
pub(super) fn overloads(name: &str) -> Option<&'static [Overload]> {
    Some(match name {
        "_?_:_" => const { &[at(Price::Condition, global(&[Shape::Bool, Shape::A, Shape::A], Shape::A))] },
        "_&&_" | "_||_" => const { &[global(&[Shape::Bool, Shape::Bool], Shape::Bool)] },
        "!_" | "@not_strictly_false" => const { &[global(&[Shape::Bool], Shape::Bool)] },
        "_==_" | "_!=_" => const { &[at(Price::Compare, global(&[Shape::A, Shape::A], Shape::Bool))] },
        "_<_" | "_<=_" | "_>_" | "_>=_" => COMPARISONS,
        "_+_" => {
            const {
                &[
                    at(Price::AddText, global(&[Shape::Bytes, Shape::Bytes], Shape::Bytes)),
                    global(&[Shape::Double, Shape::Double], Shape::Double),
                    global(&[Shape::Duration, Shape::Duration], Shape::Duration),
                    global(&[Shape::Duration, Shape::Timestamp], Shape::Timestamp),
                    global(&[Shape::Timestamp, Shape::Duration], Shape::Timestamp),
                    global(&[Shape::Int, Shape::Int], Shape::Int),
                    at(Price::AddList, global(&[LIST, LIST], LIST)),
                    at(Price::AddText, global(&[Shape::String, Shape::String], Shape::String)),
                    global(&[Shape::Uint, Shape::Uint], Shape::Uint),
                ]
            }
        }
        "_-_" => {
            const {
                &[
                    global(&[Shape::Double, Shape::Double], Shape::Double),
                    global(&[Shape::Duration, Shape::Duration], Shape::Duration),
                    global(&[Shape::Int, Shape::Int], Shape::Int),
                    global(&[Shape::Timestamp, Shape::Duration], Shape::Timestamp),
                    global(&[Shape::Timestamp, Shape::Timestamp], Shape::Duration),
                    global(&[Shape::Uint, Shape::Uint], Shape::Uint),
                ]
            }
        }
        "_*_" | "_/_" => {
            const {
                &[
                    global(&[Shape::Double, Shape::Double], Shape::Double),
                    global(&[Shape::Int, Shape::Int], Shape::Int),
                    global(&[Shape::Uint, Shape::Uint], Shape::Uint),
                ]
            }
        }
        "_%_" => {
            const { &[global(&[Shape::Int, Shape::Int], Shape::Int), global(&[Shape::Uint, Shape::Uint], Shape::Uint)] }
        }
        "-_" => const { &[global(&[Shape::Double], Shape::Double), global(&[Shape::Int], Shape::Int)] },
        "_[_]" => {
            const {
                &[
                    at(Price::IndexList, global(&[LIST, Shape::Int], Shape::A)),
                    at(Price::IndexMap, global(&[MAP, Shape::A], Shape::B)),
                    global(&[Shape::Optional(&LIST), Shape::Int], OPTIONAL),
                    global(&[Shape::Optional(&MAP), Shape::A], Shape::Optional(&Shape::B)),
                ]
            }
        }
        "_[?_]" => {
            const {
                &[
                    global(&[LIST, Shape::Int], OPTIONAL),
                    global(&[Shape::Optional(&LIST), Shape::Int], OPTIONAL),
                    global(&[MAP, Shape::A], Shape::Optional(&Shape::B)),
                    global(&[Shape::Optional(&MAP), Shape::A], Shape::Optional(&Shape::B)),
                ]
            }
        }
        "@in" => {
            const { &[at(Price::Contained, global(&[Shape::A, LIST], Shape::Bool)), global(&[Shape::A, MAP], Shape::Bool)] }
        }
        _ => return standard(name).or_else(|| library(name)),
    })
}

fn standard(name: &str) -> Option<&'static [Overload]> {
    Some(match name {
        "size" => {
            const {
                &[
                    global(&[Shape::Bytes], Shape::Int),
                    member(&[Shape::Bytes], Shape::Int),
                    global(&[LIST], Shape::Int),
                    member(&[LIST], Shape::Int),
                    global(&[MAP], Shape::Int),
                    member(&[MAP], Shape::Int),
                    global(&[Shape::String], Shape::Int),
                    member(&[Shape::String], Shape::Int),
                ]
            }
        }
        "type" => const { &[global(&[Shape::A], Shape::Type)] },
        "dyn" => const { &[global(&[Shape::A], Shape::Dyn)] },
        "bool" => const { &[global(&[Shape::Bool], Shape::Bool), global(&[Shape::String], Shape::Bool)] },
        "bytes" => {
            const { &[global(&[Shape::Bytes], Shape::Bytes), at(Price::TextToBytes, global(&[Shape::String], Shape::Bytes))] }
        }
        "double" => {
            const {
                &[
                    global(&[Shape::Double], Shape::Double),
                    global(&[Shape::Int], Shape::Double),
                    global(&[Shape::String], Shape::Double),
                    global(&[Shape::Uint], Shape::Double),
                ]
            }
        }
        "duration" => {
            const {
                &[
                    global(&[Shape::Duration], Shape::Duration),
                    global(&[Shape::Int], Shape::Duration),
                    global(&[Shape::String], Shape::Duration),
                ]
            }
        }
        "int" => {
            const {
                &[
                    global(&[Shape::Int], Shape::Int),
                    global(&[Shape::Double], Shape::Int),
                    global(&[Shape::Duration], Shape::Int),
                    global(&[Shape::String], Shape::Int),
                    global(&[Shape::Timestamp], Shape::Int),
                    global(&[Shape::Uint], Shape::Int),
                ]
            }
        }
        "uint" => {
            const {
                &[
                    global(&[Shape::Uint], Shape::Uint),
                    global(&[Shape::Double], Shape::Uint),
                    global(&[Shape::Int], Shape::Uint),
                    global(&[Shape::String], Shape::Uint),
                ]
            }
        }
        "string" => {
            const {
                &[
                    global(&[Shape::String], Shape::String),
                    global(&[Shape::Bool], Shape::String),
                    at(Price::BytesToText, global(&[Shape::Bytes], Shape::String)),
                    global(&[Shape::Double], Shape::String),
                    global(&[Shape::Duration], Shape::String),
                    global(&[Shape::Int], Shape::String),
                    global(&[Shape::Timestamp], Shape::String),
                    global(&[Shape::Uint], Shape::String),
                    global(&[Shape::Ip], Shape::String),
                    global(&[Shape::Cidr], Shape::String),
                ]
            }
        }
        "timestamp" => {
            const {
                &[
                    global(&[Shape::Timestamp], Shape::Timestamp),
                    global(&[Shape::Int], Shape::Timestamp),
                    global(&[Shape::String], Shape::Timestamp),
                ]
            }
        }
        "contains" => const { &[at(Price::Contains, member(&[Shape::String, Shape::String], Shape::Bool))] },
        "startsWith" | "endsWith" => {
            const { &[at(Price::StartsOrEnds, member(&[Shape::String, Shape::String], Shape::Bool))] }
        }
        "matches" => {
            const {
                &[
                    global(&[Shape::String, Shape::String], Shape::Bool),
                    at(Price::Matches, member(&[Shape::String, Shape::String], Shape::Bool)),
                ]
            }
        }
        "getFullYear" | "getMonth" | "getDayOfYear" | "getDayOfMonth" | "getDate" | "getDayOfWeek" => OF_TIMES,
        "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds" => OF_TIMES_AND_DURATIONS,
        "optional.of" | "optional.ofNonZeroValue" => const { &[global(&[Shape::A], OPTIONAL)] },
        "optional.none" => const { &[global(&[], OPTIONAL)] },
        "value" => const { &[member(&[OPTIONAL], Shape::A)] },
        "hasValue" => const { &[member(&[OPTIONAL], Shape::Bool)] },
        "or" => const { &[member(&[OPTIONAL, OPTIONAL], OPTIONAL)] },
        "orValue" => const { &[member(&[OPTIONAL, Shape::A], Shape::A)] },
        "first" | "last" => const { &[member(&[LIST], OPTIONAL)] },
        "optional.unwrap" => const { &[global(&[Shape::List(&OPTIONAL)], LIST)] },
        "unwrapOpt" => const { &[member(&[Shape::List(&OPTIONAL)], LIST)] },
        _ => return None,
    })
}

fn library(name: &str) -> Option<&'static [Overload]> {
    Some(match name {
        "charAt" => const { &[member(&[Shape::String, Shape::Int], Shape::String)] },
        "indexOf" | "lastIndexOf" => {
            const {
                &[
                    member(&[Shape::String, Shape::String], Shape::Int),
                    member(&[Shape::String, Shape::String, Shape::Int], Shape::Int),
                    member(&[LIST, Shape::A], Shape::Int),
                ]
            }
        }
        "lowerAscii" | "upperAscii" | "trim" => OF_TEXTS,
        "replace" => {
            const {
                &[
                    member(&[Shape::String, Shape::String, Shape::String], Shape::String),
                    member(&[Shape::String, Shape::String, Shape::String, Shape::Int], Shape::String),
                ]
            }
        }
        "split" => {
            const {
                &[
                    member(&[Shape::String, Shape::String], LIST_OF_TEXTS),
                    member(&[Shape::String, Shape::String, Shape::Int], LIST_OF_TEXTS),
                ]
            }
        }
        "substring" => {
            const {
                &[
                    member(&[Shape::String, Shape::Int], Shape::String),
                    member(&[Shape::String, Shape::Int, Shape::Int], Shape::String),
                ]
            }
        }
        "join" => {
            const { &[member(&[LIST_OF_TEXTS], Shape::String), member(&[LIST_OF_TEXTS, Shape::String], Shape::String)] }
        }
        "format" => const { &[at(Price::Format, member(&[Shape::String, Shape::List(&Shape::Dyn)], Shape::String))] },
        "strings.quote" => const { &[at(Price::Unknown, global(&[Shape::String], Shape::String))] },
        "find" => OF_PATTERNS,
        "findAll" => {
            const {
                &[
                    member(&[Shape::String, Shape::String], LIST_OF_TEXTS),
                    member(&[Shape::String, Shape::String, Shape::Int], LIST_OF_TEXTS),
                ]
            }
        }
        "isSorted" => SORTED,
        "sum" => SUMS,
        "min" | "max" => EXTREMES,
        "sets.contains" | "sets.intersects" => const { &[at(Price::Sets(1), global(&[LIST, LIST], Shape::Bool))] },
        "sets.equivalent" => const { &[at(Price::Sets(2), global(&[LIST, LIST], Shape::Bool))] },
        "slice" => const { &[at(Price::Unknown, member(&[LIST, Shape::Int, Shape::Int], LIST))] },
        "flatten" => {
            const {
                &[
                    at(Price::Unknown, member(&[Shape::List(&LIST)], LIST)),
                    at(Price::Unknown, member(&[Shape::List(&Shape::Dyn), Shape::Int], Shape::List(&Shape::Dyn))),
                ]
            }
        }
        "reverse" | "distinct" => const { &[at(Price::Unknown, member(&[LIST], LIST))] },
        "lists.range" => const { &[at(Price::Unknown, global(&[Shape::Int], Shape::List(&Shape::Int)))] },
        _ => return kubernetes(name),
    })
}

const OF_PATTERNS: &[Overload] = &[member(&[Shape::String, Shape::String], Shape::String)];

fn kubernetes(name: &str) -> Option<&'static [Overload]> {
    Some(match name {
        "url" => const { &[global(&[Shape::String], Shape::Url)] },
        "isURL" | "isQuantity" | "isIP" | "isCIDR" | "ip.isCanonical" => CHECKS_TEXT,
        "getScheme" | "getHost" | "getHostname" | "getPort" | "getEscapedPath" => OF_URLS,
        "getQuery" => const { &[member(&[Shape::Url], Shape::Map(&Shape::String, &LIST_OF_TEXTS))] },
        "quantity" => const { &[global(&[Shape::String], Shape::Quantity)] },
        "sign" => const { &[global(&[Shape::Quantity], Shape::Int)] },
        "isGreaterThan" | "isLessThan" => {
            const {
                &[
                    member(&[Shape::Quantity, Shape::Quantity], Shape::Bool),
                    member(&[Shape::Semver, Shape::Semver], Shape::Bool),
                ]
            }
        }
        "compareTo" => {
            const {
                &[
                    member(&[Shape::Quantity, Shape::Quantity], Shape::Int),
                    member(&[Shape::Semver, Shape::Semver], Shape::Int),
                ]
            }
        }
        "asApproximateFloat" => const { &[member(&[Shape::Quantity], Shape::Double)] },
        "asInteger" => const { &[member(&[Shape::Quantity], Shape::Int)] },
        "isInteger" => const { &[member(&[Shape::Quantity], Shape::Bool)] },
        "add" | "sub" => {
            const {
                &[
                    member(&[Shape::Quantity, Shape::Quantity], Shape::Quantity),
                    member(&[Shape::Quantity, Shape::Int], Shape::Quantity),
                ]
            }
        }
        "semver" => {
            const { &[global(&[Shape::String], Shape::Semver), global(&[Shape::String, Shape::Bool], Shape::Semver)] }
        }
        "isSemver" => {
            const { &[global(&[Shape::String], Shape::Bool), global(&[Shape::String, Shape::Bool], Shape::Bool)] }
        }
        "major" | "minor" | "patch" => OF_SEMVERS,
        "ip" => const { &[global(&[Shape::String], Shape::Ip), at(Price::Part, member(&[Shape::Cidr], Shape::Ip))] },
        "family" => const { &[member(&[Shape::Ip], Shape::Int)] },
        "isUnspecified" | "isLoopback" | "isLinkLocalMulticast" | "isLinkLocalUnicast" | "isGlobalUnicast" => {
            OF_ADDRESSES
        }
        "cidr" => const { &[global(&[Shape::String], Shape::Cidr)] },
        "containsIP" => {
            const {
                &[
                    at(Price::WithText, member(&[Shape::Cidr, Shape::String], Shape::Bool)),
                    member(&[Shape::Cidr, Shape::Ip], Shape::Bool),
                ]
            }
        }
        "containsCIDR" => {
            const {
                &[
                    at(Price::WithText, member(&[Shape::Cidr, Shape::String], Shape::Bool)),
                    member(&[Shape::Cidr, Shape::Cidr], Shape::Bool),
                ]
            }
        }
        "prefixLength" => const { &[member(&[Shape::Cidr], Shape::Int)] },
        "masked" => const { &[member(&[Shape::Cidr], Shape::Cidr)] },
        "validate" => const { &[member(&[Shape::Format, Shape::String], Shape::Optional(&LIST_OF_TEXTS))] },
        "format.named" => const { &[global(&[Shape::String], Shape::Optional(&Shape::Format))] },
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
