//! From the letters of a fio job file to options: sections, comments, and variables of the environment.

use std::sync::Arc;

use crate::job_file::{FileLine, JobFileError};

/// Most options of a file.
const OPTIONS_MAX: usize = 32_768;

/// A line of a job file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JobLine {
    /// `[name]`
    Section { place: FileLine, name: String },
    /// `name=value`, or `name` alone.
    Option(Setting),
}

/// An option, as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setting {
    pub place: FileLine,
    pub name: String,
    pub value: Option<String>,
}

/// The lines of a file. `variable` gives the value of one of the environment.
pub(super) fn lines(
    file: &str,
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<JobLine>, JobFileError> {
    let file: Arc<str> = Arc::from(file);
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let place = FileLine {
            file: Arc::clone(&file),
            line: at + 1,
        };
        let read = match line.strip_prefix('[') {
            Some(rest) => section(rest, place)?,
            None => JobLine::Option(setting(line, place, variable)?),
        };
        if lines.is_empty() && matches!(read, JobLine::Option(_)) {
            return Err(shape(
                at + 1,
                &file,
                format!("`{line}` before any section"),
                "[global] or [NAME] before it",
            ));
        }
        lines.push(read);
        if lines.len() > OPTIONS_MAX {
            return Err(shape(
                at + 1,
                &file,
                format!("more than {OPTIONS_MAX} options"),
                "fewer",
            ));
        }
    }
    Ok(lines)
}

fn shape(line: usize, file: &Arc<str>, found: String, expected: &'static str) -> JobFileError {
    JobFileError::Shape {
        place: FileLine {
            file: Arc::clone(file),
            line,
        },
        found,
        expected,
    }
}

fn section(rest: &str, place: FileLine) -> Result<JobLine, JobFileError> {
    match rest.split_once(']') {
        Some((name, "")) if !name.trim().is_empty() => Ok(JobLine::Section {
            place,
            name: name.trim().to_owned(),
        }),
        _ => Err(JobFileError::Shape {
            place,
            found: format!("`[{rest}`"),
            expected: "a section: [NAME]",
        }),
    }
}

fn setting(
    line: &str,
    place: FileLine,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Setting, JobFileError> {
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (line, None),
    };
    if line.starts_with("include ") {
        let why = "reads another file";
        let (found, owner) = (line.to_owned(), "the file".to_owned());
        return Err(JobFileError::Refused {
            place,
            found,
            owner,
            why,
        });
    }
    if name.is_empty() || name.contains(char::is_whitespace) {
        let found = format!("`{line}`");
        return Err(JobFileError::Shape {
            place,
            found,
            expected: "an option: NAME=VALUE or NAME",
        });
    }
    let value = value
        .map(|value| expanded(value, &place, variable))
        .transpose()?;
    Ok(Setting {
        place,
        name: name.to_owned(),
        value,
    })
}

/// A value with the environment's text for `${NAME}`.
fn expanded(
    value: &str,
    place: &FileLine,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, JobFileError> {
    let mut whole = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        whole.push_str(&rest[..at]);
        let name = rest[at + 1..]
            .strip_prefix('{')
            .and_then(|inside| inside.split_once('}'));
        let known = name.and_then(|(name, behind)| Some((variable(name)?, behind)));
        let Some((known, behind)) = known else {
            return Err(JobFileError::Shape {
                place: place.clone(),
                found: format!("`{}` without a value", &rest[at..]),
                expected: "${NAME} of a variable that is set",
            });
        };
        whole.push_str(&known);
        rest = behind;
    }
    Ok(whole + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let variable = |name: &str| (name == "DISK").then(|| "/dev/x".to_owned());
        let shown = |line: JobLine| match line {
            JobLine::Section { place, name } => format!("{place} [{name}]"),
            JobLine::Option(Setting {
                place,
                name,
                value: Some(value),
            }) => format!("{place} {name}={value}"),
            JobLine::Option(Setting {
                place,
                name,
                value: None,
            }) => format!("{place} {name}"),
        };
        let lines = lines("j", text, &variable).map_err(|error| error.to_string())?;
        Ok(lines.into_iter().map(shown).collect())
    }

    #[test]
    fn sections_options_and_comments() {
        let read = read("; a\n# b\n[global]\n bs = 4k \nthread\n\n[one two]\nfilename=${DISK}1\n");
        let expected = [
            "j:3 [global]",
            "j:4 bs=4k",
            "j:5 thread",
            "j:7 [one two]",
            "j:8 filename=/dev/x1",
        ];
        assert_eq!(read, Ok(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn shapes_that_are_none() {
        for (text, expected) in [
            (
                "bs=4k",
                "j:1: found `bs=4k` before any section, expected [global] or [NAME] before it",
            ),
            ("\n[a", "j:2: found `[a`, expected a section: [NAME]"),
            ("[]", "j:1: found `[]`, expected a section: [NAME]"),
            ("[a] x", "j:1: found `[a] x`, expected a section: [NAME]"),
            (
                "[a]\nr w=read",
                "j:2: found `r w=read`, expected an option: NAME=VALUE or NAME",
            ),
            (
                "[a]\n=3",
                "j:2: found `=3`, expected an option: NAME=VALUE or NAME",
            ),
            (
                "[a]\nsize=${NO}",
                "j:2: found `${NO}` without a value, expected ${NAME} of a variable that is set",
            ),
            (
                "[a]\nsize=$ncpus",
                "j:2: found `$ncpus` without a value, expected ${NAME} of a variable that is set",
            ),
            (
                "[a]\ninclude other.fio",
                "j:2: found `include other.fio` of the file, which reads another file; expected the file without it",
            ),
        ] {
            assert_eq!(read(text), Err(expected.to_owned()), "{text:?}");
        }
    }
}
