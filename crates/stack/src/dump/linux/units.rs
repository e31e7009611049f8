//! Sizes as Linux tools write them.

use plumb_geometry::{Bytes, SECTOR};

/// A size with its unit, and by how much it may be wrong: tools round to two decimals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    bytes: f64,
    exact: Option<Bytes>,
    error: f64,
}

impl Size {
    /// A number with the unit of LVM behind it: `s` sectors of 512 bytes, `b` bytes, small letters powers of 1024 and
    /// capital ones of 1000. Without a unit it means nothing but zero.
    pub(super) fn lvm(word: &str) -> Option<Size> {
        let word = word.trim().trim_start_matches('<');
        let digits = word
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
            .count();
        let (number, unit) = word.split_at(digits);
        let value: f64 = number.parse().ok()?;
        let scale = match unit {
            "s" | "S" => SECTOR,
            "b" | "B" => 1,
            "" if value == 0.0 => 1,
            "k" => 1 << 10,
            "m" => 1 << 20,
            "g" => 1 << 30,
            "t" => 1 << 40,
            "p" => 1 << 50,
            "K" => 1000,
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            "T" => 1_000_000_000_000,
            "P" => 1_000_000_000_000_000,
            _ => return None,
        };
        let whole = number.parse::<u64>().ok();
        let exact = if value == 0.0 {
            Some(Bytes(0))
        } else {
            let is_counted = matches!(unit, "s" | "S" | "b" | "B");
            whole
                .filter(|_| is_counted)
                .and_then(|whole| Bytes(whole).checked_mul(scale))
        };
        let decimals = number
            .split_once('.')
            .map_or(0, |(_, decimals)| decimals.len());
        let error = if exact.is_some() {
            0.0
        } else {
            scale as f64 * 0.5_f64 * 0.1_f64.powi(decimals as i32)
        };
        // Beyond 2^63 bytes a float would not come back.
        let bytes = value * scale as f64;
        (bytes < 9.2e18).then_some(Size {
            bytes,
            exact,
            error,
        })
    }

    /// The size itself, where it was not rounded.
    pub(super) fn exact(self) -> Option<Bytes> {
        self.exact
    }

    /// The one multiple of `unit` that this may be a rounded form of; `None` where two are possible, or none.
    pub(super) fn multiple_of(self, unit: Bytes) -> Option<Bytes> {
        if self.exact.is_some() {
            return self.exact.filter(|exact| exact.0.is_multiple_of(unit.0));
        }
        let near = (self.bytes / unit.0 as f64).round() * unit.0 as f64;
        let is_sure =
            self.error * 2.0 < unit.0 as f64 && (near - self.bytes).abs() <= self.error * 1.0001;
        is_sure.then_some(Bytes(near as u64))
    }
}

/// `64K`, `512K`, `1M`, as mdadm writes chunks: whole numbers of powers of 1024.
pub(super) fn chunk(word: &str) -> Option<Bytes> {
    let word = word.trim();
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let scale = match word.get(digits..)?.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    Bytes(word[..digits].parse().ok()?)
        .checked_mul(scale)
        .filter(|bytes| bytes.0 > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_lvm() {
        let exact = |word| Size::lvm(word).and_then(Size::exact);
        assert_eq!(exact("2049S"), Some(Bytes(2049 * 512)));
        assert_eq!(exact("65535s"), Some(Bytes(33_553_920)));
        assert_eq!(exact("1048576B"), Some(Bytes(1 << 20)));
        assert_eq!(exact("0 "), Some(Bytes(0)));
        // 2,049 sectors are printed so, and 2,048 as well.
        assert_eq!(exact("1.00m"), None);
        for word in [
            "",
            "S",
            "1.5.2m",
            "2048",
            "-1S",
            "1.00x",
            "99999999999p",
            "\u{663}S",
        ] {
            assert_eq!(exact(word), None, "{word}");
        }
    }

    #[test]
    fn rounded_sizes_of_known_steps() {
        let multiple = |word, unit| Size::lvm(word).and_then(|size| size.multiple_of(Bytes(unit)));
        assert_eq!(multiple("4.00m", 128 << 10), Some(Bytes(4 << 20)));
        assert_eq!(multiple("64.00k", 512), Some(Bytes(64 << 10)));
        assert_eq!(multiple("<1.20g", 4 << 20), None, "5 MiB either way");
        assert_eq!(multiple("64.00m", 4 << 20), Some(Bytes(64 << 20)));
        assert_eq!(multiple("65.00m", 4 << 20), None, "no multiple is near");
        assert_eq!(multiple("1.00m", 512), None);
    }

    #[test]
    fn chunks_of_md() {
        assert_eq!(chunk("64K"), Some(Bytes(65536)));
        assert_eq!(chunk(" 1M "), Some(Bytes(1 << 20)));
        for word in [
            "",
            "K",
            "0K",
            "64KB",
            "99999999999999999999K",
            "18014398509481984K",
        ] {
            assert_eq!(chunk(word), None, "{word}");
        }
    }
}
