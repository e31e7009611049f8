//! The fuzzer's dictionaries of trace formats, and the list of real traces from which it starts.

use std::path::Path;

use plumb_trace::format::FORMATS;

use super::{FilesToWrite, MARK};

/// Numbers and marks at the borders, which every format of text is given.
const BORDERS: [&str; 28] = [
    "0",
    "-1",
    "1",
    "63",
    "512",
    "4096",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "4294967295",
    "2147483648",
    "340282366920938463463374607431768211455",
    "1e308",
    "NaN",
    "inf",
    "0x",
    "0xffffffffffffffff",
    "0.000000001",
    "9223372036.854775807",
    "1266874889.709551615",
    ".",
    ",",
    ";",
    " ",
    "\n",
    "\r\n",
    "\u{feff}",
];

/// Adds `fuzz/dictionaries/TARGET.dict` for each format of text, one with the words of all for the sniffers, and
/// `fuzz/real-traces`.
pub fn add(files: &mut FilesToWrite) {
    let mut all: Vec<&str> = Vec::new();
    let mut real = format!("# {MARK}: targets, and their files in the folder of real traces.\n");
    for format in FORMATS {
        let (target, about) = (format.fuzz_target(), &format.about);
        for path in about.real {
            real.push_str(&format!("{target} {path}\n"));
        }
        if about.words.is_empty() {
            continue;
        }
        let words = about.words.iter().chain(&BORDERS).copied();
        insert(&target, &format!("`{}`", format.name), words, files);
        all.extend(
            about
                .words
                .iter()
                .filter(|word| !all.contains(word))
                .collect::<Vec<_>>(),
        );
    }
    insert("sniff", "all formats of text", all.into_iter(), files);
    files.insert("fuzz/real-traces".into(), real);
}

fn insert<'a>(
    target: &str,
    of: &str,
    words: impl Iterator<Item = &'a str>,
    files: &mut FilesToWrite,
) {
    let mut text = format!("# {MARK}: the words of {of}.\n");
    for word in words {
        text.push_str(&format!("\"{}\"\n", escaped(word)));
    }
    let path = Path::new("fuzz/dictionaries")
        .join(target)
        .with_extension("dict");
    files.insert(path, text);
}

/// A word as libFuzzer reads it: all but visible signs of ASCII as `\xNN`, byte by byte.
fn escaped(word: &str) -> String {
    let mut text = String::new();
    for byte in word.bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn words_as_the_fuzzer_reads_them() {
        assert_eq!(escaped("IO Time (µs)"), "IO Time (\\xc2\\xb5s)");
        assert_eq!(escaped("a\"\\\n"), "a\\\"\\\\\\x0a");
    }
}
