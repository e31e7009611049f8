//! The protobuf format of Prometheus, `io.prometheus.client.MetricFamily` with lengths between: a counter or a gauge is one number, and
//! a histogram has native buckets beside the classic ones.
//!
//! The numbers of the fields are those of `metrics.proto` in `prometheus/client_model`.

/// Width of the zero bucket, as in the client libraries.
const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;

/// A message in the making.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    pub(super) fn unsigned(&mut self, field: u64, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    /// A number with a sign, in zigzag.
    fn signed(&mut self, field: u64, value: i64) {
        self.unsigned(field, zigzag(value));
    }

    pub(super) fn double(&mut self, field: u64, value: f64) {
        self.key(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn message(&mut self, field: u64, make: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        make(&mut inner);
        self.bytes(field, &inner.0);
    }

    /// Appends a message behind its length.
    pub(super) fn delimited(&mut self, message: &Message) {
        self.varint(message.0.len() as u64);
        self.0.extend_from_slice(&message.0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The native buckets of values, which rise. A power of two has 2^schema buckets; a bucket includes its end.
    pub(super) fn native_buckets(&mut self, schema: u8, values: impl Iterator<Item = (f64, u64)>) {
        let in_power = f64::from(1u32 << schema);
        let mut zero = 0u64;
        let mut buckets: Vec<(i64, u64)> = Vec::new();
        for (value, count) in values {
            if value <= ZERO_THRESHOLD {
                zero = zero.saturating_add(count);
                continue;
            }
            #[expect(
                clippy::cast_possible_truncation,
                reason = "an exponent of a double times 256 at most"
            )]
            let index = (value.log2() * in_power).ceil() as i64;
            match buckets.last_mut() {
                Some((last, sum)) if *last == index => *sum = sum.saturating_add(count),
                _ => buckets.push((index, count)),
            }
        }
        self.signed(5, schema.into());
        self.double(6, ZERO_THRESHOLD);
        self.unsigned(7, zero);
        let mut deltas = Message::default();
        let mut before = 0i64;
        // A span is a run of buckets that follow each other: the distance to it, and its length.
        let mut end = 0;
        for run in buckets.chunk_by(|(one, _), (next, _)| one + 1 == *next) {
            let first = run[0].0;
            self.message(12, |span| {
                span.signed(1, first - end);
                span.unsigned(2, run.len() as u64);
            });
            end = first + run.len() as i64;
            for (_, count) in run {
                let count = i64::try_from(*count).unwrap_or(i64::MAX);
                deltas.varint(zigzag(count.wrapping_sub(before)));
                before = count;
            }
        }
        self.bytes(13, &deltas.0);
    }
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of the documentation of the encoding.
    #[test]
    fn numbers_are_encoded() {
        let mut message = Message::default();
        message.unsigned(1, 150);
        message.bytes(2, b"testing");
        assert_eq!(message.0, b"\x08\x96\x01\x12\x07testing");
        let signs = [0, -1, 1, -2, i64::MAX, i64::MIN].map(zigzag);
        assert_eq!(signs, [0, 1, 2, 3, u64::MAX - 1, u64::MAX]);
    }

    /// 1 s ends bucket 0, 2 s bucket 8; 1.5 s is in bucket 5, which ends at 2^(5/8) = 1.54 s.
    #[test]
    fn native_buckets_are_runs() {
        let mut found = Message::default();
        let values = [(0.0, 7), (1.0, 2), (1.05, 3), (1.06, 1), (1.5, 9), (2.0, 1)];
        found.native_buckets(3, values.into_iter());
        let mut expected = Message::default();
        expected.signed(5, 3);
        expected.double(6, 2f64.powi(-128));
        expected.unsigned(7, 7);
        for (distance, len) in [(0, 2), (3, 1), (2, 1)] {
            expected.message(12, |span| {
                span.signed(1, distance);
                span.unsigned(2, len);
            });
        }
        let deltas = [2, 2, 5, -8].map(|delta| zigzag(delta).to_le_bytes()[0]);
        expected.bytes(13, &deltas);
        assert_eq!(found.0, expected.0);
    }
}
