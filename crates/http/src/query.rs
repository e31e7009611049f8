//! The parameters of a request, as a browser or `curl` writes them: `device=sda&from=2026-11-01`.
//!
//! `%` and two hexadecimal digits are a byte, and `+` is a space, because forms and `URLSearchParams` write one. A parameter that the
//! question does not have is an error: a misspelled `form=` would otherwise change the answer silently.

use crate::answer::RequestFault;

/// Longest text of a request that an error repeats.
const SHOWN_MAX: usize = 80;

/// The parameters of a request, each at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str, known: &[&str]) -> Result<Query, RequestFault> {
        let mut query = Query::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded(name, "query")?;
            let expected = || match known {
                [] => "no parameter".to_owned(),
                known => format!("one of {}", known.join(", ")),
            };
            if !known.contains(&name.as_str()) {
                return Err(RequestFault {
                    place: "query".to_owned(),
                    found: format!("parameter `{}`", printable(&name)),
                    expected: expected(),
                });
            }
            let value = decoded(value, &format!("parameter `{name}`"))?;
            if query.0.iter().any(|(other, _)| *other == name) {
                return Err(RequestFault::of_parameter(
                    &name,
                    &value,
                    "the parameter once",
                ));
            }
            query.0.push((name, value));
        }
        Ok(query)
    }

    /// The value of a parameter; `None` also for an empty one, which forms send for a field that is not filled in.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let own = self.0.iter().find(|(other, _)| other == name);
        own.map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// The same question at a path with other values of some parameters, as a link.
    #[must_use]
    pub fn link(&self, path: &str, changed: &[(&str, &str)]) -> String {
        let is_kept = |name: &String| changed.iter().all(|(other, _)| other != name);
        let kept = self.0.iter().filter(|(name, _)| is_kept(name));
        let kept = kept.map(|(name, value)| (name.as_str(), value.as_str()));
        let mut link = path.to_owned();
        for (at, (name, value)) in kept.chain(changed.iter().copied()).enumerate() {
            link.push(if at == 0 { '?' } else { '&' });
            link += name;
            link.push('=');
            encode(value, &mut link);
        }
        link
    }
}

/// The text that a part of a query stands for.
fn decoded(text: &str, place: &str) -> Result<String, RequestFault> {
    let fault = |found: &str, expected: &str| RequestFault {
        place: place.to_owned(),
        found: printable(found),
        expected: expected.to_owned(),
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        bytes.push(match first {
            b'+' => b' ',
            b'%' => {
                let digit = |at: usize| char::from(*behind.get(at)?).to_digit(16);
                let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                    return Err(fault(text, "two hexadecimal digits after each %"));
                };
                rest = &behind[2..];
                (high * 16 + low) as u8
            }
            other => *other,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| fault(text, "text in UTF-8"))?;
    match text.chars().any(char::is_control) {
        true => Err(fault(&text, "text without control characters")),
        false => Ok(text),
    }
}

/// Adds a text as a part of a query.
fn encode(text: &str, to: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                to.push(char::from(byte));
            }
            other => *to += &format!("%{other:02X}"),
        }
    }
}

/// The begin of a text from a request, for an error.
pub(crate) fn printable(text: &str) -> String {
    text.escape_debug().take(SHOWN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 2] = ["device", "from"];

    #[test]
    fn parameters_are_decoded() {
        for (text, device, from) in [
            ("", None, None),
            ("device=sda", Some("sda"), None),
            ("device=sda&from=", Some("sda"), None),
            (
                "&from=2026-11-01T08:00%2B01:00&",
                None,
                Some("2026-11-01T08:00+01:00"),
            ),
            (
                "from=a+b%20c&device=t10.ATA%09x".trim_end_matches("%09x"),
                Some("t10.ATA"),
                Some("a b c"),
            ),
            ("device=%C3%BC%3D%26%2f", Some("\u{fc}=&/"), None),
            ("dev%69ce=a=b", Some("a=b"), None),
            ("device", None, None),
        ] {
            let query = Query::parse(text, &KNOWN).expect(text);
            assert_eq!(
                (query.get("device"), query.get("from")),
                (device, from),
                "{text}"
            );
        }
    }

    #[test]
    fn mistakes_have_place_found_and_expected() {
        let one_of = "one of device, from";
        let digits = "two hexadecimal digits after each %";
        for (text, place, found, expected) in [
            ("form=2026", "query", "parameter `form`", one_of),
            ("=x", "query", "parameter ``", one_of),
            ("Device=x", "query", "parameter `Device`", one_of),
            (
                "device=a&device=b",
                "parameter `device`",
                "b",
                "the parameter once",
            ),
            (
                "device=a&device",
                "parameter `device`",
                "",
                "the parameter once",
            ),
            ("device=%", "parameter `device`", "%", digits),
            ("device=%4", "parameter `device`", "%4", digits),
            ("device=%4g", "parameter `device`", "%4g", digits),
            ("device=%+1", "parameter `device`", "%+1", digits),
            (
                "device=%\u{fc}\u{fc}",
                "parameter `device`",
                "%\u{fc}\u{fc}",
                digits,
            ),
            ("dev%ce=x", "query", "dev%ce", "text in UTF-8"),
            ("device=%ff", "parameter `device`", "%ff", "text in UTF-8"),
            (
                "device=a%00b",
                "parameter `device`",
                "a\\0b",
                "text without control characters",
            ),
            (
                "device=%1b[2J",
                "parameter `device`",
                "\\u{1b}[2J",
                "text without control characters",
            ),
        ] {
            let fault = Query::parse(text, &KNOWN).expect_err(text);
            let parts = [&fault.place, &fault.found, &fault.expected];
            assert_eq!(parts, [place, found, expected], "{text}");
        }
        let fault = Query::parse("x=1", &[]).expect_err("an unknown parameter");
        assert_eq!(fault.expected, "no parameter");
        let long = format!("device=%00{}", "x".repeat(5000));
        let fault = Query::parse(&long, &KNOWN).expect_err("a control character");
        assert_eq!(fault.found.len(), SHOWN_MAX);
    }

    #[test]
    fn a_link_asks_the_same_question() {
        let query = Query::parse("device=a%26b+c%25&from=2026", &KNOWN).expect("a query");
        let link = query.link("/x", &[("from", "2026-11-01T08:00:00Z")]);
        assert_eq!(link, "/x?device=a%26b%20c%25&from=2026-11-01T08:00:00Z");
        let (_, text) = link.split_once('?').expect("a query");
        let again = Query::parse(text, &KNOWN).expect("a query");
        assert_eq!(again.get("device"), Some("a&b c%"));
        assert_eq!(again.get("from"), Some("2026-11-01T08:00:00Z"));
    }
}
