//! Quantities such as `500m` and `1.5Gi`, exact to the nano as the server keeps them.
//!
//! Follows k8s.io/apimachinery `pkg/api/resource/quantity.go`.

pub(in super::super) const NANO: i128 = 1_000_000_000;

/// The maximum of a quantity with a binary suffix.
const BINARY_MOST: i128 = i64::MAX as i128 * NANO;

/// A quantity; its notation does not matter to rules.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Quantity {
    pub(in super::super) nanos: i128,
    pub(in super::super) integer: Integer,
}

/// Whether the server can convert the quantity to a 64-bit integer, which depends on its notation.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Integer {
    Is(i64),
    IsNot,
    /// Unknown, as after arithmetic.
    Unclear,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Quantity {
    /// Whether it is the result of arithmetic.
    pub(in super::super) fn is_computed(&self) -> bool {
        matches!(self.integer, Integer::Unclear)
    }
}

/// The nanos of a quantity, if a float represents them exactly.
pub(in super::super) fn exact_nanos(text: &str) -> Option<f64> {
    let nanos = parse(text).ok()?.nanos;
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "compared with what it came from")]
    let (float, back) = (nanos as f64, nanos as f64 as i128);
    (back == nanos).then_some(float)
}

/// Whether two texts are the same quantity, whatever their notation.
pub(in super::super) fn are_equal(left: &str, right: &str) -> bool {
    left == right || matches!((parse(left), parse(right)), (Ok(left), Ok(right)) if left == right)
}

/// Which of two quantities is more.
pub(in super::super) fn compare(left: &str, right: &str) -> Option<std::cmp::Ordering> {
    let (left, right) = (parse(left).ok()?, parse(right).ok()?);
    Some(left.nanos.cmp(&right.nanos))
}

/// Why a text cannot be parsed as a quantity.
pub(in super::super) enum Refusal {
    /// The server rejects it too.
    Malformed,
    /// It has more digits than are supported here.
    TooLarge,
}

pub(in super::super) fn parse(text: &str) -> Result<Quantity, Refusal> {
    if text.is_empty() {
        return Err(Refusal::Malformed);
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = |text: &str| text.len() - text.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let whole = &unsigned[..digits(unsigned)];
    let mut rest = &unsigned[whole.len()..];
    let mut fraction = "";
    if let Some(tail) = rest.strip_prefix('.') {
        fraction = &tail[..digits(tail)];
        rest = &tail[fraction.len()..];
    }
    let suffix = suffix(rest).ok_or(Refusal::Malformed)?;
    let whole = whole.trim_start_matches('0');
    if whole.len() + fraction.len() > 27 {
        return Err(Refusal::TooLarge);
    }
    let mantissa: i128 = format!("0{whole}{fraction}").parse().map_err(|_| Refusal::TooLarge)?;
    let places = i32::try_from(fraction.len()).map_err(|_| Refusal::TooLarge)?;
    let (scale, factor, quick) = match suffix {
        Suffix::Decimal(exponent) => (exponent.saturating_sub(places), 1, whole.len().max(1) + fraction.len() <= 18),
        Suffix::Binary(exponent) => {
            let precision = 14 - i64::try_from(whole.len().max(1)).unwrap_or(15) - i64::from(exponent) * 3 / 10;
            (-places, 1_i128 << exponent, fraction.is_empty() && precision >= 0)
        }
    };
    let product = mantissa.checked_mul(factor).ok_or(Refusal::TooLarge)?;
    let integer = match i64::try_from(product) {
        Ok(value) if quick && scale >= 0 => u32::try_from(scale)
            .ok()
            .and_then(|scale| 10_i64.checked_pow(scale))
            .and_then(|power| value.checked_mul(power))
            .map_or(Integer::IsNot, |value| Integer::Is(if negative { -value } else { value })),
        _ => Integer::IsNot,
    };
    let shift = scale.saturating_add(9);
    let power = |exponent: i32| {
        u32::try_from(exponent).ok().and_then(|exponent| 10_i128.checked_pow(exponent)).ok_or(Refusal::TooLarge)
    };
    let mut nanos = if product == 0 {
        0
    } else if shift >= 0 {
        product.checked_mul(power(shift)?).ok_or(Refusal::TooLarge)?
    } else {
        // Fractions of a nano are rounded up.
        power(-shift).map_or(Ok(1), |divisor| Ok(product / divisor + i128::from(product % divisor != 0)))?
    };
    if matches!(suffix, Suffix::Binary(_)) {
        nanos = nanos.min(BINARY_MOST);
    }
    Ok(Quantity { nanos: if negative { -nanos } else { nanos }, integer })
}

enum Suffix {
    Decimal(i32),
    Binary(u8),
}

fn suffix(text: &str) -> Option<Suffix> {
    Some(match text {
        "" => Suffix::Decimal(0),
        "n" => Suffix::Decimal(-9),
        "u" => Suffix::Decimal(-6),
        "m" => Suffix::Decimal(-3),
        "k" => Suffix::Decimal(3),
        "M" => Suffix::Decimal(6),
        "G" => Suffix::Decimal(9),
        "T" => Suffix::Decimal(12),
        "P" => Suffix::Decimal(15),
        "E" => Suffix::Decimal(18),
        "Ki" => Suffix::Binary(10),
        "Mi" => Suffix::Binary(20),
        "Gi" => Suffix::Binary(30),
        "Ti" => Suffix::Binary(40),
        "Pi" => Suffix::Binary(50),
        "Ei" => Suffix::Binary(60),
        _ => Suffix::Decimal(text.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}
