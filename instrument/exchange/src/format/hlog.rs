//! HdrHistogram interval logs (`HistogramLogReader`, versions 1.2 and 1.3): the intervals of each tag added up.

use std::io::BufRead;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Declared, Holds, PLAIN, TextForm};
use crate::error::ExchangeError;
use crate::histogram_v2::{self, Counted};
use crate::lines::{Lines, wrong};
use crate::percentiles::{Percentiles, of_counts};

/// The most tags; ours has at most twelve.
const TAGS_MAX: usize = 256;
/// The most slots of all tags together: 12 tags of 46,080 slots (three digits, 64 bits) and to spare.
const SLOTS_MAX: usize = 4_000_000;

pub(super) const FORMAT: Declared = Declared {
    word: "hlog",
    holds: Holds::Distribution,
    made_of: &[Holds::Rows],
    endings: &["hlog"],
    is_known_by_name: true,
    begins: is_head,
    text: TextForm::Percentiles { read: read_hlog },
    ..PLAIN
};

fn is_head(line: &str) -> bool {
    (line.starts_with('#') && line.contains("istogram log"))
        || line.starts_with("\"StartTimestamp\"")
}

/// Reads an interval log: one distribution a tag, in the order in which tags appear. An untagged one has an
/// empty tag. Values are taken for nanoseconds.
///
/// # Errors
/// When a line is not an interval, or there is none.
pub fn read_hlog(
    name: &str,
    input: Box<dyn BufRead + '_>,
) -> Result<Vec<Percentiles>, ExchangeError> {
    let mut lines = Lines::new(name, input);
    let mut tags: Vec<(String, Counted)> = Vec::new();
    while let Some((number, line)) = lines.next()? {
        if line.starts_with(b"#") || line.starts_with(b"\"StartTimestamp\"") {
            continue;
        }
        let at = |why: String| wrong(name, number, why);
        let text = std::str::from_utf8(line).map_err(|_| at("it is not UTF-8 text".to_owned()))?;
        let (tag, rest) = match text.strip_prefix("Tag=").map(|rest| rest.split_once(',')) {
            None => ("", text),
            Some(Some((tag, rest))) => (tag, rest),
            Some(None) => return Err(at("there is nothing behind the tag".to_owned())),
        };
        let payload = interval(rest).ok_or_else(|| {
            at("it is not an interval: start, length, largest value, histogram".to_owned())
        })?;
        let bytes = STANDARD
            .decode(payload)
            .map_err(|error| at(format!("the histogram is not base64: {error}")))?;
        let slot_count: usize = tags.iter().map(|(_, counted)| counted.by_highest.len()).sum();
        if slot_count > SLOTS_MAX {
            return Err(at(format!("the log has more than {SLOTS_MAX} different values")));
        }
        let index = tags.iter().position(|(known, _)| known == tag);
        let index = match index {
            Some(index) => index,
            None if tags.len() == TAGS_MAX => {
                return Err(at(format!("the log has more than {TAGS_MAX} tags")));
            }
            None => {
                tags.push((tag.to_owned(), Counted::default()));
                tags.len() - 1
            }
        };
        histogram_v2::add(&bytes, &mut tags[index].1).map_err(at)?;
    }
    if tags.is_empty() {
        let why = "there is no interval in it".to_owned();
        return Err(ExchangeError::Input { name: name.to_owned(), why });
    }
    Ok(tags.iter().map(|(tag, counted)| of_slots(tag, counted)).collect())
}

/// The last of four fields; the first three are numbers.
fn interval(text: &str) -> Option<&str> {
    let mut fields = text.splitn(4, ',');
    for _ in 0..3 {
        fields.next()?.trim().parse::<f64>().ok()?;
    }
    fields.next().map(str::trim)
}

/// Mean and deviation from the slots: exact values are not kept, and slots are a thousandth wide.
#[expect(clippy::cast_precision_loss, reason = "for people and plots")]
fn of_slots(tag: &str, counted: &Counted) -> Percentiles {
    let total = counted.by_highest.values().map(|count| *count as f64).sum::<f64>().max(1.0);
    let mean = counted.sum / total;
    let deviation = (counted.squares / total - mean * mean).max(0.0).sqrt();
    of_counts(tag, &counted.by_highest, mean / 1e6, deviation / 1e6)
}
