//! The configuration of a host, `/etc/plumb/config.toml`: findings that somebody accepts, until a day, for a reason.
//!
//! The file is read by hand from a table with places, and not by a derive: each error has to name the line, the word that was
//! found, and the words that were expected.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plumb_diagnose::Diagnosis;
use plumb_diagnose::accept::{self, Acceptance, Accepted, Day};
use plumb_model::rule::RULES;
use plumb_model::{Finding, RuleId};
use plumb_stack::Stack;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::failure::Failure;
use crate::inputs;

/// The file of the host.
pub const PATH: &str = "/etc/plumb/config.toml";

/// Most bytes of a file that are read.
const BYTES_MAX: u64 = 1 << 20;

/// Keys of the file.
const KEYS: [&str; 2] = ["accept", "accept_unseen"];
/// Keys of a table `[[accept]]`.
const ACCEPT_KEYS: [&str; 4] = ["rule", "device", "reason", "until"];

/// Words farther apart than this are no slip of the other.
const SIMILARITY_MIN: f64 = 0.7;

/// The findings that a host accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Findings.
    pub accept: Vec<Acceptance>,
    /// Whether layers below virtual disks are accepted as they are.
    pub accept_unseen: bool,
}

/// A mistake in the file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: found {found}, expected {expected}")]
pub struct ConfigError {
    file: String,
    line: usize,
    found: String,
    expected: String,
}

impl Config {
    /// The configuration of a file that was named, or of the host where none was named and the file is there.
    ///
    /// # Errors
    /// When a file that was named is not there, or a file has a mistake.
    pub fn read(named: Option<&Path>, of_host: bool) -> Result<Config, Failure> {
        let path = match named {
            Some(path) => path.to_owned(),
            None if of_host && is_there(Path::new(PATH)) => PathBuf::from(PATH),
            None => return Ok(Config::default()),
        };
        let (name, text) = read_text(&path)?;
        Config::parse(&name, &text).map_err(|error| Failure::failed(&error))
    }

    /// Takes accepted findings out of a diagnosis.
    pub fn apply(&self, diagnosis: &mut Diagnosis, stack: &Stack) -> Accepted {
        let mut accepted = accept::accept(diagnosis, stack, &self.accept, today());
        accepted.unseen = self.accept_unseen;
        accepted
    }

    /// Whether a finding of a device without a known stack is accepted today.
    pub fn accepts(&self, finding: &Finding) -> bool {
        let (today, stack) = (today(), Stack::default());
        let mut accepting = self.accept.iter();
        accepting.any(|one| one.accepts(&stack, finding, today))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// At its first mistake.
    pub fn parse(file: &str, text: &str) -> Result<Config, ConfigError> {
        let source = ConfigText { file, text };
        let root = source.table()?;
        let mut config = Config::default();
        for (key, value) in root.get_ref().iter() {
            match key.get_ref().as_ref() {
                "accept_unseen" => config.accept_unseen = source.truth(value)?,
                "accept" => config.accept = source.acceptances(value)?,
                other => return Err(source.unknown_key(key.span().start, other, &KEYS)),
            }
        }
        Ok(config)
    }
}

/// The name and the text of a file.
///
/// # Errors
/// If it cannot be read, or is no text.
pub fn read_text(path: &Path) -> Result<(String, String), Failure> {
    let bytes = inputs::read(path, BYTES_MAX)?;
    let name = path.display().to_string();
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        Failure::failed(&ConfigError {
            file: name.clone(),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            found: "bytes that are not UTF-8".to_owned(),
            expected: "text in TOML".to_owned(),
        })
    })?;
    Ok((name, text))
}

/// A file of another user that cannot be read is there.
pub fn is_there(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Ok(_) => true,
        Err(error) => !matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ),
    }
}

/// The text of a file with its name, for the place of a mistake.
pub struct ConfigText<'a> {
    /// Its name.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
}

impl<'a> ConfigText<'a> {
    /// The keys and values of the text.
    ///
    /// # Errors
    /// If it is not in TOML.
    pub fn table(&self) -> Result<Spanned<DeTable<'a>>, ConfigError> {
        DeTable::parse(self.text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let found = error.message().replace('\n', ", ");
            self.error(start, found, "text in TOML".to_owned())
        })
    }

    /// A value that a piece of text in quotes stands for.
    ///
    /// # Errors
    /// If the value is no text, or the text stands for none.
    pub fn read<T>(
        &self,
        value: &Spanned<DeValue<'_>>,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let read = value.get_ref().as_str().and_then(read);
        read.ok_or_else(|| self.wrong_type(value, expected))
    }

    /// The words of a list of texts.
    ///
    /// # Errors
    /// If the value is no list of texts, or `is_fitting` refuses the words.
    pub fn words(
        &self,
        value: &Spanned<DeValue<'_>>,
        expected: &str,
        is_fitting: impl Fn(&[String]) -> bool,
    ) -> Result<Vec<String>, ConfigError> {
        let word = |word: &Spanned<DeValue<'_>>| word.get_ref().as_str().map(str::to_owned);
        let list = value.get_ref().as_array();
        let words = list.and_then(|list| list.iter().map(word).collect::<Option<Vec<_>>>());
        let words = words.filter(|words| is_fitting(words));
        words.ok_or_else(|| self.wrong_type(value, expected))
    }

    /// A whole number within limits.
    ///
    /// # Errors
    /// If the value is another one.
    pub fn number(
        &self,
        value: &Spanned<DeValue<'_>>,
        limits: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, ConfigError> {
        let number = value.get_ref().as_integer();
        let number = number.and_then(|number| number.as_str().parse().ok());
        let number = number.filter(|number| limits.contains(number));
        let (least, most) = (limits.start(), limits.end());
        let expected = format!("a whole number from {least} to {most}");
        number.ok_or_else(|| self.wrong_type(value, &expected))
    }

    fn line(&self, start: usize) -> usize {
        let before = self.text.get(..start).unwrap_or_default();
        before.matches('\n').count() + 1
    }

    /// The error of a place in the text, as a number of bytes.
    pub fn error(&self, start: usize, found: String, expected: String) -> ConfigError {
        ConfigError {
            file: self.file.to_owned(),
            line: self.line(start),
            found,
            expected,
        }
    }

    /// The error of a key that is none of the keys of a file.
    pub fn unknown_key(&self, start: usize, found: &str, keys: &[&str]) -> ConfigError {
        let expected = one_of("one of", keys, found);
        self.error(start, format!("key `{found}`"), expected)
    }

    /// The error of a value that is not as expected.
    pub fn wrong_type(&self, value: &Spanned<DeValue<'_>>, expected: &str) -> ConfigError {
        let found = self.text.get(value.span()).unwrap_or_default();
        let found = found.lines().next().unwrap_or_default();
        self.error(
            value.span().start,
            format!("`{found}`"),
            expected.to_owned(),
        )
    }

    fn truth(&self, value: &Spanned<DeValue<'_>>) -> Result<bool, ConfigError> {
        let truth = value.get_ref().as_bool();
        truth.ok_or_else(|| self.wrong_type(value, "true or false"))
    }

    fn word(&self, value: &Spanned<DeValue<'_>>, expected: &str) -> Result<String, ConfigError> {
        self.read(value, expected, |word| {
            Some(word.to_owned()).filter(|word| !word.is_empty())
        })
    }

    fn acceptances(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Acceptance>, ConfigError> {
        let expected = "tables that start with [[accept]]";
        let rows = value.get_ref().as_array();
        let rows = rows.ok_or_else(|| self.wrong_type(value, expected))?;
        let mut acceptances = Vec::new();
        for row in rows.iter() {
            let table = row.get_ref().as_table();
            let table = table.ok_or_else(|| self.wrong_type(row, expected))?;
            acceptances.push(self.acceptance(row.span().start, table)?);
        }
        Ok(acceptances)
    }

    fn acceptance(&self, start: usize, table: &DeTable<'_>) -> Result<Acceptance, ConfigError> {
        let (mut rule, mut device, mut reason, mut until) = (None, None, None, None);
        for (key, value) in table.iter() {
            match key.get_ref().as_ref() {
                "rule" => rule = Some(self.rule(value)?),
                "device" => device = Some(self.word(value, "the name of a device in quotes")?),
                "reason" => reason = Some(self.word(value, "a reason in quotes")?),
                "until" => until = Some(self.day(value)?),
                other => return Err(self.unknown_key(key.span().start, other, &ACCEPT_KEYS)),
            }
        }
        let missing = |key: &str, expected: &str| {
            let found = format!("an [[accept]] without `{key}`");
            self.error(start, found, expected.to_owned())
        };
        Ok(Acceptance {
            rule: rule.ok_or_else(|| missing("rule", "the name of a finding"))?,
            device,
            reason: Some(reason.ok_or_else(|| missing("reason", "why the finding is accepted"))?),
            until,
            place: format!("{}:{}", self.file, self.line(start)),
        })
    }

    fn rule(&self, value: &Spanned<DeValue<'_>>) -> Result<RuleId, ConfigError> {
        let name = self.word(value, "the name of a finding in quotes")?;
        RuleId::from_name(&name).ok_or_else(|| {
            let found = format!("rule `{name}`");
            self.error(value.span().start, found, expected_rule(&name))
        })
    }

    fn day(&self, value: &Spanned<DeValue<'_>>) -> Result<Day, ConfigError> {
        let day = match value.get_ref() {
            DeValue::Datetime(moment) if moment.time.is_none() => moment.date,
            DeValue::String(text) => {
                let moment = text.parse::<toml::value::Datetime>().ok();
                let moment = moment.filter(|moment| moment.time.is_none());
                moment.and_then(|moment| moment.date)
            }
            _ => None,
        };
        let day = day.ok_or_else(|| self.wrong_type(value, "a day such as 2027-01-31"))?;
        Ok(Day {
            year: day.year,
            month: day.month,
            day: day.day,
        })
    }
}

/// Reads the argument of `--ignore`: `RULE` or `RULE:DEVICE`.
///
/// # Errors
/// When there is no such rule, or the device has no name.
pub fn parse_ignored(text: &str) -> Result<Acceptance, String> {
    let (name, device) = match text.split_once(':') {
        Some((name, device)) => (name, Some(device)),
        None => (text, None),
    };
    let rule = RuleId::from_name(name)
        .ok_or_else(|| format!("found `{name}`, expected {}", expected_rule(name)))?;
    if device.is_some_and(str::is_empty) {
        return Err(format!("found `{text}`, expected RULE or RULE:DEVICE"));
    }
    Ok(Acceptance {
        rule,
        device: device.map(str::to_owned),
        reason: None,
        until: None,
        place: "--ignore".to_owned(),
    })
}

/// The name of a finding, with the one that was probably meant.
fn expected_rule(found: &str) -> String {
    match closest(found, RULES.iter().map(|rule| rule.name)) {
        Some(name) => format!("the name of a finding; did you mean `{name}`?"),
        None => "the name of a finding (`plumb explain` lists them)".to_owned(),
    }
}

pub(crate) fn one_of(head: &str, words: &[&str], found: &str) -> String {
    let listed = format!("{head} {}", words.join(", "));
    match closest(found, words.iter().copied()) {
        Some(word) => format!("{listed}; did you mean `{word}`?"),
        None => listed,
    }
}

/// The word that was probably meant.
fn closest<'a>(found: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    words
        .map(|word| (strsim::jaro_winkler(found, word), word))
        .filter(|(similarity, _)| *similarity > SIMILARITY_MIN)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, word)| word)
}

/// This day in UTC.
#[must_use]
pub fn today() -> Day {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    day_of(&now).unwrap_or(Day {
        year: u16::MAX,
        month: 12,
        day: 31,
    })
}

/// The day of a moment in the form of RFC 3339.
fn day_of(moment: &str) -> Option<Day> {
    let mut parts = moment.get(..10)?.split('-');
    Some(Day {
        year: parts.next()?.parse().ok()?,
        month: parts.next()?.parse().ok()?,
        day: parts.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
# archive, rebuilt next year
accept_unseen = true

[[accept]]
rule = \"misaligned-partition\"
device = \"sdx1\"
reason = \"read-only archive\"
until = 2027-01-31

[[accept]]
rule = \"queue-setting\"
reason = \"set by the vendor\"
";

    #[test]
    fn a_file_is_read() {
        let config = Config::parse("c.toml", GOOD).expect("a file without mistakes");
        let day = Day {
            year: 2027,
            month: 1,
            day: 31,
        };
        let places: Vec<&str> = config.accept.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(places, ["c.toml:4", "c.toml:10"]);
        assert_eq!(config.accept[0].until, Some(day));
        assert_eq!(config.accept[0].device.as_deref(), Some("sdx1"));
        assert_eq!(
            (config.accept[1].rule, config.accept[1].until),
            (RuleId::QueueSetting, None)
        );
        assert!(config.accept_unseen);
        let quoted = GOOD.replace("2027-01-31", "\"2027-01-31\"");
        assert_eq!(Config::parse("c.toml", &quoted).expect("the same"), config);
        assert_eq!(Config::parse("c.toml", ""), Ok(Config::default()));
    }

    #[test]
    fn mistakes_name_line_and_expectation() {
        let accept =
            |rest: &str| format!("\n[[accept]]\nrule = \"no-logging\"\nreason = \"x\"\n{rest}");
        for (text, expected) in [
            (
                "acept_unseen = true".to_owned(),
                "1: found key `acept_unseen`, expected one of accept, accept_unseen; did you mean `accept_unseen`?",
            ),
            (
                "\n\naccept_unseen = 1".to_owned(),
                "3: found `1`, expected true or false",
            ),
            (
                accept("devise = \"sda\""),
                "5: found key `devise`, expected one of rule, device, reason, until; did you mean `device`?",
            ),
            (
                accept("until = \"tomorrow\""),
                "5: found `\"tomorrow\"`, expected a day such as 2027-01-31",
            ),
            (
                accept("until = 2027-01-31T08:00:00Z"),
                "5: found `2027-01-31T08:00:00Z`, expected a day such as 2027-01-31",
            ),
            (
                accept("device = \"\""),
                "5: found `\"\"`, expected the name of a device in quotes",
            ),
            (
                "[[accept]]\nrule = \"misaligned-partitions\"".to_owned(),
                "2: found rule `misaligned-partitions`, expected the name of a finding; did you mean `misaligned-partition`?",
            ),
            (
                "[[accept]]\nrule = \"zzz\"".to_owned(),
                "2: found rule `zzz`, expected the name of a finding (`plumb explain` lists them)",
            ),
            (
                "\n[[accept]]\nrule = \"no-logging\"".to_owned(),
                "2: found an [[accept]] without `reason`, expected why the finding is accepted",
            ),
            (
                "\n[[accept]]\nreason = \"x\"".to_owned(),
                "2: found an [[accept]] without `rule`, expected the name of a finding",
            ),
            (
                "[accept]\nrule = \"no-logging\"".to_owned(),
                "expected tables that start with [[accept]]",
            ),
        ] {
            let error = Config::parse("c.toml", &text)
                .expect_err("a mistake")
                .to_string();
            assert!(error.starts_with("c.toml:"), "{error}");
            assert!(error.ends_with(expected), "{error}\n{expected}");
        }
        let error = Config::parse("c.toml", "\naccept_unseen = ").expect_err("no TOML");
        assert_eq!((error.line, error.file.as_str()), (2, "c.toml"));
    }

    #[test]
    fn ignored_rules() {
        let one = parse_ignored("queue-setting:vda").expect("a rule and a device");
        assert_eq!(
            (one.rule, one.device.as_deref()),
            (RuleId::QueueSetting, Some("vda"))
        );
        let by_id = parse_ignored("misaligned-io:kvm3:sda").expect("a device of another host");
        assert_eq!(by_id.device.as_deref(), Some("kvm3:sda"));
        assert_eq!(parse_ignored("no-logging").map(|one| one.device), Ok(None));
        assert!(parse_ignored("no-loging").is_err_and(|words| words.contains("`no-logging`")));
        assert!(parse_ignored("no-logging:").is_err());
    }

    #[test]
    fn days_are_those_of_utc() {
        let day = Day {
            year: 2026,
            month: 3,
            day: 9,
        };
        assert_eq!(day_of("2026-03-09T23:59:59Z"), Some(day));
        assert_eq!(day.to_string(), "2026-03-09");
    }
}
