//! The functions that rules may call: CEL's own and the API server's libraries, one file each. The result of a rule
//! that calls any other function is unknown.

pub(super) mod lists;

pub(super) mod named;

pub(super) mod network;

pub(super) mod quantity;

pub(super) mod regular;

pub(super) mod semver;

pub(super) mod standard;

pub(super) mod strings;

use super::charges;
use super::evaluator::Evaluator;
use super::stop::Stop;
use super::value::{Outcome, Value};

/// A call of a function; for a member call, the target is the first argument.
#[derive(Clone, Copy)]
pub(super) struct Call<'c, 'a> {
    evaluator: &'c Evaluator<'a>,
    function: &'c str,
    is_member: bool,
    arguments: &'c [Value<'a>],
}

impl<'a> Evaluator<'a> {
    /// Calls a function, and charges for it.
    pub(super) fn call(&self, function: &str, is_member: bool, arguments: &[Value<'a>]) -> Outcome<'a> {
        let outcome = self.call_library(function, is_member, arguments);
        if matches!(outcome, Ok(_) | Err(Stop::Error(_))) {
            self.costs(charges::of_call(function, arguments, outcome.as_ref().ok()))?;
        }
        outcome
    }

    fn call_library(&self, function: &str, is_member: bool, arguments: &[Value<'a>]) -> Outcome<'a> {
        self.charge(1)?;
        if let Some(Value::Opaque(what)) = arguments.iter().find(|value| matches!(value, Value::Opaque(_))) {
            return Err(Stop::unknown(*what));
        }
        let libraries = [
            standard::call,
            standard::optional,
            strings::call,
            lists::call,
            lists::sets,
            regular::call,
            quantity::call,
            network::call,
            network::url,
            semver::call,
            named::call,
        ];
        let call = Call { evaluator: self, function, is_member, arguments };
        if let Some(outcome) = libraries.into_iter().find_map(|library| library(&call)) {
            return outcome;
        }
        let is_known = KNOWN.split_ascii_whitespace().any(|known| known == function);
        // Where no types were checked before, arguments that do not fit are an error of the server too.
        if is_known || (self.is_untyped && has(function)) {
            return Err(self.no_overload(&format!("{function}()"), &arguments.iter().collect::<Vec<_>>()));
        }
        Err(Stop::unknown(format!("function {function}()")))
    }
}

/// Whether there is a function of this name.
pub(super) fn has(name: &str) -> bool {
    KNOWN.split_ascii_whitespace().any(|known| known == name) || super::check::is_declared(name)
}

/// Names of functions with at least one overload here.
const KNOWN: &str = "\
add asApproximateFloat asInteger bool bytes charAt cidr compareTo contains containsCIDR containsIP distinct
double duration dyn endsWith family find findAll first flatten format format.named getDate getDayOfMonth
getDayOfWeek getDayOfYear getEscapedPath getFullYear getHost getHostname getHours getMilliseconds getMinutes
getMonth getPort getQuery getScheme getSeconds hasValue indexOf int ip ip.isCanonical isCIDR isGlobalUnicast
isGreaterThan isIP isInteger isLessThan isLinkLocalMulticast isLinkLocalUnicast isLoopback isQuantity isSemver
isSorted isURL isUnspecified join last lastIndexOf lowerAscii major masked matches max min minor patch
prefixLength quantity replace semver sign size split startsWith string sub substring sum timestamp uint";
