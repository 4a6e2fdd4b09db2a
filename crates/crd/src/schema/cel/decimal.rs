//! Texts that `int()` reads as a number within bounds, as a pattern, so that a rule about the number is one about the
//! text.

use super::order::Order;

/// The pattern of the decimal texts whose number compares like this; `None` if there is no such number.
pub(super) fn pattern(order: Order, number: i64) -> Option<String> {
    let below = || number.checked_sub(1).map(|most| (i64::MIN, most));
    let above = || number.checked_add(1).map(|least| (least, i64::MAX));
    let ranges: Vec<(i64, i64)> = match order {
        Order::Equal => vec![(number, number)],
        Order::Unequal => below().into_iter().chain(above()).collect(),
        Order::Less => below().into_iter().collect(),
        Order::AtMost => vec![(i64::MIN, number)],
        Order::Greater => above().into_iter().collect(),
        Order::AtLeast => vec![(number, i64::MAX)],
    };
    let ways: Vec<String> = ranges.into_iter().flat_map(|(least, most)| signed(least, most)).collect();
    (!ways.is_empty()).then(|| format!("^(?:{})$", ways.join("|")))
}

/// The texts of the numbers in a range: a sign is optional, and so are zeros in front.
fn signed(least: i64, most: i64) -> Vec<String> {
    let mut ways = Vec::new();
    if most >= 0 {
        ways.push(format!(r"\+?0*(?:{})", magnitudes(least.max(0).unsigned_abs(), most.unsigned_abs())));
    }
    if least <= 0 {
        ways.push(format!("-0*(?:{})", magnitudes(most.min(0).unsigned_abs(), least.unsigned_abs())));
    }
    ways
}

fn magnitudes(least: u64, most: u64) -> String {
    let (shortest, longest) = (least.to_string().len(), most.to_string().len());
    let of_length = |length: usize| {
        let first = if length == shortest { least.to_string() } else { format!("1{}", "0".repeat(length - 1)) };
        let last = if length == longest { most.to_string() } else { "9".repeat(length) };
        between(&first, &last)
    };
    (shortest..=longest).map(of_length).collect::<Vec<_>>().join("|")
}

/// The digits between two numbers of the same length.
fn between(least: &str, most: &str) -> String {
    if least == most {
        return least.to_owned();
    }
    let (first, last) = (&least[..1], &most[..1]);
    let (low, high) = (&least[1..], &most[1..]);
    if first == last {
        return format!("{first}(?:{})", between(low, high));
    }
    let length = low.len();
    let is_lowest = low.bytes().all(|digit| digit == b'0');
    let is_highest = high.bytes().all(|digit| digit == b'9');
    let digit = |text: &str| text.bytes().next().map_or(0, |digit| digit - b'0');
    let from = digit(first) + u8::from(!is_lowest);
    let to = digit(last) - u8::from(!is_highest);
    let mut ways = Vec::new();
    if !is_lowest {
        ways.push(format!("{first}(?:{})", between(low, &"9".repeat(length))));
    }
    if from <= to {
        ways.push(format!("[{from}-{to}][0-9]{{{length}}}"));
    }
    if !is_highest {
        ways.push(format!("{last}(?:{})", between(&"0".repeat(length), high)));
    }
    ways.join("|")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::order::Order;
    use super::pattern;
    use crate::schema::pattern::Pattern;

    const ORDERS: [Order; 6] =
        [Order::Equal, Order::Unequal, Order::Less, Order::AtMost, Order::Greater, Order::AtLeast];

    fn number() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), -130..130_i64, Just(i64::MIN), Just(i64::MAX), (i64::MAX - 99)..=i64::MAX]
    }

    fn is_match(pattern: &str, text: &str) -> bool {
        Pattern::parse(pattern).expect("a pattern").is_match(text)
    }

    fn holds(order: Order, one: i64, other: i64) -> bool {
        match order {
            Order::Equal => one == other,
            Order::Unequal => one != other,
            Order::Less => one < other,
            Order::AtMost => one <= other,
            Order::Greater => one > other,
            Order::AtLeast => one >= other,
        }
    }

    proptest! {
        #[test]
        fn a_text_matches_as_its_number_compares(
            limit in number(),
            other in number(),
            near in -3..3_i64,
            zeros in 0..3_usize,
            plus in any::<bool>(),
        ) {
            for number in [other, limit.saturating_add(near)] {
                let sign = if number < 0 { "-" } else if plus { "+" } else { "" };
                let text = format!("{sign}{}{}", "0".repeat(zeros), number.unsigned_abs());
                for order in ORDERS {
                    let matches = pattern(order, limit).is_some_and(|it| is_match(&it, &text));
                    prop_assert_eq!(matches, holds(order, number, limit), "{:?} {} {}", order, text, limit);
                }
            }
        }

        #[test]
        fn what_is_no_number_of_64_bits_matches_nothing(limit in number(), text in "[+-]?[0-9]{19,21}|[ 0-9a+.-]{0,4}") {
            prop_assume!(text.parse::<i64>().is_err());
            for order in ORDERS {
                let matches = pattern(order, limit).is_some_and(|it| is_match(&it, &text));
                prop_assert!(!matches, "{:?} {} {}", order, text, limit);
            }
        }
    }
}
