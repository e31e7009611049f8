//! JSON for programs and for terminals: a string value holds no hidden character. Each is the escape that text has, so
//! that `jq -r` prints nothing that a terminal obeys.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, PrettyFormatter};

use crate::visible::visible;

/// A document on several lines, indented.
///
/// # Errors
/// When a value cannot be written as JSON.
pub fn pretty(document: &impl Serialize) -> Result<String, serde_json::Error> {
    written(document, PrettyFormatter::new())
}

/// A document on one line.
///
/// # Errors
/// When a value cannot be written as JSON.
pub fn line(document: &impl Serialize) -> Result<String, serde_json::Error> {
    written(document, CompactFormatter)
}

fn written(document: &impl Serialize, layout: impl Formatter) -> Result<String, serde_json::Error> {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Visible { layout });
    document.serialize(&mut serializer)?;
    String::from_utf8(out).map_err(serde::ser::Error::custom)
}

/// A layout whose strings are visible.
struct Visible<F> {
    layout: F,
}

/// Hands a call on to the layout inside.
macro_rules! as_inside {
    ($($name:ident($($arg:ident: $kind:ty),*);)*) => {
        $(fn $name<W: ?Sized + Write>(&mut self, out: &mut W, $($arg: $kind),*) -> io::Result<()> {
            self.layout.$name(out, $($arg),*)
        })*
    };
}

impl<F: Formatter> Formatter for Visible<F> {
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
        let control = match escape {
            CharEscape::Quote | CharEscape::ReverseSolidus | CharEscape::Solidus => {
                return self.layout.write_char_escape(out, escape);
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
            let read: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
            assert_eq!(
                read,
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
}
