//! Whether a step is made, and whether a loop goes on: two texts with values, compared. Numbers where both are, else text.

use crate::flow::template::{Form, Moment, Names, Template};
use crate::flow::user::User;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    AtMost,
    AtLeast,
    Below,
    Above,
}

/// Two before one: `<=` is not `<`.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Below),
    (">", Comparison::Above),
];

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    left: Template,
    comparison: Comparison,
    right: Template,
}

impl Condition {
    /// Reads `{{total}} > 0`.
    ///
    /// # Errors
    /// When it has no comparison, or has an unknown name.
    pub(crate) fn parse(text: &str, names: Names<'_>) -> Result<Self, Vec<String>> {
        let bytes = text.as_bytes();
        let mut depth = 0_usize;
        for at in 0..bytes.len() {
            match bytes[at] {
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                _ if depth > 0 => {}
                _ => {
                    let found = COMPARISONS.iter().find(|(sign, _)| text[at..].starts_with(sign));
                    if let Some((sign, comparison)) = found {
                        let left = side(&text[..at], names);
                        let right = side(&text[at + sign.len()..], names);
                        return match (left, right) {
                            (Ok(left), Ok(right)) => {
                                Ok(Self { left, comparison: *comparison, right })
                            }
                            (left, right) => {
                                Err(left.err().into_iter().chain(right.err()).flatten().collect())
                            }
                        };
                    }
                }
            }
        }
        Err(vec![format!(
            "`{text}` has no comparison; write a condition such as \"{{{{total}}}} > 0\" or \"{{{{kind}}}} == premium\""
        )])
    }

    /// Whether it holds. `scratch` is written over.
    pub(crate) fn holds(
        &self,
        user: &mut User,
        moment: &Moment<'_>,
        scratch: &mut Vec<u8>,
    ) -> bool {
        scratch.clear();
        self.left.fill(user, moment, scratch);
        let middle = scratch.len();
        self.right.fill(user, moment, scratch);
        let (left, right) = scratch.split_at(middle);
        let order = match (number(left), number(right)) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => Some(left.cmp(right)),
        };
        let Some(order) = order else { return false };
        match self.comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::Unequal => order.is_ne(),
            Comparison::AtMost => order.is_le(),
            Comparison::AtLeast => order.is_ge(),
            Comparison::Below => order.is_lt(),
            Comparison::Above => order.is_gt(),
        }
    }
}

/// Without the space around it, and without quotes if it stands in them.
fn side(text: &str, names: Names<'_>) -> Result<Template, Vec<String>> {
    let text = text.trim();
    let quoted = ['"', '\''].iter().find_map(|q| text.strip_prefix(*q)?.strip_suffix(*q));
    Template::parse(quoted.unwrap_or(text).as_bytes(), Form::Raw, names)
}

fn number(bytes: &[u8]) -> Option<f64> {
    std::str::from_utf8(bytes).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::user::Sizes;

    /// Claim: numbers are compared as numbers and texts as texts, and braces hide what stands in them.
    #[test]
    fn comparisons() {
        let values = vec!["a".to_owned()];
        let names = Names { values: &values, columns: &[] };
        for (text, a, expected) in [
            ("{{a}} == 1", "1.0", true),
            ("{{a}} != 1", "1.0", false),
            ("{{a}} > 9", "10", true),
            ("{{a}} > x", "10", false),
            ("{{a}} <= 2", "2", true),
            ("{{a}} >= 2", "1", false),
            ("{{a}} < 2", "1", true),
            ("{{a}} == 'premium'", "premium", true),
            ("{{a}} == \"\"", "", true),
            ("{{a}} ==", "", true),
        ] {
            let condition = Condition::parse(text, names).unwrap();
            let mut user = User::default();
            user.begin(0, 0, 0, Sizes { loops: 0, values: 1 });
            user.values[0].extend_from_slice(a.as_bytes());
            let holds = condition.holds(&mut user, &Moment::default(), &mut Vec::new());
            assert_eq!(holds, expected, "{text} with {a}");
        }
        let wrong = Condition::parse("{{a}}", names).unwrap_err();
        assert!(wrong[0].starts_with("`{{a}}` has no comparison; "), "{wrong:?}");
        assert_eq!(Condition::parse("{{b}} == {{c}}", names).unwrap_err().len(), 2);
    }
}
