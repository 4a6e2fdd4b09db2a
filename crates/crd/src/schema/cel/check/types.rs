//! CEL types as in the API server's checker, and assignability: unification with type variables, step by step as in
//! cel-go (checker/types.go).

use std::collections::BTreeMap;
use std::rc::Rc;

/// A CEL type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Type {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Rc<Type>),
    Map(Rc<Type>, Rc<Type>),
    Optional(Rc<Type>),
    /// An object of the schema, by its path, or a library type with fields.
    Struct(Rc<str>),
    /// A library type without fields.
    Opaque(&'static str),
    /// The type of `type(x)`.
    Meta,
    Variable(u32),
}

impl Type {
    pub(super) fn list(of: Self) -> Self {
        Self::List(Rc::new(of))
    }

    pub(super) fn optional(of: Self) -> Self {
        Self::Optional(Rc::new(of))
    }

    /// The type as shown in messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Dyn | Self::Variable(_) => "dyn".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Int => "int".to_owned(),
            Self::Uint => "uint".to_owned(),
            Self::Double => "double".to_owned(),
            Self::String => "string".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::Duration => "duration".to_owned(),
            Self::Timestamp => "timestamp".to_owned(),
            Self::List(of) => format!("list({})", of.shown()),
            Self::Map(key, value) => format!("map({}, {})", key.shown(), value.shown()),
            Self::Optional(of) => format!("optional({})", of.shown()),
            Self::Struct(name) if name.starts_with("kubernetes.") => (**name).to_owned(),
            Self::Struct(_) => "object".to_owned(),
            Self::Opaque(name) => (*name).to_owned(),
            Self::Meta => "type".to_owned(),
        }
    }

    /// Whether it is fully known: without variables, `dyn` and optionals.
    pub(super) fn is_certain(&self) -> bool {
        !matches!(self, Self::Dyn | Self::Variable(_) | Self::Optional(_))
            && self.parts().into_iter().all(Self::is_certain)
    }

    fn has_null(&self) -> bool {
        matches!(
            self,
            Self::Null | Self::Optional(_) | Self::Struct(_) | Self::Opaque(_) | Self::Duration | Self::Timestamp
        )
    }

    /// Whether its size is constant, as for numbers.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Double | Self::Duration | Self::Int | Self::Timestamp | Self::Uint => true,
            Self::Optional(of) => of.is_scalar(),
            _ => false,
        }
    }

    fn parts(&self) -> Vec<&Self> {
        match self {
            Self::List(of) | Self::Optional(of) => vec![of],
            Self::Map(key, value) => vec![key, value],
            _ => Vec::new(),
        }
    }

    /// The type with its parameters replaced.
    fn with(&self, change: impl Fn(&Self) -> Self) -> Self {
        match self {
            Self::List(of) => Self::list(change(of)),
            Self::Optional(of) => Self::optional(change(of)),
            Self::Map(key, value) => Self::Map(Rc::new(change(key)), Rc::new(change(value))),
            other => other.clone(),
        }
    }
}

/// Whether the first type equals the second or is more general.
fn is_as_general(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Variable(_), _) => true,
        (_, Type::Dyn | Type::Variable(_)) => false,
        (Type::List(_), Type::List(_)) | (Type::Optional(_), Type::Optional(_)) | (Type::Map(..), Type::Map(..)) => {
            one.parts().into_iter().zip(other.parts()).all(|(one, other)| is_as_general(one, other))
        }
        _ => one == other,
    }
}

pub(super) fn most_general(one: &Type, other: &Type) -> Type {
    if is_as_general(one, other) { one.clone() } else { other.clone() }
}

/// Bindings of type variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Mapping(BTreeMap<u32, Type>);

impl Mapping {
    /// Whether all of `these` are assignable to `those`; the bindings are kept only if they are.
    pub(super) fn assign(&mut self, these: &[Type], those: &[Type]) -> bool {
        let mut tried = self.clone();
        let fits = these.len() == those.len() && these.iter().zip(those).all(|(one, other)| tried.fits(one, other));
        if fits {
            *self = tried;
        }
        fits
    }

    fn fits(&mut self, one: &Type, other: &Type) -> bool {
        if let Type::Variable(variable) = other {
            let (valid, is_known) = self.stands_for(one, *variable);
            if valid || is_known {
                return valid;
            }
        }
        if let Type::Variable(variable) = one {
            return self.stands_for(other, *variable).0;
        }
        match (one, other) {
            (Type::Dyn, _) | (_, Type::Dyn) => true,
            (Type::Null, other) => other.has_null(),
            (one, Type::Null) => one.has_null(),
            (Type::List(_), Type::List(_))
            | (Type::Optional(_), Type::Optional(_))
            | (Type::Map(..), Type::Map(..)) => {
                let (these, those) = (one.parts(), other.parts());
                these.into_iter().zip(those).all(|(one, other)| self.fits(one, other))
            }
            _ => one == other,
        }
    }

    /// Whether the variable may be bound to the type, and whether it is bound already.
    fn stands_for(&mut self, one: &Type, variable: u32) -> (bool, bool) {
        if *one == Type::Variable(variable) {
            return (true, true);
        }
        if let Some(known) = self.0.get(&variable).cloned() {
            if *one == known {
                return (true, true);
            }
            if self.fits(one, &known) {
                let general = most_general(one, &known);
                if self.is_free_of(variable, &general) {
                    self.0.insert(variable, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.is_free_of(variable, one) {
            self.0.insert(variable, one.clone());
            return (true, false);
        }
        (false, false)
    }

    fn is_free_of(&self, variable: u32, within: &Type) -> bool {
        match within {
            Type::Variable(other) if *other == variable => false,
            Type::Variable(other) => self.0.get(other).is_none_or(|known| self.is_free_of(variable, known)),
            other => other.parts().into_iter().all(|part| self.is_free_of(variable, part)),
        }
    }

    /// The type with all bound variables replaced; `at_the_end`, unbound ones become `dyn`.
    pub(super) fn resolve(&self, one: &Type, at_the_end: bool) -> Type {
        match one {
            Type::Variable(variable) => match self.0.get(variable) {
                Some(known) => self.resolve(known, at_the_end),
                None if at_the_end => Type::Dyn,
                None => one.clone(),
            },
            other => other.with(|part| self.resolve(part, at_the_end)),
        }
    }
}
