//! Accepted texts of a size, a shift, a range and a grid, and the messages for all others.

use plumb_geometry::{Bytes, SizeError, parse_grid, parse_range, parse_shift, parse_size};
use proptest::prelude::*;

#[test]
fn sizes_in_every_accepted_form() {
    let check = |text: &str, bytes: u64| assert_eq!(parse_size(text), Ok(Bytes(bytes)), "{text}");
    check("0", 0);
    check("4096", 4_096);
    check("8s", 4_096);
    for (units, power) in [
        ("k K KiB kib", 10),
        ("m M MiB mib", 20),
        ("g G GiB gib", 30),
    ] {
        units
            .split(' ')
            .for_each(|unit| check(&format!("3{unit}"), 3 << power));
    }
    "t T TiB tib"
        .split(' ')
        .for_each(|unit| check(&format!("16{unit}"), 16 << 40));
    check("18446744073709551615", u64::MAX);
    check("0018s", 9_216);
}

#[test]
fn refused_sizes_name_found_and_expected() {
    let check = |text: &str, part: &str| {
        let message = parse_size(text).expect_err(text).to_string();
        assert!(message.contains(part), "{text}: {message}");
        assert!(
            text.is_empty() || message.contains(&format!("`{text}`")),
            "{text}: {message}"
        );
    };
    check("", "expected digits");
    check("-1", "negative");
    check("1.5k", "1536 for 1.5k");
    check(".5k", "point or comma");
    check("1,011", "point or comma");
    check("k", "begins with a digit");
    check("+4k", "begins with a digit");
    check(" 4k", "begins with a digit");
    check("4 k", "unit ` k`");
    check("4x", "unit `x`");
    check("0x1000", "unit `x1000`");
    check("4b", "unit `b`");
    check("4kiB", "unit `kiB`");
    check("٤k", "begins with a digit");
    check(
        "4MB",
        "write 4MiB for 4,194,304 bytes, or 4000000 for 4,000,000 bytes",
    );
    check("1KB", "write 1KiB for 1,024 bytes, or 1000 for 1,000 bytes");
    check("1kB", "ambiguous");
    check("1kb", "ambiguous");
    check("7GB", "write 7GiB");
    check("7TB", "write 7TiB");
    check("18446744073709551616", "too large");
    check("18014398509481984k", "too large");
    check(
        "36028797018963968s",
        "at most 18,446,744,073,709,551,615 bytes",
    );
    check("99999999999GB", "too large");
}

#[test]
fn shifts_carry_a_sign_or_none() {
    let check = |text: &str, bytes: i64| assert_eq!(parse_shift(text), Ok(bytes), "{text}");
    check("+1s", 512);
    check("1s", 512);
    check("-4k", -4_096);
    check("-0", 0);
    check("9223372036854775807", i64::MAX);
    check("-9223372036854775808", i64::MIN);
    for text in ["+9223372036854775808", "-9223372036854775809", "8388608t"] {
        assert!(
            matches!(parse_shift(text), Err(SizeError::Overflow { .. })),
            "{text}"
        );
    }
    for text in ["", "+", "-", "+-1", "--1", "- 1", "+1MB"] {
        assert!(parse_shift(text).is_err(), "{text}");
    }
}

#[test]
fn ranges_run_forward() {
    assert_eq!(parse_range("0-1M"), Ok((Bytes(0), Bytes(1 << 20))));
    assert_eq!(parse_range("34s-48s"), Ok((Bytes(17_408), Bytes(24_576))));
    for text in ["", "-", "1-", "-1", "4k", "-1-2"] {
        assert!(
            matches!(parse_range(text), Err(SizeError::RangeShape { .. })),
            "{text}"
        );
    }
    for text in ["1-1", "1k-1023", "1s-0"] {
        assert!(
            matches!(parse_range(text), Err(SizeError::RangeOrder { .. })),
            "{text}"
        );
    }
    assert!(parse_range("1-2-3").is_err());
    assert!(parse_range("1-2MB").is_err());
}

/// `--grid 8` is a forgotten `k`: on blocks of 8 bytes every I/O would be aligned.
#[test]
fn a_grid_below_a_sector_is_refused_with_the_likely_size() {
    for (text, meant) in [("8", "8k"), ("511", "511k"), ("4@1s", "4k"), ("0", "4k")] {
        let refused = parse_grid(text).expect_err(text);
        let SizeError::BelowSector { meant: found, .. } = &refused else {
            panic!("{text}: {refused}");
        };
        assert_eq!(found, meant, "{text}");
        assert!(parse_grid(meant).is_ok());
    }
    assert_eq!(
        parse_grid("8").expect_err("8 bytes").to_string(),
        "found `8`, which is 8 bytes: expected at least 512 bytes, a sector; write `8k` for 8,192 bytes"
    );
    assert_eq!(
        parse_grid("512").expect("a sector"),
        parse_grid("1s").expect("a sector")
    );
}

#[test]
fn grids_with_and_without_an_offset() {
    let check = |text: &str, shown: &str| {
        assert_eq!(parse_grid(text).expect(text).to_string(), shown);
    };
    check("4k", "4 KiB at offset 0");
    check("8k@1024", "8 KiB at offset 1 KiB (2 sectors)");
    check("4k@7s", "4 KiB at offset 3,584 B (7 sectors)");
    for text in ["4k@4k", "4k@9s"] {
        assert!(
            matches!(parse_grid(text), Err(SizeError::Grid { .. })),
            "{text}"
        );
    }
    for text in ["", "@", "4k@", "@7s", "4k@7s@1", "4KB", "4k@-1"] {
        assert!(parse_grid(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_is_a_panic(text in prop_oneof![any::<String>(), "[-+0-9.kKMiBs@ ]{0,24}"]) {
        let _ = (parse_size(&text), parse_shift(&text), parse_range(&text), parse_grid(&text));
    }

    #[test]
    fn shown_sizes_read_back(shift in 0_u32..64, value in any::<u64>()) {
        // PiB and EiB are shown but not typed, hence below 2^50.
        let bytes = Bytes((value >> shift) % (1 << 50));
        let typed = bytes.to_string().replace([',', ' '], "");
        prop_assert_eq!(parse_size(typed.strip_suffix('B').filter(|t| !t.ends_with('i')).unwrap_or(&typed)), Ok(bytes));
    }
}
