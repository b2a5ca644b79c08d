//! Prometheus's text format, as far as values by name need it (<https://prometheus.io/docs/instrumenting/exposition_formats/>):
//! comments are skipped, lines with labels are summed under their name, what is not a finite number is ignored.
//!
//! It must never trust the text: any bytes give values or none, in one pass, and a line that is not of the format says
//! nothing about its neighbours.

/// The value of each of `wanted`, which are sorted and without repetition: the sum of its lines, nothing if it has none
/// with a finite value.
pub(super) fn values(text: &[u8], wanted: &[String]) -> Vec<Option<f64>> {
    let mut found = vec![None; wanted.len()];
    for line in text.split(|byte| *byte == b'\n') {
        let Some((name, rest)) = named(line) else { continue };
        // Most lines are of metrics that were not asked for: they cost a search, not a parse.
        let Ok(place) = wanted.binary_search_by(|it| it.as_bytes().cmp(name)) else { continue };
        if let Some(value) = value(rest) {
            let sum: &mut f64 = found[place].get_or_insert(0.0);
            *sum += value;
        }
    }
    found.into_iter().map(|sum| sum.filter(|sum| sum.is_finite())).collect()
}

/// The name that a line begins with, and what follows it.
fn named(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_start();
    let is_of_a_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
    let end = line.iter().position(|byte| !is_of_a_name(byte))?;
    (end > 0).then(|| line.split_at(end))
}

/// The value behind labels, if there are any, and before a time in milliseconds, if there is one.
fn value(rest: &[u8]) -> Option<f64> {
    let rest = match rest.trim_ascii_start().strip_prefix(b"{") {
        Some(labels) => &labels[labels_end(labels)?..],
        None => rest,
    };
    let mut words = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    let is_whole =
        words.next().is_none_or(|time| time.parse::<i64>().is_ok()) && words.next().is_none();
    (is_whole && value.is_finite()).then_some(value)
}

/// Behind the brace that ends the labels: one in a quoted value does not.
fn labels_end(labels: &[u8]) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in labels.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'}' if !is_quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Any bytes as an answer of a node, for fuzzing.
///
/// # Panics
/// If a value is not finite, or if what a text says is not the sum of what its lines say.
pub fn fuzz_metrics(bytes: &[u8]) {
    let wanted: Vec<String> =
        ["a", "a_b", "cometbft_mempool_size", "go_goroutines"].map(str::to_owned).to_vec();
    let whole = values(bytes, &wanted);
    assert!(whole.iter().flatten().all(|value| value.is_finite()), "{whole:?}");
    let mut sums = vec![None; wanted.len()];
    for line in bytes.split(|byte| *byte == b'\n') {
        for (sum, value) in sums.iter_mut().zip(values(line, &wanted)) {
            if let Some(value) = value {
                *sum.get_or_insert(0.0) += value;
            }
        }
    }
    let sums: Vec<Option<f64>> =
        sums.into_iter().map(|sum: Option<f64>| sum.filter(|sum| sum.is_finite())).collect();
    assert_eq!(whole, sums, "a line changed what another says");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer of a CometBFT 0.38.19 node, shortened.
    const REAL: &str = include_str!("cometbft-0.38.txt");

    fn of(text: &str, names: &[&str]) -> Vec<Option<f64>> {
        let wanted: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        assert!(wanted.is_sorted());
        values(text.as_bytes(), &wanted)
    }

    /// Claim: gauges, counters, sums and counts of histograms of a real node are read, and lines with labels summed.
    #[test]
    fn a_real_node_is_read() {
        let names = [
            "cometbft_consensus_height",
            "cometbft_consensus_proposal_receive_count",
            "cometbft_consensus_step_duration_seconds_count",
            "cometbft_mempool_size_bytes",
            "cometbft_mempool_tx_size_bytes_bucket",
            "cometbft_mempool_tx_size_bytes_sum",
            "go_memstats_alloc_bytes",
            "no_such_metric",
            "process_start_time_seconds",
        ];
        let found = of(REAL, &names);
        let expected = [
            Some(8.0),
            Some(7.0),
            Some(42.0),
            Some(0.0),
            Some(7.0),
            Some(3.0),
            Some(23_698_024.0),
            None,
            Some(1_795_287_637.65),
        ];
        assert_eq!(found, expected);
    }

    /// Claim: braces, quotes and hashes in labels do not mislead, times are allowed, and NaN and infinities are not values.
    #[test]
    fn corners_of_the_format() {
        let text = "# a 7\n a{x=\"}\\\"{\",y=\"# 5\"} 1.5e2 1395066363000\r\na 2\na NaN\na +Inf\nb -Inf\n\
                    c{x=\"open} 3\nd 4 five\ne\nf 6 7 8\n{x=\"y\"} 9\ng{} 0x10\nh\t8\naa 3\ni 1e400";
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let found = of(text, &names);
        let mut expected = [None; 9];
        expected[0] = Some(152.0);
        expected[7] = Some(8.0);
        assert_eq!(found, expected);
        assert_eq!(of("a 1e308\na 1e308", &["a"]), [None], "a sum beyond numbers is none");
    }

    /// Claim: bytes of any kind give no value and no panic.
    #[test]
    fn other_bytes_say_nothing() {
        for bytes in [&b""[..], b"\xff\xfe a 1", b"a \xff", b"a{", b"a{\"", b"\n\n", b"\0a 1"] {
            assert_eq!(values(bytes, &["a".to_owned()]), [None], "{bytes:?}");
            fuzz_metrics(bytes);
        }
        fuzz_metrics(REAL.as_bytes());
    }
}
