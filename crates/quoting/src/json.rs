//! JSON for programs and for terminals: a string value holds no hidden character. Each is the escape that text has, so
//! that `jq -r` prints nothing that a terminal obeys.
//!
//! All documents have one reader and one writer here: each reader and writer of `serde_json` would be compiled once more for each type of
//! a finding.

use std::io::{self, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, PrettyFormatter};

use crate::visible::visible;

/// A document on several lines, indented.
///
/// # Errors
/// When a value cannot be written as JSON.
pub fn pretty(document: &impl Serialize) -> Result<String, serde_json::Error> {
    written(document, Layout::new(true, true))
}

/// A document on one line.
///
/// # Errors
/// When a value cannot be written as JSON.
pub fn line(document: &impl Serialize) -> Result<String, serde_json::Error> {
    written(document, Layout::new(false, true))
}

/// A value on one line for [`from_slice`]: hidden characters stay as they are.
///
/// # Errors
/// When a value cannot be written as JSON.
pub fn exact(value: &impl Serialize) -> Result<String, serde_json::Error> {
    written(value, Layout::new(false, false))
}

/// Reads a document.
///
/// # Errors
/// When it is no JSON, or has another shape.
pub fn from_slice<T: DeserializeOwned>(document: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(document)
}

fn written(document: &impl Serialize, layout: Layout) -> Result<String, serde_json::Error> {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, layout);
    document.serialize(&mut serializer)?;
    String::from_utf8(out).map_err(serde::ser::Error::custom)
}

/// The layout of all documents.
struct Layout {
    /// Of documents on several lines.
    lines: Option<PrettyFormatter<'static>>,
    /// Whether strings are made visible.
    is_visible: bool,
}

impl Layout {
    fn new(has_lines: bool, is_visible: bool) -> Layout {
        Layout {
            lines: has_lines.then(PrettyFormatter::new),
            is_visible,
        }
    }
}

/// Hands a call on to the layout inside.
macro_rules! as_inside {
    ($($name:ident($($arg:ident: $kind:ty),*);)*) => {
        $(fn $name<W: ?Sized + Write>(&mut self, out: &mut W, $($arg: $kind),*) -> io::Result<()> {
            match &mut self.lines {
                Some(lines) => lines.$name(out, $($arg),*),
                None => CompactFormatter.$name(out, $($arg),*),
            }
        })*
    };
}

impl Formatter for Layout {
    as_inside! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if !self.is_visible {
            return out.write_all(fragment.as_bytes());
        }
        let shown = visible(fragment);
        if shown.len() == fragment.len() {
            return out.write_all(fragment.as_bytes());
        }
        // The backslashes of escapes; those of the text itself come as escapes of JSON.
        out.write_all(shown.replace('\\', r"\\").as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        if !self.is_visible {
            return CompactFormatter.write_char_escape(out, escape);
        }
        let control = match escape {
            CharEscape::Quote | CharEscape::ReverseSolidus | CharEscape::Solidus => {
                return CompactFormatter.write_char_escape(out, escape);
            }
            CharEscape::Backspace => 0x08,
            CharEscape::FormFeed => 0x0c,
            CharEscape::LineFeed => b'\n',
            CharEscape::CarriageReturn => b'\r',
            CharEscape::Tab => b'\t',
            CharEscape::AsciiControl(control) => control,
        };
        write!(out, r"\\u{{{control:x}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_hold_no_hidden_character() {
        let name = "a\u{202e}\x1b]0;x\x07\n\"\\u{1b} \u{9b}ü";
        for text in [
            pretty(&serde_json::json!({ name: [name, 1, null] })),
            line(&serde_json::json!({ name: [name, 1, null] })),
        ] {
            let text = text.expect("JSON");
            let shown = r#"a\u{202e}\u{1b}]0;x\u{7}\u{a}"\u{1b} \u{9b}ü"#;
            let found: serde_json::Value = from_slice(text.as_bytes()).expect("valid JSON");
            assert_eq!(
                found,
                serde_json::json!({ shown: [shown, 1, null] }),
                "{text}"
            );
            assert!(!text.contains(|letter| crate::is_hidden(letter) && letter != '\n'));
        }
    }

    #[test]
    fn other_documents_are_as_before() {
        let document = serde_json::json!({"a": [1, {"b": "c\\d\"e/"}], "f": {}, "g": [], "h": 1.5});
        assert_eq!(
            pretty(&document).expect("JSON"),
            serde_json::to_string_pretty(&document).expect("JSON")
        );
        assert_eq!(
            line(&document).expect("JSON"),
            serde_json::to_string(&document).expect("JSON")
        );
    }

    #[test]
    fn exact_strings_come_back() {
        let name = "a\u{202e}\x1b]0;x\x07\n\"\\u{1b} \u{9b}ü";
        let text = exact(&name).expect("JSON");
        assert_eq!(text, serde_json::to_string(name).expect("JSON"));
        assert_eq!(
            from_slice::<String>(text.as_bytes()).expect("valid JSON"),
            name
        );
    }
}
