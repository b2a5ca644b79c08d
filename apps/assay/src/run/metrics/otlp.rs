//! Metrics as an `ExportMetricsServiceRequest` of the OpenTelemetry protocol (opentelemetry-proto 1.x), in protobuf's wire format:
//! the few fields that these metrics have. Counts are cumulative from the beginning of the trial.

use model::secret;

use super::{Family, Kind, Samples, Shown};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u64 = 2;

/// The request for a trial at a time, nanoseconds of Unix time.
pub(super) fn request(shown: &Shown, now_ns: i64) -> Vec<u8> {
    let times = Times { began: shown.began_ns.cast_unsigned(), now: now_ns.cast_unsigned() };
    let labels = shown.labels();
    let mut scope_metrics = Message::default();
    scope_metrics.message(1, |scope| {
        scope.text(1, "assay");
        scope.text(2, env!("CARGO_PKG_VERSION"));
    });
    for family in shown.families() {
        scope_metrics.message(2, |metric| metric.metric(&family, &labels, times));
    }
    let mut request = Message::default();
    request.message(1, |resource_metrics| {
        resource_metrics.message(1, |resource| {
            resource.attribute(1, "service.name", "assay");
            resource.attribute(1, "service.version", env!("CARGO_PKG_VERSION"));
        });
        resource_metrics.bytes(2, &scope_metrics.0);
    });
    request.0
}

#[derive(Clone, Copy)]
struct Times {
    began: u64,
    now: u64,
}

type Labels = [(&'static str, String)];

/// A message of protobuf on its way.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn metric(&mut self, family: &Family, trial: &Labels, times: Times) {
        self.text(1, family.name);
        self.text(2, family.help);
        if family.name.ends_with("_seconds") {
            self.text(3, "s");
        }
        match &family.of {
            Samples::Numbers(kind, samples) => {
                let is_counter = *kind == Kind::Counter;
                // A sum, or a gauge.
                self.message(if is_counter { 7 } else { 5 }, |data| {
                    for sample in samples {
                        data.message(1, |point| {
                            if is_counter {
                                point.fixed(2, times.began);
                            }
                            point.fixed(3, times.now);
                            point.fixed(4, sample.value.to_bits());
                            point.labels(7, trial.iter().chain(&sample.labels));
                        });
                    }
                    if is_counter {
                        data.number(2, CUMULATIVE);
                        data.number(3, 1);
                    }
                });
            }
            Samples::Histogram { bounds, buckets, count, sum } => self.message(9, |data| {
                data.message(1, |point| {
                    point.fixed(2, times.began);
                    point.fixed(3, times.now);
                    point.fixed(4, *count);
                    point.fixed(5, sum.to_bits());
                    let numbers: Vec<u8> = buckets.iter().flat_map(|n| n.to_le_bytes()).collect();
                    point.bytes(6, &numbers);
                    let numbers: Vec<u8> = bounds.iter().flat_map(|s| s.to_le_bytes()).collect();
                    point.bytes(7, &numbers);
                    point.labels(9, trial.iter());
                });
                data.number(2, CUMULATIVE);
            }),
        }
    }

    fn labels<'l>(&mut self, field: u64, labels: impl Iterator<Item = &'l (&'static str, String)>) {
        labels.for_each(|(name, value)| self.attribute(field, name, &secret::scrub(value)));
    }

    fn attribute(&mut self, field: u64, name: &str, value: &str) {
        self.message(field, |attribute| {
            attribute.text(1, name);
            attribute.message(2, |any| any.text(1, value));
        });
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    /// Wire type 2: a length and so many bytes.
    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Wire type 1: eight bytes.
    fn fixed(&mut self, field: u64, bits: u64) {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&bits.to_le_bytes());
    }

    /// Wire type 0.
    fn number(&mut self, field: u64, number: u64) {
        self.varint(field << 3);
        self.varint(number);
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 & 0x7f | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: numbers, texts and messages stand as the encoding's own documentation shows them.
    #[test]
    fn as_documented() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.number(1, 150));
        message.fixed(4, 1.0_f64.to_bits());
        let expected = [
            &[0x08, 0x96, 0x01, 0x12, 0x07][..],
            b"testing",
            &[0x1a, 0x03, 0x08, 0x96, 0x01],
            &[0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
        ];
        assert_eq!(message.0, expected.concat());
    }
}
