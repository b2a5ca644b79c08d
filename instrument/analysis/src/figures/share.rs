//! Shares: computed, and as people read them.

/// A share as people read it: `2.5 %`, with more digits where it is small.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        p if p == 0.0 || p >= 10.0 => format!("{percent:.0} %"),
        p if p >= 1.0 => format!("{percent:.1} %"),
        p if p >= 0.01 => format!("{percent:.2} %"),
        p if p >= 0.000_1 => format!("{percent:.4} %"),
        _ => "less than 0.0001 %".to_owned(),
    }
}

/// `part ÷ whole`; zero for an empty whole.
#[expect(clippy::cast_precision_loss, reason = "a share")]
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
