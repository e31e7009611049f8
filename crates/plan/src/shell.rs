//! Words as a shell takes them. Names come out of labels and dumps of other hosts, and must not become commands.

use std::borrow::Cow;

/// A word in single quotes, unless it needs none.
#[must_use]
pub fn word(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// Words with blanks between them.
#[must_use]
pub fn join_words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The last part of a path, as a name for files beside it; `disk` where nothing is left.
#[must_use]
pub fn file_name(path: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "_.-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let last: String = path
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or("")
        .chars()
        .map(plain)
        .collect();
    if last.is_empty() || last.starts_with('-') {
        format!("disk{last}")
    } else {
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gives_back_what_was_quoted() {
        for name in [
            "/dev/sda1",
            "",
            "it's",
            "a b",
            "$(reboot)",
            "`x`;y",
            "-n",
            "tab\there",
            "new\nline",
            "ü",
        ] {
            let script = format!("printf %s {}", word(name));
            let done = std::process::Command::new("sh")
                .args(["-c", &script])
                .output()
                .expect("sh runs");
            assert_eq!(String::from_utf8_lossy(&done.stdout), name, "{script}");
        }
    }

    #[test]
    fn names_of_files_hold_nothing_odd() {
        for (path, name) in [
            ("/dev/sdb", "sdb"),
            ("/dev/md/dsk/d1", "d1"),
            ("", "disk"),
            ("/dev/-n", "disk-n"),
            ("a b/", "a-b"),
        ] {
            assert_eq!(file_name(path), name);
        }
    }
}
