//! Values of these flags as they are typed.

use plumb_geometry::{Bytes, Share, SizeError, parse_size};
use plumb_plan::partition::Content;

use crate::cli::whole;

pub fn size(text: &str) -> Result<Bytes, String> {
    parse_size(text).map_err(|error| whole(&error))
}

/// A position ends up in a label, where sectors and bytes taken for each other destroy data.
pub fn position(text: &str) -> Result<Bytes, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "found `{text}`, a position without a unit: write {text}s for sectors, or k, m, g, t"
        ));
    }
    parse_size(text).map_err(|error| match error {
        SizeError::UnknownUnit { found, unit } => format!(
            "found unit `{unit}` in `{found}`: expected s (sectors of 512 bytes), k, M, G, T, KiB, MiB, GiB or TiB"
        ),
        error => whole(&error),
    })
}

pub fn geometry(text: &str) -> Result<u64, String> {
    heads_and_sectors(text).map(|(heads, sectors)| u64::from(heads) * u64::from(sectors))
}

pub fn heads_and_sectors(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.split_once('x').and_then(|(heads, sectors)| {
        let (heads, sectors) = (heads.parse::<u32>().ok()?, sectors.parse::<u32>().ok()?);
        Some((heads, sectors)).filter(|(heads, sectors)| *heads > 0 && *sectors > 0)
    });
    numbers.ok_or_else(|| {
        format!("found `{text}`, expected heads and sectors of a track, as in 27x107")
    })
}

/// `1/128`, `1%` or `0.5%`, exactly.
pub fn share(text: &str) -> Result<Share, String> {
    let wrong = || format!("found `{text}`, expected a share as in 1/128, 1% or 0.5%");
    let (numerator, denominator) = if let Some((part, all)) = text.split_once('/') {
        (
            part.parse::<u64>().map_err(|_| wrong())?,
            all.parse::<u64>().map_err(|_| wrong())?,
        )
    } else {
        let percent = text.strip_suffix('%').ok_or_else(wrong)?;
        let (whole, decimals) = percent.split_once('.').unwrap_or((percent, ""));
        if decimals.len() > 6 {
            return Err(wrong());
        }
        let scale = 10_u64.pow(decimals.len() as u32);
        (
            format!("{whole}{decimals}")
                .parse::<u64>()
                .map_err(|_| wrong())?,
            100 * scale,
        )
    };
    if denominator == 0 || numerator > denominator {
        return Err(wrong());
    }
    Ok(Share {
        numerator,
        denominator,
    })
}

/// A duration, bare in seconds.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    let (number, factor) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1.0),
        (None, Some(number)) => (number, 1000.0),
        (None, None) => (text, 1000.0),
    };
    let number: Option<f64> = number
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0);
    number
        .map(|number| number * factor)
        .ok_or_else(|| format!("found `{text}`, expected a duration as in 50ms or 0.05s"))
}

/// One I/O in a quarter of an hour, and more than any array gives: other values are slips.
const RATES: std::ops::RangeInclusive<f64> = 0.001..=1e12;

/// A rate a second, 0 included.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate = text
        .parse()
        .ok()
        .filter(|rate: &f64| *rate == 0.0 || RATES.contains(rate));
    rate.ok_or_else(|| {
        format!("found `{text}`, expected a rate a second, as in 265: 0, or 0.001 and more")
    })
}

/// A rate a second, above 0.
pub fn rate_above_0(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| RATES.contains(rate));
    rate.ok_or_else(|| {
        format!("found `{text}`, expected a rate a second, as in 80: 0.001 and more")
    })
}

pub fn existing(text: &str) -> Result<(String, Bytes, Bytes), String> {
    let parts: Vec<&str> = text.split(':').collect();
    let [name, at, len] = parts[..] else {
        return Err(format!(
            "found `{text}`, expected NAME:OFFSET:LENGTH, as in d11:512s:1g"
        ));
    };
    Ok((name.to_owned(), position(at)?, size(len)?))
}

pub fn named(text: &str) -> Result<(String, Bytes), String> {
    let (name, len) = text
        .split_once(':')
        .ok_or_else(|| format!("found `{text}`, expected NAME:LENGTH, as in d12:1g"))?;
    Ok((name.to_owned(), size(len)?))
}

pub fn content(text: &str) -> Result<Content, String> {
    let wrong = || {
        format!("found `{text}`, expected lvm=GROUP, md=ARRAY, zfs=POOL or svm=MIRROR,SUBMIRROR")
    };
    let (kind, name) = text
        .split_once('=')
        .filter(|(_, name)| !name.is_empty())
        .ok_or_else(wrong)?;
    let own = name.to_owned();
    Ok(match kind {
        "lvm" => Content::Lvm { group: own },
        "md" => Content::Md { array: own },
        "zfs" => Content::Zfs { pool: own },
        "svm" => {
            let (mirror, submirror) = name.split_once(',').ok_or_else(wrong)?;
            Content::SvmMirror {
                mirror: mirror.to_owned(),
                submirror: submirror.to_owned(),
            }
        }
        _ => return Err(wrong()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_carry_their_unit() {
        assert_eq!(position("34s"), Ok(Bytes(34 * 512)));
        assert_eq!(position("1m"), Ok(Bytes(1 << 20)));
        assert!(
            position("34")
                .expect_err("bare")
                .contains("34s for sectors")
        );
        assert!(existing("d11:512:1g").is_err());
    }

    #[test]
    fn shares_are_exact() {
        let check = |text: &str, numerator, denominator| {
            assert_eq!(
                share(text),
                Ok(Share {
                    numerator,
                    denominator
                }),
                "{text}"
            );
        };
        check("1/128", 1, 128);
        check("1%", 1, 100);
        check("0.5%", 5, 1000);
        for bad in ["", "1", "2/1", "1/0", "-1%", "101%", "1.%x", "%"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_make_sense() {
        assert_eq!(
            (rate("0"), rate("265"), rate("0.5")),
            (Ok(0.0), Ok(265.0), Ok(0.5))
        );
        assert_eq!(rate_above_0("80"), Ok(80.0));
        for bad in ["", "-1", "1e-9", "NaN", "inf", "1e300", "80/s"] {
            assert!(rate(bad).is_err() && rate_above_0(bad).is_err(), "{bad}");
        }
        assert_eq!(
            rate_above_0("0").expect_err("none"),
            "found `0`, expected a rate a second, as in 80: 0.001 and more"
        );
    }

    #[test]
    fn durations_are_seconds_when_bare() {
        assert_eq!(
            (milliseconds("50ms"), milliseconds("2s"), milliseconds("2")),
            (Ok(50.0), Ok(2000.0), Ok(2000.0))
        );
        assert!(
            milliseconds("0").is_err()
                && milliseconds("inf").is_err()
                && milliseconds("5m").is_err()
        );
    }
}
