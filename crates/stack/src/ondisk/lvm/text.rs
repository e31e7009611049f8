//! The text of a volume group: `name = value`, `name { … }`, comments from `#` to the end of the line.

/// Sections within sections that are followed; LVM's have four.
const DEPTH_MAX: usize = 16;

/// The value after a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LvmValue {
    Number(i64),
    Text(String),
    List(Vec<LvmValue>),
    Section(Section),
}

/// Names and values in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Section(Vec<(String, LvmValue)>);

impl IntoIterator for Section {
    type Item = (String, LvmValue);
    type IntoIter = std::vec::IntoIter<(String, LvmValue)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Section {
    pub(crate) fn get(&self, name: &str) -> Option<&LvmValue> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    /// A number that is not negative.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            LvmValue::Number(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            LvmValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn list(&self, name: &str) -> &[LvmValue] {
        match self.get(name) {
            Some(LvmValue::List(list)) => list,
            _ => &[],
        }
    }

    /// The sections in the section of this name.
    pub(crate) fn sections(&self, name: &str) -> impl Iterator<Item = (&str, &Section)> {
        let found = match self.get(name) {
            Some(LvmValue::Section(section)) => section.0.as_slice(),
            _ => &[],
        };
        found.iter().filter_map(|(name, value)| match value {
            LvmValue::Section(section) => Some((name.as_str(), section)),
            _ => None,
        })
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        match self.get(name)? {
            LvmValue::Section(section) => Some(section),
            _ => None,
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Section, String> {
    let mut parser = Parser {
        rest: text,
        len: text.len(),
    };
    let section = parser.section(0)?;
    match parser.peek() {
        None => Ok(section),
        Some(_) => Err(parser.expected("the end")),
    }
}

struct Parser<'a> {
    rest: &'a str,
    len: usize,
}

impl<'a> Parser<'a> {
    /// Names and values up to the end or a closing brace, which is left.
    fn section(&mut self, depth: usize) -> Result<Section, String> {
        let mut section = Section::default();
        if depth > DEPTH_MAX {
            return Err(self.expected("fewer sections within sections"));
        }
        while let Some(next) = self.peek().filter(|next| *next != '}') {
            if !is_name(next) {
                return Err(self.expected("a name"));
            }
            let name = self.while_all(is_name).to_owned();
            let value = match self.peek() {
                Some('{') => {
                    self.step();
                    let inner = self.section(depth + 1)?;
                    self.take('}')?;
                    LvmValue::Section(inner)
                }
                Some('=') => {
                    self.step();
                    self.value()?
                }
                _ => return Err(self.expected("= or {")),
            };
            section.0.push((name, value));
        }
        Ok(section)
    }

    /// Lists hold no lists.
    fn value(&mut self) -> Result<LvmValue, String> {
        if self.peek() != Some('[') {
            return self.scalar();
        }
        self.step();
        let mut list = Vec::new();
        while self.peek() != Some(']') {
            list.push(self.scalar()?);
            match self.peek() {
                Some(',') => self.step(),
                Some(']') => {}
                _ => return Err(self.expected(", or ]")),
            }
        }
        self.step();
        Ok(LvmValue::List(list))
    }

    fn scalar(&mut self) -> Result<LvmValue, String> {
        match self.peek() {
            Some('"') => self.quoted().map(LvmValue::Text),
            Some('0'..='9' | '-' | '+') => {
                let number =
                    self.while_all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
                // Fractions are written by nothing that places bytes.
                Ok(number
                    .parse()
                    .map_or_else(|_| LvmValue::Text(number.to_owned()), LvmValue::Number))
            }
            _ => Err(self.expected("a value")),
        }
    }

    fn quoted(&mut self) -> Result<String, String> {
        self.step();
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, next)) = chars.next() {
            match next {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(text);
                }
                '\\' => text.extend(chars.next().map(|(_, escaped)| escaped)),
                next => text.push(next),
            }
        }
        Err(self.expected("the end of a text"))
    }

    /// The next character that means something.
    fn peek(&mut self) -> Option<char> {
        loop {
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix('#') {
                Some(comment) => self.rest = comment.find('\n').map_or("", |end| &comment[end..]),
                None => return self.rest.chars().next(),
            }
        }
    }

    /// Leaves the character that was peeked at; all of them are one byte long.
    fn step(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    fn take(&mut self, wanted: char) -> Result<(), String> {
        if self.peek() == Some(wanted) {
            self.step();
            return Ok(());
        }
        Err(self.expected(&wanted.to_string()))
    }

    fn while_all(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (found, rest) = self.rest.split_at(end);
        self.rest = rest;
        found
    }

    fn expected(&self, what: &str) -> String {
        let found: String = self.rest.chars().take(20).collect();
        format!(
            "byte {} of the text: found {found:?}, expected {what}",
            self.len - self.rest.len()
        )
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sections_lists_and_comments() {
        let text = "vg { # a comment }\n id = \"a\\\"b\"\n n=-3\n pvs {p0{start = 2048}}\n l = [\"x\", 7]\n e=[] }\nv = 1";
        let parsed = parse(text).expect("a text");
        let vg = parsed.section("vg").expect("a section");
        assert_eq!(vg.text("id"), Some("a\"b"));
        assert_eq!(
            (vg.number("n"), vg.get("n")),
            (None, Some(&LvmValue::Number(-3)))
        );
        let starts: Vec<_> = vg
            .sections("pvs")
            .map(|(name, pv)| (name, pv.number("start")))
            .collect();
        assert_eq!(starts, [("p0", Some(2048))]);
        assert_eq!(
            vg.list("l"),
            [LvmValue::Text("x".to_owned()), LvmValue::Number(7)]
        );
        assert_eq!(parsed.number("v"), Some(1));
    }

    #[test]
    fn malformed_text_is_reported_with_its_line() {
        for (text, at) in [
            ("vg {", 4),
            ("vg }", 3),
            ("a = [1 2]", 7),
            ("a = \"x", 5),
            ("}", 0),
            ("é = 1", 0),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(&format!("byte {at} ")), "{text}: {error}");
        }
        let deep = "a{".repeat(100_000);
        assert!(parse(&deep).is_err());
    }
}
