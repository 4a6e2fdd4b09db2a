//! The functions and operators available to rules in Kubernetes 1.36, with their overloads, in the order in which the
//! API server's checker tries them.
//!
//! Follows cel-go `common/stdlib/standard.go` and k8s.io/apiserver `pkg/cel/environment/base.go` (which libraries there
//! are) and `pkg/cel/library`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::types::Type;

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
    /// A new list is made.
    NewList,
    /// Each item of a list is compared with each other one, in a new list.
    ComparedItems,
    /// Likewise, and the items are texts.
    ComparedTexts,
    /// Not known here.
    Unknown,
}

impl Price {
    fn of(word: &str) -> Self {
        match word {
            "" => Self::Plain,
            "compare" => Self::Compare,
            "addText" => Self::AddText,
            "addList" => Self::AddList,
            "contained" => Self::Contained,
            "matches" => Self::Matches,
            "contains" => Self::Contains,
            "startsOrEnds" => Self::StartsOrEnds,
            "textToBytes" => Self::TextToBytes,
            "bytesToText" => Self::BytesToText,
            "format" => Self::Format,
            "indexList" => Self::IndexList,
            "indexMap" => Self::IndexMap,
            "condition" => Self::Condition,
            "sets" => Self::Sets(1),
            "setsTwice" => Self::Sets(2),
            "withText" => Self::WithText,
            "part" => Self::Part,
            "newList" => Self::NewList,
            "comparedItems" => Self::ComparedItems,
            "comparedTexts" => Self::ComparedTexts,
            _ => Self::Unknown,
        }
    }
}

/// One overload of a function, its types as written in the table.
#[derive(Clone, Debug)]
pub(super) struct Overload {
    pub(super) is_member: bool,
    parameters: Vec<&'static str>,
    result: &'static str,
    pub(super) price: Price,
}

/// Number of type variables in a signature.
pub(super) const VARIABLES: u32 = 2;

impl Overload {
    /// Reads `string.(int) -> string @price`; for a member, the target is the first parameter.
    fn of(text: &'static str) -> Option<Self> {
        let (signature, price) = text.split_once(" @").unwrap_or((text, ""));
        let (parameters, result) = signature.split_once(") -> ")?;
        let (target, rest) = parameters.split_once('(')?;
        let target = target.strip_suffix('.');
        let rest = rest.split(", ").filter(|parameter| !parameter.is_empty());
        let (is_member, price) = (target.is_some(), Price::of(price));
        Some(Self { is_member, parameters: target.into_iter().chain(rest).collect(), result, price })
    }

    /// Parameter types and result type, with type variables numbered from `fresh`.
    pub(super) fn signature(&self, fresh: u32) -> (Vec<Type>, Type) {
        (self.parameters.iter().map(|text| type_of(text, fresh)).collect(), type_of(self.result, fresh))
    }
}

/// The type that the table writes like this.
fn type_of(text: &str, fresh: u32) -> Type {
    let within = |generic: &str| text.strip_prefix(generic)?.strip_suffix('>');
    if let Some(item) = within("list<") {
        return Type::list(type_of(item, fresh));
    }
    if let Some(value) = within("optional<") {
        return Type::optional(type_of(value, fresh));
    }
    if let Some((key, value)) = within("map<").and_then(|pair| pair.split_once(',')) {
        return Type::Map(type_of(key, fresh).into(), type_of(value, fresh).into());
    }
    match text {
        "A" => Type::Variable(fresh),
        "B" => Type::Variable(fresh + 1),
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "url" => Type::Struct("kubernetes.URL".into()),
        "quantity" => Type::Struct("kubernetes.Quantity".into()),
        "semver" => Type::Struct("kubernetes.Semver".into()),
        "format" => Type::Struct("kubernetes.NamedFormat".into()),
        "ip" => Type::Opaque("net.IP"),
        "cidr" => Type::Opaque("net.CIDR"),
        "type" => Type::Meta,
        _ => Type::Dyn,
    }
}

/// The overloads of a function; `None` if it is unknown.
pub(super) fn overloads(name: &str) -> Option<&'static [Overload]> {
    static OVERLOADS: LazyLock<HashMap<&str, Vec<Overload>>> = LazyLock::new(|| {
        let mut all: HashMap<&'static str, Vec<Overload>> = HashMap::new();
        let mut names = "";
        for (head, overloads) in TABLE.lines().filter_map(|line| line.split_once(" : ")) {
            names = if head.trim().is_empty() { names } else { head };
            let overloads: Vec<Overload> = overloads.split("; ").filter_map(Overload::of).collect();
            for name in names.split(' ') {
                all.entry(name).or_default().extend_from_slice(&overloads);
            }
        }
        all
    });
    OVERLOADS.get(name).map(Vec::as_slice)
}

/// One row for the functions that share all their overloads, which may go on in the next rows. The overloads of a
/// member have its target before a dot; `@` names the price.
const TABLE: &str = "\
_?_:_ : (bool, A, A) -> A @condition
_&&_ _||_ : (bool, bool) -> bool
!_ @not_strictly_false : (bool) -> bool
_==_ _!=_ : (A, A) -> bool @compare
_<_ _<=_ _>_ _>=_ : (bool, bool) -> bool; (int, int) -> bool; (int, double) -> bool; (int, uint) -> bool
 : (uint, uint) -> bool; (uint, double) -> bool; (uint, int) -> bool; (double, double) -> bool
 : (double, int) -> bool; (double, uint) -> bool; (string, string) -> bool @compare
 : (bytes, bytes) -> bool @compare; (timestamp, timestamp) -> bool; (duration, duration) -> bool
_+_ : (bytes, bytes) -> bytes @addText; (double, double) -> double; (duration, duration) -> duration
 : (duration, timestamp) -> timestamp; (timestamp, duration) -> timestamp; (int, int) -> int
 : (list<A>, list<A>) -> list<A> @addList; (string, string) -> string @addText; (uint, uint) -> uint
_-_ : (double, double) -> double; (duration, duration) -> duration; (int, int) -> int
 : (timestamp, duration) -> timestamp; (timestamp, timestamp) -> duration; (uint, uint) -> uint
_*_ _/_ : (double, double) -> double; (int, int) -> int; (uint, uint) -> uint
_%_ : (int, int) -> int; (uint, uint) -> uint
-_ : (double) -> double; (int) -> int
_[_] : (list<A>, int) -> A @indexList; (map<A,B>, A) -> B @indexMap; (optional<list<A>>, int) -> optional<A>
 : (optional<map<A,B>>, A) -> optional<B>
_[?_] : (list<A>, int) -> optional<A>; (optional<list<A>>, int) -> optional<A>; (map<A,B>, A) -> optional<B>
 : (optional<map<A,B>>, A) -> optional<B>
@in : (A, list<A>) -> bool @contained; (A, map<A,B>) -> bool
size : (bytes) -> int; bytes.() -> int; (list<A>) -> int; list<A>.() -> int; (map<A,B>) -> int; map<A,B>.() -> int
 : (string) -> int; string.() -> int
type : (A) -> type
dyn : (A) -> dyn
bool : (bool) -> bool; (string) -> bool
bytes : (bytes) -> bytes; (string) -> bytes @textToBytes
double : (double) -> double; (int) -> double; (string) -> double; (uint) -> double
duration : (duration) -> duration; (int) -> duration; (string) -> duration
int : (int) -> int; (double) -> int; (duration) -> int; (string) -> int; (timestamp) -> int; (uint) -> int
uint : (uint) -> uint; (double) -> uint; (int) -> uint; (string) -> uint
string : (string) -> string; (bool) -> string; (bytes) -> string @bytesToText; (double) -> string
 : (duration) -> string; (int) -> string; (timestamp) -> string; (uint) -> string; (ip) -> string; (cidr) -> string
timestamp : (timestamp) -> timestamp; (int) -> timestamp; (string) -> timestamp
contains : string.(string) -> bool @contains
startsWith endsWith : string.(string) -> bool @startsOrEnds
matches : (string, string) -> bool; string.(string) -> bool @matches
getFullYear getMonth getDayOfYear getDayOfMonth getDate getDayOfWeek : timestamp.() -> int
 : timestamp.(string) -> int
getHours getMinutes getSeconds getMilliseconds : timestamp.() -> int; timestamp.(string) -> int; duration.() -> int
optional.of optional.ofNonZeroValue : (A) -> optional<A>
optional.none : () -> optional<A>
value : optional<A>.() -> A
hasValue : optional<A>.() -> bool
or : optional<A>.(optional<A>) -> optional<A>
orValue : optional<A>.(A) -> A
first last : list<A>.() -> optional<A>
optional.unwrap : (list<optional<A>>) -> list<A>
unwrapOpt : list<optional<A>>.() -> list<A>
charAt : string.(int) -> string
indexOf lastIndexOf : string.(string) -> int; string.(string, int) -> int; list<A>.(A) -> int
lowerAscii upperAscii trim : string.() -> string
replace : string.(string, string) -> string; string.(string, string, int) -> string
split : string.(string) -> list<string>; string.(string, int) -> list<string>
substring : string.(int) -> string; string.(int, int) -> string
join : list<string>.() -> string; list<string>.(string) -> string
format : string.(list<dyn>) -> string @format
strings.quote : (string) -> string @unknown
find : string.(string) -> string
findAll : string.(string) -> list<string>; string.(string, int) -> list<string>
isSorted : list<int>.() -> bool; list<uint>.() -> bool; list<double>.() -> bool; list<bool>.() -> bool
 : list<duration>.() -> bool; list<timestamp>.() -> bool; list<string>.() -> bool; list<bytes>.() -> bool
sum : list<int>.() -> int; list<uint>.() -> uint; list<double>.() -> double; list<duration>.() -> duration
min max : list<int>.() -> int; list<uint>.() -> uint; list<double>.() -> double; list<bool>.() -> bool
 : list<duration>.() -> duration; list<timestamp>.() -> timestamp; list<string>.() -> string
 : list<bytes>.() -> bytes
sets.contains sets.intersects : (list<A>, list<A>) -> bool @sets
sets.equivalent : (list<A>, list<A>) -> bool @setsTwice
slice : list<A>.(int, int) -> list<A> @newList
flatten : list<list<A>>.() -> list<A> @newList; list<dyn>.(int) -> list<dyn> @newList
reverse : list<A>.() -> list<A> @newList
distinct : list<A>.() -> list<A> @comparedItems
sort : list<int>.() -> list<int> @comparedItems; list<uint>.() -> list<uint> @comparedItems
 : list<double>.() -> list<double> @comparedItems; list<bool>.() -> list<bool> @comparedItems
 : list<duration>.() -> list<duration> @comparedItems; list<timestamp>.() -> list<timestamp> @comparedItems
 : list<string>.() -> list<string> @comparedTexts; list<bytes>.() -> list<bytes> @comparedTexts
lists.range : (int) -> list<int> @newList
url : (string) -> url
isURL isQuantity isIP isCIDR ip.isCanonical : (string) -> bool
getScheme getHost getHostname getPort getEscapedPath : url.() -> string
getQuery : url.() -> map<string,list<string>>
quantity : (string) -> quantity
sign : (quantity) -> int
isGreaterThan isLessThan : quantity.(quantity) -> bool; semver.(semver) -> bool
compareTo : quantity.(quantity) -> int; semver.(semver) -> int
asApproximateFloat : quantity.() -> double
asInteger : quantity.() -> int
isInteger : quantity.() -> bool
add sub : quantity.(quantity) -> quantity; quantity.(int) -> quantity
semver : (string) -> semver; (string, bool) -> semver
isSemver : (string) -> bool; (string, bool) -> bool
major minor patch : semver.() -> int
ip : (string) -> ip; cidr.() -> ip @part
family : ip.() -> int
isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast : ip.() -> bool
cidr : (string) -> cidr
containsIP : cidr.(string) -> bool @withText; cidr.(ip) -> bool
containsCIDR : cidr.(string) -> bool @withText; cidr.(cidr) -> bool
prefixLength : cidr.() -> int
masked : cidr.() -> cidr
validate : format.(string) -> optional<list<string>>
format.named : (string) -> optional<format>
format.dns1123Label format.dns1123Subdomain format.dns1035Label format.qualifiedName : () -> format
format.dns1123LabelPrefix format.dns1123SubdomainPrefix format.dns1035LabelPrefix : () -> format
format.labelValue format.uri format.uuid format.byte format.date format.datetime : () -> format
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_read_whole() {
        let mut count = 0;
        for line in TABLE.lines() {
            let (_, overloads) = line.split_once(" : ").expect(line);
            for text in overloads.split("; ") {
                let overload = Overload::of(text).expect(text);
                let texts = overload.parameters.iter().chain([&overload.result]);
                let is_read = |text: &str| text.contains("dyn") || !format!("{:?}", type_of(text, 0)).contains("Dyn");
                assert!(texts.into_iter().all(|text| is_read(text)), "{text}");
                assert_eq!(overload.price == Price::Unknown, text.ends_with(" @unknown"), "{text}");
                count += 1;
            }
        }
        assert_eq!(count, 202);
        assert_eq!(overloads("size").map(<[_]>::len), Some(8));
        assert!(overloads("no.such").is_none());
    }
}
