//! The configuration of the agent, `/etc/plumb/agent.toml`.
//!
//! A mistake is an error with its line, since an agent that guesses would store something else than the administrator asked for.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plumb_geometry::{Bytes, parse_size};
use plumb_history::{Settings, Tier};
use toml::Spanned;
use toml::de::DeValue;

use super::export::{Export, ExportTarget};
use super::notify::{Receivers, Webhook, runbook_url};
use super::recording::{Percent, RecordingSettings, helper};
use crate::cli::{Agent, FLEET_TIERS, STATE_DIR};
use crate::config::{ConfigError, ConfigText, is_there, read_text};
use crate::failure::Failure;
use crate::listen::{self, AccessFiles};
use crate::moment::parse_duration;

/// The file of the host.
pub const PATH: &str = "/etc/plumb/agent.toml";

/// The file that plumb-survey.service writes.
const SURVEY: &str = "/run/plumb-survey/check.json";

/// Keys of the file, in the order of the documentation.
const KEYS: [&str; 23] = [
    "state_dir",
    "listen",
    "tls_certificate",
    "tls_key",
    "token_file",
    "survey",
    "interval",
    "judge_every",
    "history_max",
    "keep_5_minutes",
    "keep_hours",
    "keep_days",
    "command",
    "webhook",
    "runbook_url",
    "record_p99",
    "record_misfit",
    "record_devices",
    "record_duration",
    "record_pause",
    "record_per_day",
    "record_max",
    "export",
];

/// Keys of the table `export`.
const EXPORT_KEYS: [&str; 3] = ["folder", "command", "tiers"];

/// Keys of the files that an address beyond loopback needs.
const ACCESS_KEYS: [&str; 3] = ["tls_certificate", "tls_key", "token_file"];

/// Longest time between two readings: counters of a device that goes away are lost with it.
const INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Longest time between two judgements.
const JUDGE_EVERY_MAX: Duration = Duration::from_secs(86_400);
/// Least bytes of a history: each file needs room for its log.
const HISTORY_MIN: u64 = 64 << 20;
/// Least bytes of the recordings: one takes a quarter, some 200,000 I/O.
const RECORD_MIN: u64 = 16 << 20;
/// Longest line of a latency, and the longest pause between two recordings.
const RECORD_P99_MAX: Duration = Duration::from_secs(60);
const RECORD_PAUSE_MAX: Duration = Duration::from_secs(86_400);
/// Longest time that a tier keeps its windows.
const KEEP_DAYS_MAX: u64 = 3660;

const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;

/// The work of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Folder of the history.
    pub state_dir: PathBuf,
    /// Address for metrics; none when `None`.
    pub listen: Option<SocketAddr>,
    /// Files that protect the answers at this address.
    pub access: AccessFiles,
    /// File of the survey: a document of `plumb check --json`.
    pub survey: PathBuf,
    /// Time between two readings.
    pub interval: Duration,
    /// Time between two judgements.
    pub judge_every: Duration,
    /// The bounds of the history.
    pub history: Settings,
    /// The receivers of notifications.
    pub receivers: Receivers,
    /// The export of windows; none when `None`.
    pub export: Option<Export>,
    /// Triggered recordings.
    pub recording: RecordingSettings,
}

impl Default for AgentConfig {
    fn default() -> AgentConfig {
        AgentConfig {
            state_dir: PathBuf::from(STATE_DIR),
            listen: None,
            access: AccessFiles::default(),
            survey: PathBuf::from(SURVEY),
            interval: Duration::from_secs(10),
            judge_every: Duration::from_secs(300),
            history: Settings::default(),
            receivers: Receivers::default(),
            export: None,
            recording: RecordingSettings::default(),
        }
    }
}

impl AgentConfig {
    /// The configuration for these arguments: a flag overrides the file, and the file the defaults. Without `--config` the file
    /// of the host counts if it is there.
    ///
    /// # Errors
    /// If a named file is absent, or a file has a mistake.
    pub fn read(args: &Agent) -> Result<AgentConfig, Failure> {
        let mut config = AgentConfig::of_store(args.config.as_deref(), args.state_dir.as_deref())?;
        config.interval = args.interval.unwrap_or(config.interval);
        Ok(config)
    }

    /// The configuration for the work on a history: a named folder overrides that of the file.
    ///
    /// # Errors
    /// As [`AgentConfig::read`].
    pub fn of_store(
        named: Option<&Path>,
        state_dir: Option<&Path>,
    ) -> Result<AgentConfig, Failure> {
        let path = named.or_else(|| is_there(Path::new(PATH)).then_some(Path::new(PATH)));
        let mut config = match path {
            Some(path) => {
                let (name, text) = read_text(path)?;
                AgentConfig::parse(&name, &text)
                    .map_err(|error| Failure::usage(error.to_string()))?
            }
            None => AgentConfig::default(),
        };
        if let Some(state_dir) = state_dir {
            state_dir.clone_into(&mut config.state_dir);
        }
        Ok(config)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// At its first mistake.
    pub fn parse(file: &str, text: &str) -> Result<AgentConfig, ConfigError> {
        let source = ConfigText { file, text };
        let mut config = AgentConfig::default();
        let mut listen = None;
        let table = source.table()?;
        for (key, value) in table.get_ref().iter() {
            let keep = match key.get_ref().as_ref() {
                "state_dir" => {
                    let expected = "the whole path of a folder, such as \"/var/lib/plumb-agent\"";
                    config.state_dir = source.read(value, expected, whole_path)?;
                    continue;
                }
                "listen" => {
                    let expected = listen::expected(ACCESS_KEYS);
                    config.listen = Some(source.read(value, &expected, |text| text.parse().ok())?);
                    listen = Some(value);
                    continue;
                }
                name @ ("tls_certificate" | "tls_key" | "token_file") => {
                    let expected = "the whole path of a file, such as \"/etc/plumb/tls.crt\"";
                    let path = Some(source.read(value, expected, whole_path)?);
                    match name {
                        "tls_certificate" => config.access.certificate = path,
                        "tls_key" => config.access.key = path,
                        _ => config.access.tokens = path,
                    }
                    continue;
                }
                "survey" => {
                    let expected =
                        "the whole path of a file, such as \"/run/plumb-survey/check.json\"";
                    config.survey = source.read(value, expected, whole_path)?;
                    continue;
                }
                "interval" => {
                    let expected = "a time from \"1s\" to \"60s\"";
                    config.interval =
                        source.read(value, expected, |text| time(text, INTERVAL_MAX))?;
                    continue;
                }
                "judge_every" => {
                    let expected = "a time from \"1s\" to \"24h\"";
                    config.judge_every =
                        source.read(value, expected, |text| time(text, JUDGE_EVERY_MAX))?;
                    continue;
                }
                "history_max" => {
                    let expected = "a size of \"64m\" or more";
                    config.history.bytes_max =
                        source.read(value, expected, |text| size(text, HISTORY_MIN))?;
                    continue;
                }
                "record_p99" => {
                    let expected = "a time from \"1ms\" to \"60s\"";
                    let line = source.read(value, expected, |text| {
                        time_within(text, Duration::from_millis(1), RECORD_P99_MAX)
                    })?;
                    config.recording.p99 = Some(line);
                    continue;
                }
                "record_misfit" => {
                    let expected = "a share from \"0.01%\" to \"100%\", such as \"20%\"";
                    config.recording.misfit =
                        Some(source.read(value, expected, Percent::from_words)?);
                    continue;
                }
                "record_devices" => {
                    let expected = "a list of names or identities of disks, such as [\"sdb\"]";
                    let is_fitting = |words: &[String]| words.iter().all(|word| !word.is_empty());
                    config.recording.devices = source.words(value, expected, is_fitting)?;
                    continue;
                }
                "record_duration" => {
                    let expected = "a time from \"1s\" to \"10m\"";
                    config.recording.duration =
                        source.read(value, expected, |text| time(text, helper::DURATION_MAX))?;
                    continue;
                }
                "record_pause" => {
                    let expected = "a time from \"1s\" to \"24h\"";
                    config.recording.pause =
                        source.read(value, expected, |text| time(text, RECORD_PAUSE_MAX))?;
                    continue;
                }
                "record_per_day" => {
                    config.recording.per_day = source.number(value, 1..=1000)?;
                    continue;
                }
                "record_max" => {
                    let expected = "a size of \"16m\" or more";
                    config.recording.bytes_max =
                        source.read(value, expected, |text| size(text, RECORD_MIN))?;
                    continue;
                }
                "command" => {
                    let expected = "a program by its whole path with its arguments, such as [\"/usr/local/bin/page\", \"storage\"]";
                    config.receivers.command = source.words(value, expected, is_command)?;
                    continue;
                }
                "webhook" => {
                    let expected = "an address such as \"http://127.0.0.1:9093/hook\"; for https set `command` to a program such as curl";
                    config.receivers.webhook =
                        Some(source.read(value, expected, Webhook::from_url)?);
                    continue;
                }
                "runbook_url" => {
                    let expected = "an address such as \"https://wiki.example.org/plumb/{rule}\"";
                    config.receivers.runbook_url =
                        Some(source.read(value, expected, runbook_url)?);
                    continue;
                }
                "export" => {
                    config.export = Some(export(&source, value)?);
                    continue;
                }
                "keep_5_minutes" => Tier::FiveMinutes,
                "keep_hours" => Tier::Hour,
                "keep_days" => Tier::Day,
                other => return Err(source.unknown_key(key.span().start, other, &KEYS)),
            };
            let expected = "a time in days or hours from \"1h\" to \"3660d\"";
            config.history.tiers[keep as usize].keep_ns = source.read(value, expected, days_ns)?;
        }
        if let Some(value) = listen {
            // The other keys can come behind the address.
            let is_fitting = |address: &SocketAddr| config.access.permit(*address);
            let expected = listen::expected(ACCESS_KEYS);
            source.read(value, &expected, |text| {
                text.parse().ok().filter(is_fitting)
            })?;
        }
        if config.access.certificate.is_some() != config.access.key.is_some() {
            let mut keys = table.get_ref().iter();
            let one = keys.find(|(key, _)| key.get_ref().starts_with("tls_"));
            let start = one.map_or(0, |(key, _)| key.span().start);
            let found =
                one.map_or_else(String::new, |(key, _)| format!("`{}` alone", key.get_ref()));
            let expected = "`tls_certificate` and `tls_key`";
            return Err(source.error(start, found, expected.to_owned()));
        }
        Ok(config)
    }

    /// The configuration as a file.
    pub fn text(&self) -> String {
        let keep = |tier: Tier| match self.history.tier(tier).keep_ns {
            ns if ns % DAY_NS == 0 => format!("{}d", ns / DAY_NS),
            ns => format!("{}h", ns / HOUR_NS),
        };
        let listen = self.listen.map(|address| ("listen", address.to_string()));
        let AccessFiles {
            certificate,
            key,
            tokens,
        } = &self.access;
        let access = ACCESS_KEYS.into_iter().zip([certificate, key, tokens]);
        let access =
            access.filter_map(|(key, path)| Some((key, path.as_ref()?.display().to_string())));
        let lines = [
            ("state_dir", self.state_dir.display().to_string()),
            ("survey", self.survey.display().to_string()),
            ("interval", ms(self.interval)),
            ("judge_every", ms(self.judge_every)),
            ("history_max", format!("{}m", self.history.bytes_max >> 20)),
            ("keep_5_minutes", keep(Tier::FiveMinutes)),
            ("keep_hours", keep(Tier::Hour)),
            ("keep_days", keep(Tier::Day)),
        ];
        let webhook = self.receivers.webhook.as_ref();
        let webhook = webhook.map(|webhook| ("webhook", webhook.url.clone()));
        let runbook_url = self.receivers.runbook_url.clone();
        let lines = lines
            .into_iter()
            .chain(listen)
            .chain(access)
            .chain(webhook)
            .chain(runbook_url.map(|url| ("runbook_url", url)))
            .map(|(key, value)| (key, serde_json::Value::from(value)));
        let command = Some(&self.receivers.command).filter(|words| !words.is_empty());
        let command = command.map(|words| ("command", serde_json::Value::from(words.as_slice())));
        let recording = &self.recording;
        let p99 = recording.p99.map(|line| ("record_p99", ms(line)));
        let misfit = recording.misfit;
        let misfit = misfit.map(|line| ("record_misfit", line.words()));
        let of_recording = [
            ("record_duration", ms(recording.duration)),
            ("record_pause", ms(recording.pause)),
            ("record_max", format!("{}m", recording.bytes_max >> 20)),
        ];
        let of_recording = of_recording.into_iter().chain(p99).chain(misfit);
        let of_recording = of_recording.map(|(key, value)| (key, serde_json::Value::from(value)));
        lines
            .chain(command)
            .chain(of_recording)
            .chain([
                ("record_devices", recording.devices.as_slice().into()),
                ("record_per_day", recording.per_day.into()),
            ])
            .map(|(key, value)| format!("{key} = {value}\n"))
            .chain(self.export.as_ref().map(Export::text))
            .collect()
    }
}

/// Reads the table `export`.
fn export(source: &ConfigText<'_>, value: &Spanned<DeValue<'_>>) -> Result<Export, ConfigError> {
    let expected = "a table with `folder` or `command`";
    let table = value.get_ref().as_table();
    let table = table.ok_or_else(|| source.wrong_type(value, expected))?;
    let (mut targets, mut tiers) = (Vec::new(), FLEET_TIERS.to_vec());
    for (key, value) in table.iter() {
        match key.get_ref().as_ref() {
            "folder" => {
                let expected = "the whole path of a folder, such as \"/srv/fleet\"";
                let folder = source.read(value, expected, whole_path)?;
                targets.push(ExportTarget::Folder(folder));
            }
            "command" => {
                let expected = "a program by its whole path with {file} and {key} in its arguments, such as [\"/usr/bin/aws\", \"s3\", \"cp\", \
                                \"{file}\", \"s3://bucket/{key}\"]";
                let has = |words: &[String], name| words.iter().any(|word| word.contains(name));
                let is_fitting = |words: &[String]| {
                    is_command(words) && has(&words[1..], "{file}") && has(&words[1..], "{key}")
                };
                let words = source.words(value, expected, is_fitting)?;
                targets.push(ExportTarget::Command(words));
            }
            "tiers" => {
                let expected = "a list of \"5m\", \"1h\" and \"1d\", each once";
                let read = |words: &[String]| -> Option<Vec<Tier>> {
                    words.iter().map(|word| Tier::from_word(word)).collect()
                };
                let is_fitting = |words: &[String]| {
                    let found = read(words).unwrap_or_default();
                    let is_once = |at: usize| !found[..at].contains(&found[at]);
                    !found.is_empty() && (0..found.len()).all(is_once)
                };
                let words = source.words(value, expected, is_fitting)?;
                tiers = read(&words).unwrap_or_default();
            }
            other => return Err(source.unknown_key(key.span().start, other, &EXPORT_KEYS)),
        }
    }
    match (targets.pop(), targets.is_empty()) {
        (Some(target), true) => Ok(Export { target, tiers }),
        _ => Err(source.wrong_type(value, expected)),
    }
}

impl Export {
    /// The line of the file.
    fn text(&self) -> String {
        let (key, target) = match &self.target {
            ExportTarget::Folder(folder) => {
                let folder = folder.display().to_string();
                ("folder", serde_json::Value::from(folder))
            }
            ExportTarget::Command(words) => ("command", serde_json::Value::from(words.as_slice())),
        };
        let tiers: Vec<&str> = self.tiers.iter().map(|tier| tier.word()).collect();
        let tiers = serde_json::Value::from(tiers);
        format!("export = {{ {key} = {target}, tiers = {tiers} }}\n")
    }
}

/// Whether words are a program by its whole path, and its arguments.
fn is_command(words: &[String]) -> bool {
    let program = words.first();
    program.is_some_and(|program| whole_path(program).is_some())
        && !words.iter().any(|word| word.contains('\0'))
}

/// A whole path: an agent has no folder of its own that a path could begin at.
fn whole_path(text: &str) -> Option<PathBuf> {
    let is_plain = !text.chars().any(char::is_control);
    Some(PathBuf::from(text)).filter(|path| path.is_absolute() && is_plain)
}

/// A time as a file has it.
fn ms(time: Duration) -> String {
    format!("{}ms", time.as_micros() as f64 / 1000.0)
}

/// A size in bytes of at least a limit.
fn size(text: &str, least: u64) -> Option<u64> {
    let Bytes(bytes) = parse_size(text).ok()?;
    (bytes >= least).then_some(bytes)
}

/// A time from a second to a limit.
fn time(text: &str, longest: Duration) -> Option<Duration> {
    time_within(text, Duration::from_secs(1), longest)
}

/// A time between two limits.
fn time_within(text: &str, shortest: Duration, longest: Duration) -> Option<Duration> {
    let ns = u64::try_from(parse_duration(text)?).ok()?;
    let limits = shortest..=longest;
    Some(Duration::from_nanos(ns)).filter(|time| limits.contains(time))
}

/// Days or whole hours, in ns.
fn days_ns(text: &str) -> Option<i64> {
    let (number, unit_ns) = match text.split_at_checked(text.len().checked_sub(1)?)? {
        (number, "d") => (number, DAY_NS),
        (number, "h") => (number, HOUR_NS),
        _ => return None,
    };
    let number: i64 = number.parse().ok()?;
    let longest_ns = i64::try_from(KEEP_DAYS_MAX).ok()?.checked_mul(DAY_NS)?;
    let ns = number.checked_mul(unit_ns)?;
    (HOUR_NS..=longest_ns).contains(&ns).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read() {
        let text = "state_dir = \"/srv/plumb\"\nsurvey = \"/srv/check.json\"\ninterval = \"5s\"\nlisten = \"[::]:9974\"\n\
                    tls_certificate = \"/etc/plumb/tls.crt\"\ntls_key = \"/etc/plumb/tls.key\"\ntoken_file = \"/etc/plumb/token\"\nhistory_max = \"512m\"\nkeep_5_minutes = \"12h\"\nkeep_days = \"365d\"\n\
                    command = [\"/bin/page\", \"a \\\"b\\\"\"]\nwebhook = \"http://[::1]:9/hook?a=b\"\nrunbook_url = \"https://wiki.example.org/{rule}\"\n\
                    record_p99 = \"2.5ms\"\nrecord_misfit = \"12.5 %\"\nrecord_devices = [\"sdb\", \"naa.5\"]\nrecord_duration = \"90s\"\nrecord_pause = \"2h\"\nrecord_per_day = 4\nrecord_max = \"256m\"\n";
        let config = AgentConfig::parse("agent.toml", text).expect("a file without mistakes");
        assert_eq!(config.state_dir, Path::new("/srv/plumb"));
        assert_eq!(config.survey, Path::new("/srv/check.json"));
        assert_eq!(config.interval, Duration::from_secs(5));
        assert_eq!(config.history.bytes_max, 512 << 20);
        assert_eq!(config.listen, "[::]:9974".parse().ok());
        let files = ["tls.crt", "tls.key", "token"];
        let files = files.map(|file| Path::new("/etc/plumb").join(file));
        assert_eq!(config.access.paths(), files);
        let kept = config.history.tiers.map(|tier| tier.keep_ns / HOUR_NS);
        assert_eq!(kept, [12, 35 * 24, 365 * 24]);
        let recording = RecordingSettings {
            p99: Some(Duration::from_micros(2500)),
            misfit: Some(Percent(1250)),
            devices: vec!["sdb".to_owned(), "naa.5".to_owned()],
            duration: Duration::from_secs(90),
            pause: Duration::from_secs(7200),
            per_day: 4,
            bytes_max: 256 << 20,
        };
        assert_eq!(config.recording, recording);
        let again =
            AgentConfig::parse("printed", &config.text()).expect("the printed text is a file");
        assert_eq!(again, config);
    }

    #[test]
    fn an_export_has_one_target() {
        let export = |text: &str| AgentConfig::parse("a", text).map(|config| config.export);
        let folder = ExportTarget::Folder(PathBuf::from("/srv/fleet"));
        let command = ["/bin/put", "--to=b/{key}", "{file}"].map(str::to_owned);
        let command = ExportTarget::Command(command.to_vec());
        let (hour, day) = (Tier::Hour, Tier::Day);
        for (text, target, tiers) in [
            (
                "[export]\nfolder = \"/srv/fleet\"",
                &folder,
                vec![hour, day],
            ),
            (
                "[export]\ncommand = [\"/bin/put\", \"--to=b/{key}\", \"{file}\"]\ntiers = [\"1d\", \"5m\"]",
                &command,
                vec![day, Tier::FiveMinutes],
            ),
        ] {
            let target = target.clone();
            let expected = Export { target, tiers };
            let config = AgentConfig::parse("a", text).expect("a file without mistakes");
            assert_eq!(config.export, Some(expected));
            assert_eq!(export(&config.text()), Ok(config.export));
        }
        for (table, expected) in [
            ("{}", "a table with `folder` or `command`"),
            ("\"/srv\"", "a table with `folder` or `command`"),
            (
                "{ folder = \"/a\", command = [\"/b\", \"{file}{key}\"] }",
                "a table with `folder` or `command`",
            ),
            ("{ folder = \"a\" }", "the whole path of a folder"),
            ("{ command = [\"/b\", \"{file}\"] }", "{file} and {key}"),
            ("{ command = [\"/b/{file}{key}\"] }", "{file} and {key}"),
            ("{ folder = \"/a\", tiers = [] }", "each once"),
            ("{ folder = \"/a\", tiers = [\"1d\", \"1d\"] }", "each once"),
            ("{ folder = \"/a\", tiers = [\"2d\"] }", "each once"),
            ("{ folders = \"/a\" }", "did you mean `folder`?"),
        ] {
            let error = export(&format!("export = {table}")).expect_err(table);
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, message) in [
            (
                "\nintervall = \"5s\"",
                "a:2: found key `intervall`, expected one of state_dir, listen, tls_certificate, tls_key, token_file, survey, interval, judge_every, history_max, keep_5_minutes, keep_hours, \
                 keep_days, command, webhook, runbook_url, record_p99, record_misfit, record_devices, record_duration, record_pause, \
                 record_per_day, record_max, export; did you mean `interval`?",
            ),
            (
                "interval = \"5min\"",
                "a:1: found `\"5min\"`, expected a time from \"1s\" to \"60s\"",
            ),
            (
                "interval = 5",
                "a:1: found `5`, expected a time from \"1s\" to \"60s\"",
            ),
            (
                "state_dir = \"history\"",
                "a:1: found `\"history\"`, expected the whole path of a folder, such as \"/var/lib/plumb-agent\"",
            ),
            (
                "\nlisten = \"0.0.0.0:9974\"\ntoken_file = \"/etc/plumb/token\"",
                "a:2: found `\"0.0.0.0:9974\"`, expected a loopback address with a port, such as \"127.0.0.1:9974\" (any other address needs TLS \
                 and a token: tls_certificate, tls_key and token_file)",
            ),
            (
                "\ntls_key = \"/etc/plumb/tls.key\"",
                "a:2: found `tls_key` alone, expected `tls_certificate` and `tls_key`",
            ),
            (
                "token_file = \"token\"",
                "a:1: found `\"token\"`, expected the whole path of a file, such as \"/etc/plumb/tls.crt\"",
            ),
            (
                "survey = \"check.json\"",
                "a:1: found `\"check.json\"`, expected the whole path of a file, such as \"/run/plumb-survey/check.json\"",
            ),
            (
                "history_max = \"1m\"",
                "a:1: found `\"1m\"`, expected a size of \"64m\" or more",
            ),
            (
                "command = \"/bin/true\"",
                "a:1: found `\"/bin/true\"`, expected a program by its whole path with its arguments, such as [\"/usr/local/bin/page\", \"storage\"]",
            ),
            (
                "command = [\"page\"]",
                "a:1: found `[\"page\"]`, expected a program by its whole path with its arguments, such as [\"/usr/local/bin/page\", \"storage\"]",
            ),
            (
                "webhook = \"https://127.0.0.1/hook\"",
                "a:1: found `\"https://127.0.0.1/hook\"`, expected an address such as \"http://127.0.0.1:9093/hook\"; for https set `command` to a \
                 program such as curl",
            ),
            (
                "runbook_url = \"misaligned-io.md\"",
                "a:1: found `\"misaligned-io.md\"`, expected an address such as \"https://wiki.example.org/plumb/{rule}\"",
            ),
            (
                "keep_days = \"2y\"",
                "a:1: found `\"2y\"`, expected a time in days or hours from \"1h\" to \"3660d\"",
            ),
            (
                "keep_days = \"30m\"",
                "a:1: found `\"30m\"`, expected a time in days or hours from \"1h\" to \"3660d\"",
            ),
            (
                "record_p99 = \"90s\"",
                "a:1: found `\"90s\"`, expected a time from \"1ms\" to \"60s\"",
            ),
            (
                "record_misfit = 20",
                "a:1: found `20`, expected a share from \"0.01%\" to \"100%\", such as \"20%\"",
            ),
            (
                "record_devices = \"sdb\"",
                "a:1: found `\"sdb\"`, expected a list of names or identities of disks, such as [\"sdb\"]",
            ),
            (
                "record_duration = \"11m\"",
                "a:1: found `\"11m\"`, expected a time from \"1s\" to \"10m\"",
            ),
            (
                "record_pause = \"25h\"",
                "a:1: found `\"25h\"`, expected a time from \"1s\" to \"24h\"",
            ),
            (
                "record_per_day = 0",
                "a:1: found `0`, expected a whole number from 1 to 1000",
            ),
            (
                "record_per_day = \"12\"",
                "a:1: found `\"12\"`, expected a whole number from 1 to 1000",
            ),
            (
                "record_max = \"1m\"",
                "a:1: found `\"1m\"`, expected a size of \"16m\" or more",
            ),
        ] {
            let error = AgentConfig::parse("a", text).expect_err(text);
            assert_eq!(error.to_string(), message);
        }
    }

    /// The file of the packages is all comments, and shows the defaults.
    #[test]
    fn the_packaged_file_shows_the_defaults() {
        let packaged = include_str!("../../../../packaging/agent.toml");
        let default = AgentConfig::default();
        assert_eq!(
            AgentConfig::parse("agent.toml", packaged),
            Ok(default.clone())
        );
        let shown = packaged.lines().filter_map(|line| line.strip_prefix('#'));
        let shown: Vec<&str> = shown
            .filter(|line| {
                KEYS.iter()
                    .any(|key| line.starts_with(&format!("{key} = ")))
            })
            .collect();
        // Some keys have no default: the file has an example of each.
        let examples = packaged
            .lines()
            .filter_map(|line| line.strip_prefix("# For example: "));
        let examples: Vec<&str> = examples.collect();
        assert_eq!(shown.len() + examples.len(), KEYS.len(), "{packaged}");
        assert_eq!(AgentConfig::parse("shown", &shown.join("\n")), Ok(default));
        let example = AgentConfig::parse("examples", &examples.join("\n"));
        let example = example.expect("a file without mistakes");
        assert_eq!(example.access.paths().len(), 3);
        assert!(example.listen.is_some() && example.receivers.webhook.is_some());
        assert!(!example.receivers.command.is_empty() && example.receivers.runbook_url.is_some());
        assert!(example.export.is_some());
        assert!(example.recording.p99.is_some() && example.recording.misfit.is_some());
    }
}
