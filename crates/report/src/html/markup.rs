//! HTML that is balanced and escaped by construction: elements are closures, text and attributes pass through one
//! escape. Names of devices and processes come from traces and are hostile until shown otherwise.

use plumb_quoting::visible::visible_lines;

/// Elements without content.
const VOID: [&str; 3] = ["meta", "br", "col"];

/// A piece of HTML as it grows.
#[derive(Default)]
pub struct Markup {
    out: String,
}

/// Attributes of an element.
pub type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Markup {
    /// The text so far.
    #[must_use]
    pub fn into_string(self) -> String {
        self.out
    }

    /// Text, escaped.
    pub fn text(&mut self, text: &str) {
        escape(text, &mut self.out);
    }

    /// Markup of our own that holds nothing from outside.
    pub fn raw(&mut self, html: &'static str) {
        self.out.push_str(html);
    }

    /// An element with the output of `inside`.
    pub fn el(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        inside: impl FnOnce(&mut Markup),
    ) {
        self.open(tag, attributes);
        self.out.push('>');
        if VOID.contains(&tag) {
            return;
        }
        inside(self);
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push('>');
    }

    /// An element of the given class.
    pub fn class(&mut self, tag: &'static str, class: &str, inside: impl FnOnce(&mut Markup)) {
        self.el(tag, &[("class", class)], inside);
    }

    /// An element that holds text only.
    pub fn leaf(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.el(tag, attributes, |m| m.text(text));
    }

    /// An SVG element without content.
    pub fn shape(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.open(tag, attributes);
        self.out.push_str("/>");
    }

    fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape(value, &mut self.out);
            self.out.push('"');
        }
    }
}

/// Writes `text` so that it stays text, and hidden characters in it as escapes, as [`visible_lines`] has them.
fn escape(text: &str, out: &mut String) {
    for letter in visible_lines(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_text() {
        let mut m = Markup::default();
        m.leaf(
            "td",
            &[("title", "a\"b")],
            "<script>alert('x') & \u{202e}\u{1b}[31m</script>",
        );
        assert_eq!(
            m.into_string(),
            "<td title=\"a&quot;b\">&lt;script&gt;alert(&#39;x&#39;) &amp; \\u{202e}\\u{1b}[31m&lt;/script&gt;</td>"
        );
    }
}
