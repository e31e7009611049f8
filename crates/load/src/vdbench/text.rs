//! From the letters of a Vdbench parameter file to parameters: comments, `eof`, `include=`, substitution, quotes, text
//! after a blank, continued lines, and commas within parentheses.
//!
//! The rules are those of Vdbench 5.04, with one difference: its silent cases (a parenthesis that is never closed, a
//! quote without its end) are errors here.

use std::sync::Arc;

use super::value::ParameterValue;
use crate::job_file::{FileLine, JobFileError};
use plumb_geometry::SmallSort;

/// Most parameters in a file, those of included files among them.
const PARAMETERS_MAX: usize = 32_768;

/// A parameter: `keyword=value`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parameter {
    pub place: FileLine,
    /// In small letters, as it was written: perhaps only the beginning of the word.
    pub keyword: String,
    pub value: ParameterValue,
}

/// A letter, and whether quotes protect it from being a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub sign: char,
    pub is_quoted: bool,
}

impl Letter {
    fn is(self, sign: char) -> bool {
        self.sign == sign && !self.is_quoted
    }
}

/// Letters without the marks of quotes.
pub(super) fn plain(letters: &[Letter]) -> String {
    letters.iter().map(|letter| letter.sign).collect()
}

/// Answers `include=NAME`: the name of the file, and its text.
pub type Include<'a> = dyn FnMut(&str) -> Result<(String, String), JobFileError> + 'a;

/// A line that says something, trimmed, after substitution.
struct ParameterLine {
    place: FileLine,
    text: String,
}

/// Parameters of a file, in order.
pub(super) fn parameters(
    name: &str,
    text: &str,
    substitutions: &[(String, String)],
    include: &mut Include<'_>,
) -> Result<Vec<Parameter>, JobFileError> {
    let mut lines = Vec::new();
    for line in lines_of(name, text, substitutions)? {
        match line.text.strip_prefix("include=") {
            Some(other) => {
                let (other, text) =
                    include(other.trim()).map_err(|error| at(&line.place, error))?;
                for inner in lines_of(&other, &text, substitutions)? {
                    if inner.text.starts_with("include=") {
                        return Err(JobFileError::Shape {
                            place: inner.place,
                            found: format!("`{}` in an included file", inner.text),
                            expected: "includes in the first file alone",
                        });
                    }
                    lines.push(inner);
                }
            }
            None => lines.push(line),
        }
    }
    let mut parameters = Vec::new();
    let mut lines = lines.into_iter();
    while let Some(first) = lines.next() {
        let mut letters = with_places(&first)?;
        while letters.last().is_some_and(|(letter, _)| letter.is(',')) {
            let Some(next) = lines.next() else { break };
            letters.extend(with_places(&next)?);
        }
        split(&letters, &first.place, &mut parameters)?;
        if parameters.len() > PARAMETERS_MAX {
            return Err(JobFileError::Shape {
                place: first.place,
                found: format!("more than {PARAMETERS_MAX} parameters"),
                expected: "fewer",
            });
        }
    }
    Ok(parameters)
}

/// An error of an included file that has no place yet gets that of the line that names it.
fn at(place: &FileLine, error: JobFileError) -> JobFileError {
    match error {
        JobFileError::Unreadable { path, source } => JobFileError::Unreadable {
            path: format!("{place}: include={path}"),
            source,
        },
        JobFileError::TooLong { path } => JobFileError::TooLong {
            path: format!("{place}: include={path}"),
        },
        other => other,
    }
}

fn lines_of(
    name: &str,
    text: &str,
    substitutions: &[(String, String)],
) -> Result<Vec<ParameterLine>, JobFileError> {
    let file: Arc<str> = Arc::from(name);
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("eof") {
            break;
        }
        if line.is_empty() || line.starts_with(['/', '#', '*']) {
            continue;
        }
        let place = FileLine {
            file: Arc::clone(&file),
            line: at + 1,
        };
        let text = substituted(line, substitutions, &place)?;
        lines.push(ParameterLine { place, text });
    }
    Ok(lines)
}

/// The line with values for `$name` and `!name`, the longest name first.
fn substituted(
    line: &str,
    substitutions: &[(String, String)],
    place: &FileLine,
) -> Result<String, JobFileError> {
    let mut line = line.to_owned();
    let mut by_length: Vec<&(String, String)> = substitutions.iter().collect();
    by_length.small_sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, value) in by_length {
        for mark in ['$', '!'] {
            line = line.replace(&format!("{mark}{name}"), value);
        }
    }
    let Some(missing) = ["=$", "=!"].iter().find_map(|mark| line.find(mark)) else {
        return Ok(line);
    };
    let name = &line[missing + 1..];
    let end = name[1..]
        .find(|sign: char| !sign.is_alphanumeric() && sign != '_')
        .map_or(name.len(), |end| end + 1);
    Err(JobFileError::Shape {
        place: place.clone(),
        found: format!("`{}` without a value", &name[..end]),
        expected: "a value for it: --set NAME=VALUE",
    })
}

/// The letters up to the first blank, quotes resolved.
fn with_places(line: &ParameterLine) -> Result<Vec<(Letter, FileLine)>, JobFileError> {
    let mut letters = Vec::new();
    let mut is_quoted = false;
    for sign in line.text.chars() {
        match sign {
            '"' => is_quoted = !is_quoted,
            ' ' | '\t' if !is_quoted => return Ok(letters),
            sign => letters.push((Letter { sign, is_quoted }, line.place.clone())),
        }
    }
    if is_quoted {
        return Err(JobFileError::Shape {
            place: line.place.clone(),
            found: "a quotation mark without its second".to_owned(),
            expected: "both in one line",
        });
    }
    Ok(letters)
}

/// Splits at commas outside of parentheses.
fn split(
    letters: &[(Letter, FileLine)],
    place: &FileLine,
    into: &mut Vec<Parameter>,
) -> Result<(), JobFileError> {
    let mut depth = 0_usize;
    let mut begin = 0;
    for (at, (letter, place)) in letters.iter().enumerate() {
        if letter.is('(') {
            depth += 1;
        } else if letter.is(')') {
            depth = depth
                .checked_sub(1)
                .ok_or_else(|| unmatched(place, "`)` without a `(` before it"))?;
        } else if letter.is(',') && depth == 0 {
            into.push(parameter(&letters[begin..at], place)?);
            begin = at + 1;
        }
    }
    if depth > 0 {
        let open = letters[begin..].first().map_or(place, |(_, place)| place);
        return Err(unmatched(open, "`(` without its `)`"));
    }
    // A comma at the end of the file has nothing behind it.
    if begin < letters.len() {
        into.push(parameter(&letters[begin..], place)?);
    }
    Ok(())
}

fn unmatched(place: &FileLine, found: &str) -> JobFileError {
    JobFileError::Shape {
        place: place.clone(),
        found: found.to_owned(),
        expected: "parentheses in pairs, as in forthreads=(1,2,4)",
    }
}

fn parameter(letters: &[(Letter, FileLine)], place: &FileLine) -> Result<Parameter, JobFileError> {
    let place = letters.first().map_or(place, |(_, place)| place).clone();
    let letters: Vec<Letter> = letters.iter().map(|(letter, _)| *letter).collect();
    let Some(equals) = letters.iter().position(|letter| letter.is('=')) else {
        let found = match letters.is_empty() {
            true => "nothing between two commas".to_owned(),
            false => format!("`{}`", plain(&letters)),
        };
        return Err(JobFileError::Shape {
            place,
            found,
            expected: "a parameter: KEYWORD=VALUE",
        });
    };
    let keyword = plain(&letters[..equals]).to_lowercase();
    if keyword.chars().count() < 2 {
        return Err(JobFileError::Shape {
            place,
            found: format!("keyword `{keyword}`"),
            expected: "at least its first 2 letters",
        });
    }
    let value = ParameterValue::read(&letters[equals + 1..], &place)?;
    Ok(Parameter {
        place,
        keyword,
        value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, substitutions: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let substitutions: Vec<_> = substitutions.iter().map(own).collect();
        let mut include = |name: &str| match name {
            "other" => Ok(("other".to_owned(), "wd=inner\n* no\n".to_owned())),
            "nested" => Ok(("nested".to_owned(), "\ninclude=other\n".to_owned())),
            _ => Err(JobFileError::Unreadable {
                path: name.to_owned(),
                source: std::io::Error::from(std::io::ErrorKind::NotFound),
            }),
        };
        let read = parameters("p", text, &substitutions, &mut include);
        let shown = |parameter: Parameter| {
            format!(
                "{} {}={}",
                parameter.place,
                parameter.keyword,
                parameter.value.shown()
            )
        };
        read.map(|all| all.into_iter().map(shown).collect())
            .map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(
            read(text, &[]),
            Ok(expected.iter().map(|&word| word.to_owned()).collect()),
            "{text:?}"
        );
    }

    #[track_caller]
    fn refuses(text: &str, expected: &str) {
        assert_eq!(read(text, &[]), Err(expected.to_owned()), "{text:?}");
    }

    #[test]
    fn lines_say_something_or_nothing() {
        check(
            "* a\n# b\n/ c\n\n  sd=one,th=3\n",
            &["p:5 sd=one", "p:5 th=3"],
        );
        check("sd=one\neof\nsd=two", &["p:1 sd=one"]);
        check("sd=one\n  eofnever\nsd=two", &["p:1 sd=one"]);
        check("SD=One", &["p:1 sd=One"]);
    }

    #[test]
    fn text_after_a_blank_is_ignored() {
        check("sd=one,th=3 and more, of=512", &["p:1 sd=one", "p:1 th=3"]);
        check("sd=one, of=512\nth=2", &["p:1 sd=one", "p:2 th=2"]);
    }

    #[test]
    fn a_comma_at_the_end_goes_on() {
        check(
            "sd=one,\n* comment\n\nth=3,\nof=512",
            &["p:1 sd=one", "p:4 th=3", "p:5 of=512"],
        );
        check("sd=one,", &["p:1 sd=one"]);
    }

    #[test]
    fn quotes_protect_signs() {
        check("sd=\"a b,c=d-e\",th=1", &["p:1 sd=a b,c=d-e", "p:1 th=1"]);
        check("sd=(\"a-1\",b)", &["p:1 sd=(a-1,b)"]);
        refuses(
            "sd=\"a",
            "p:1: found a quotation mark without its second, expected both in one line",
        );
    }

    #[test]
    fn includes_are_one_level_deep() {
        check(
            "sd=a\ninclude=other\nwd=b",
            &["p:1 sd=a", "other:1 wd=inner", "p:3 wd=b"],
        );
        refuses(
            "include=nested",
            "nested:2: found `include=other` in an included file, expected includes in the first file alone",
        );
        refuses("sd=a\ninclude=no", "p:2: include=no: cannot be read");
    }

    #[test]
    fn names_are_substituted() {
        let all = read(
            "sd=a,lun=$disk,th=!t\nsd=b,lun=$disk2",
            &[("disk", "X"), ("disk2", "Y"), ("t", "4")],
        );
        let expected = ["p:1 sd=a", "p:1 lun=X", "p:1 th=4", "p:2 sd=b", "p:2 lun=Y"];
        assert_eq!(all, Ok(expected.map(str::to_owned).to_vec()));
        refuses(
            "sd=a,lun=$disk,th=2",
            "p:1: found `$disk` without a value, expected a value for it: --set NAME=VALUE",
        );
        check("* lun=$disk\nsd=a", &["p:2 sd=a"]);
    }

    #[test]
    fn shapes_that_are_no_parameters() {
        refuses(
            "sd=a,,th=1",
            "p:1: found nothing between two commas, expected a parameter: KEYWORD=VALUE",
        );
        refuses(
            "sd=a,\nthreads",
            "p:2: found `threads`, expected a parameter: KEYWORD=VALUE",
        );
        refuses(
            "sd=a,\nt=3",
            "p:2: found keyword `t`, expected at least its first 2 letters",
        );
        let pairs = "expected parentheses in pairs, as in forthreads=(1,2,4)";
        refuses(
            "rd=a,forth=(1,2",
            &format!("p:1: found `(` without its `)`, {pairs}"),
        );
        refuses(
            "rd=a,forth=1)",
            &format!("p:1: found `)` without a `(` before it, {pairs}"),
        );
    }
}
