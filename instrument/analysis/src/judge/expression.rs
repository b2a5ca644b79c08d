//! The language of thresholds: `p99 < 1s`, `committed >= 98% of offered`, joined by `and`.

use model::quantity::{Rate, parse_duration, parse_percent, parse_size};

use crate::names::foreign::{here, percentile_of_k6};
use crate::names::unit::Unit;

/// A comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison {
    pub left: Operand,
    pub operator: Operator,
    pub right: Operand,
    /// As written.
    pub text: String,
}

impl Comparison {
    /// A number with the constant that it is compared with, the number on the left; `None` for what compares two numbers.
    pub fn with_constant(&self) -> Option<(&str, Operator, f64)> {
        match (&self.left, &self.right) {
            (Operand::Name(name), Operand::Constant(limit, _)) => {
                Some((name, self.operator, *limit))
            }
            (Operand::Constant(limit, _), Operand::Name(name)) => {
                Some((name, self.operator.mirrored(), *limit))
            }
            _ => None,
        }
    }
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    /// A number of the result.
    Name(String),
    /// A number with its unit (nanoseconds, per second, fraction, bytes).
    Constant(f64, Unit),
    /// A share of another number.
    ShareOf(f64, String),
}

/// How the sides compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    NotEqual,
}

impl Operator {
    /// In the order of search: the longer ones first.
    const ALL: [(&'static str, Self); 6] = [
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        ("<", Self::Less),
        (">", Self::More),
    ];

    /// The same comparison with its sides changed.
    pub const fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::More,
            Self::AtMost => Self::AtLeast,
            Self::More => Self::Less,
            Self::AtLeast => Self::AtMost,
            Self::Equal | Self::NotEqual => self,
        }
    }

    #[expect(clippy::float_cmp, reason = "counts and ratios of counts are exact")]
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::More => left > right,
            Self::AtLeast => left >= right,
            Self::Equal => left == right,
            Self::NotEqual => left != right,
        }
    }
}

/// Reads an expression; names are not looked up.
pub(crate) fn parse(expr: &str) -> Result<Vec<Comparison>, String> {
    expr.split(" and ").map(|part| comparison(part.trim(), expr)).collect()
}

fn comparison(text: &str, expr: &str) -> Result<Comparison, String> {
    let example = "write a comparison such as `p99 < 1s` or `committed >= 98% of offered`";
    if text.is_empty() {
        return Err(format!("`{expr}` lacks a comparison; {example}"));
    }
    let found = text.char_indices().find_map(|(at, _)| {
        let operator = Operator::ALL.into_iter().find(|(sign, _)| text[at..].starts_with(sign));
        operator.map(|(sign, operator)| (at, sign, operator))
    });
    let Some((at, sign, operator)) = found else {
        if text.contains('=') {
            return Err(format!("`{text}`: write == to compare"));
        }
        return Err(format!("`{text}` has no comparison; {example}"));
    };
    let (left, right) = (text[..at].trim(), text[at + sign.len()..].trim());
    if left.is_empty() || right.is_empty() {
        return Err(format!("`{text}` lacks one side; {example}"));
    }
    if let Some(percentile) = percentile_of_k6(left) {
        return Err(format!(
            "`{text}` is k6's way; write {percentile} {sign} {}",
            milliseconds(right)
        ));
    }
    if Operator::ALL.iter().any(|(sign, _)| right.contains(sign)) {
        return Err(format!("`{text}` compares twice; join two comparisons with `and`"));
    }
    Ok(Comparison { left: operand(left)?, operator, right: operand(right)?, text: text.to_owned() })
}

/// k6 writes times as bare numbers of milliseconds.
fn milliseconds(text: &str) -> String {
    if text.parse::<f64>().is_ok() { format!("{text}ms") } else { text.to_owned() }
}

fn operand(text: &str) -> Result<Operand, String> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-') {
        return name(text).map(Operand::Name);
    }
    if text.starts_with('-') {
        return Err(format!("`{text}` is negative, which nothing in a result is"));
    }
    if let Some((share, of)) = text.split_once(" of ") {
        return Ok(Operand::ShareOf(parse_share(share)?, name(of.trim())?));
    }
    if text.ends_with('%') {
        return Ok(Operand::Constant(parse_share(text)?, Unit::Ratio));
    }
    constant(text)
}

/// A percentage that may exceed 100, as in `150% of offered`.
fn parse_share(text: &str) -> Result<f64, String> {
    parse_percent(text).or_else(|error| {
        let number = text.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
        number.filter(|n| n.is_finite()).map(|n| n / 100.0).ok_or(error)
    })
}

#[expect(clippy::cast_precision_loss, reason = "a user's number")]
fn constant(text: &str) -> Result<Operand, String> {
    if let Ok(number) = text.replace('_', "").parse::<f64>() {
        return Ok(Operand::Constant(number, Unit::Count));
    }
    if text.contains('/') {
        let rate = Rate::parse(text)?;
        return Ok(Operand::Constant(rate.as_per_second(), Unit::PerSecond));
    }
    if let Ok(bytes) = parse_size(text) {
        return Ok(Operand::Constant(bytes as f64, Unit::Bytes));
    }
    let duration = parse_duration(text).map_err(|_| {
        format!("`{text}` is not a number with a unit; write 250ms, 50/s, 99.9%, 64MiB or a count")
    })?;
    Ok(Operand::Constant(duration.as_nanos() as f64, Unit::Ns))
}

fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    if !text.is_empty() && text.chars().all(fits) {
        return Ok(text.to_owned());
    }
    if let Some(help) = here(text) {
        return Err(format!("`{text}` is not a name; {help}"));
    }
    Err(format!(
        "`{text}` is not a name; names look like p99, committed or stage.accepted.throughput"
    ))
}

/// The names that an expression looks up; none if it cannot be read.
pub(crate) fn names_in(expr: &str) -> Vec<String> {
    let comparisons = parse(expr).unwrap_or_default();
    let operands =
        comparisons.into_iter().flat_map(|comparison| [comparison.left, comparison.right]);
    operands
        .filter_map(|operand| match operand {
            Operand::Name(name) | Operand::ShareOf(_, name) => Some(name),
            Operand::Constant(..) => None,
        })
        .collect()
}
