//! The HTTP API for a history, read-only: the agent and `plumb serve` answer it.
//!
//! Each answer opens the history again, as a command does: the agent may have replaced a damaged file meanwhile. Answers come from the
//! threads of the server for long work, and each has a limit of rows, because all of them are in memory until their clients have read them.

use std::path::PathBuf;
use std::sync::Arc;

use plumb_geometry::SmallSort;
use plumb_history::{Reader, SeriesFacts, Span, SpanProfile, Tier, Window};
use plumb_http::{Answer, Budget, Query, Reply, Request, RequestFault};
use plumb_model::result::api::{ApiAnswer, ApiDocument, ApiHistograms, ApiTables};
use plumb_profile::listing;

use crate::agent::recent::{RecentAnswer, RecentWindows};
use crate::agent::survey;
use crate::failure::Failure;
use crate::history::senders::senders_in;
use crate::history::span::{self, time_words};
use crate::history::{FindingPage, course_in, findings_in, list, tier_for};
use crate::moment::parse_local;

/// Paths that are answered.
pub const PATHS: [&str; 6] = [
    "/api/v1/devices",
    "/api/v1/findings",
    "/api/v1/glance",
    "/api/v1/histograms",
    "/api/v1/tables",
    "/api/v1/stack",
];

/// Most windows of an answer, of all layers together. A window takes about 300 bytes.
const WINDOWS_MAX: usize = 2000;
/// Most findings of an answer. One takes some KiB.
const FINDINGS_MAX: usize = 200;
/// Most rows of the residue tables of an answer, of all layers together. A row takes about 130 bytes.
const ROWS_MAX: usize = 1000;
/// Most devices and layers of a name: an identity names one device.
const SERIES_MAX: usize = 32;
/// Devices that an error names.
const NAMED_MAX: usize = 50;

/// The source of the answers.
pub struct Api {
    /// Folder of the history.
    pub state_dir: PathBuf,
    /// Document of the survey, which only an agent has.
    pub survey: Option<PathBuf>,
    /// Windows of the last hour, which only an agent has.
    pub recent: Option<Arc<RecentWindows>>,
}

/// The reason for which a question has no answer.
enum ApiRefusal {
    /// The request is wrong, or asks for something unknown.
    Request(u16, RequestFault),
    /// The history cannot be read.
    History(Failure),
    /// The client waits no more.
    Late,
}

impl From<Failure> for ApiRefusal {
    fn from(failure: Failure) -> ApiRefusal {
        ApiRefusal::History(failure)
    }
}

impl From<plumb_history::HistoryError> for ApiRefusal {
    fn from(error: plumb_history::HistoryError) -> ApiRefusal {
        ApiRefusal::History(Failure::failed(&error))
    }
}

/// A question to the history.
type Question = fn(&Asked<'_>) -> Result<ApiDocument, ApiRefusal>;

/// The parameters of a question, and the question; `None` for another path.
fn question(path: &str) -> Option<(&'static [&'static str], Question)> {
    Some(match path {
        "/api/v1/devices" => (&[], devices),
        "/api/v1/findings" => (&["device", "from", "to", "skip"], findings),
        "/api/v1/glance" => (&["device", "from", "to", "tier"], glance),
        "/api/v1/histograms" => (&["device", "from", "to"], histograms),
        "/api/v1/tables" => (&["device", "from", "to", "skip"], tables),
        _ => return None,
    })
}

impl Api {
    /// The answer to a request; `None` for a path of others.
    pub fn reply(self: &Arc<Api>, request: &Request<'_>) -> Option<Reply> {
        let is_stack = request.path == "/api/v1/stack";
        let (known, ask) = match question(request.path) {
            Some((known, ask)) => (known, Some(ask)),
            None if is_stack => (&[][..], None),
            None => return None,
        };
        let query = match request.parameters(known) {
            Ok(query) => query,
            Err(fault) => return Some(fault.answer(400).into()),
        };
        let (api, path) = (Arc::clone(self), request.path.to_owned());
        Some(Reply::Later(Box::new(move |budget| match ask {
            Some(ask) => api.answer(&path, &query, budget, ask),
            None => api.stack(&path),
        })))
    }

    /// Whether the history can be read, as text.
    pub fn health(&self) -> Answer {
        match span::open(&self.state_dir) {
            Ok(_) => Answer::text(200, "ok\n"),
            Err(failure) => {
                let why = failure.text("");
                Answer::text(503, format!("the history cannot be read: {why}\n"))
            }
        }
    }

    fn answer(&self, path: &str, query: &Query, budget: &Budget, ask: Question) -> Answer {
        let answer = span::open(&self.state_dir)
            .map_err(ApiRefusal::History)
            .and_then(|reader| {
                ask(&Asked {
                    reader: &reader,
                    recent: self.recent.as_deref(),
                    path,
                    query,
                    budget,
                })
            })
            .and_then(|document| {
                plumb_report::api::json(&document)
                    .map_err(|error| ApiRefusal::History(Failure::failed(&error)))
            });
        match answer {
            Ok(document) => Answer::json(document),
            Err(ApiRefusal::Request(status, fault)) => fault.answer(status),
            Err(ApiRefusal::History(failure)) => unreadable(path, failure.text("")).answer(500),
            // The server has answered.
            Err(ApiRefusal::Late) => Answer::text(503, ""),
        }
    }

    /// The document of the last survey of the layout, as it is.
    fn stack(&self, path: &str) -> Answer {
        let missing = |found: String, expected: &str| {
            let fault = RequestFault {
                place: path.to_owned(),
                found,
                expected: expected.to_owned(),
            };
            fault.answer(404)
        };
        let Some(survey) = &self.survey else {
            let found = "a history without an agent, which has no stack".to_owned();
            return missing(found, "a request to the agent");
        };
        match survey::stack(survey) {
            Ok(document) => Answer::json(document),
            Err(why) => missing(why, "a survey of the layout: systemctl start plumb-survey"),
        }
    }
}

fn unreadable(path: &str, found: String) -> RequestFault {
    RequestFault {
        place: path.to_owned(),
        found,
        expected: "a history that can be read".to_owned(),
    }
}

/// A question, its parameters, and the history.
struct Asked<'a> {
    reader: &'a Reader,
    recent: Option<&'a RecentWindows>,
    path: &'a str,
    query: &'a Query,
    budget: &'a Budget,
}

/// The series of the device that a question names, and the time of it.
struct Subject {
    series: Vec<SeriesFacts>,
    time: Span,
}

impl Asked<'_> {
    /// A moment; `open` if the question has none.
    fn moment(&self, name: &str, open: i64) -> Result<i64, ApiRefusal> {
        let Some(text) = self.query.get(name) else {
            return Ok(open);
        };
        let expected = "a date or a time: 2026-11-01, 2026-11-01T08:00, 2026-11-01T08:00:00Z, 2026-11-01T08:00%2B01:00";
        parse_local(text).ok_or_else(|| bad(name, text, expected))
    }

    /// The time of the question.
    fn time(&self) -> Result<Span, ApiRefusal> {
        let time = Span {
            from_ns: self.moment("from", 0)?,
            to_ns: self.moment("to", i64::MAX)?,
        };
        match time.is_empty() {
            true => {
                let from = self.query.get("from").unwrap_or("");
                Err(bad("from", from, "a time before `to`"))
            }
            false => Ok(time),
        }
    }

    /// Rows that an earlier answer had.
    fn skip(&self) -> Result<usize, ApiRefusal> {
        let text = self.query.get("skip").unwrap_or("0");
        let skip = text
            .parse::<u32>()
            .ok()
            .and_then(|skip| usize::try_from(skip).ok());
        skip.ok_or_else(|| bad("skip", text, "a whole number"))
    }

    /// The name or identity in the question.
    fn device(&self) -> Result<&str, ApiRefusal> {
        let expected = "a name or an identity of /api/v1/devices";
        let device = self.query.get("device");
        device.ok_or_else(|| bad("device", "", expected))
    }

    /// The device of the question, and the part of its time that the history has.
    fn subject(&self) -> Result<Subject, ApiRefusal> {
        let time = self.time()?;
        let device = self.device()?;
        let all = self.reader.names()?;
        let mut series = span::series_of(&all, device);
        if series.is_empty() {
            return Err(unknown_device(device, &all));
        }
        if series.len() > SERIES_MAX {
            let expected = format!(
                "the name of fewer than {} devices, or an identity",
                series.len()
            );
            return Err(bad("device", device, &expected));
        }
        self.reader.find_spans(&mut series)?;
        let known = series.iter().filter_map(|one| one.span);
        let known = known.reduce(|one, other| Span {
            from_ns: one.from_ns.min(other.from_ns),
            to_ns: one.to_ns.max(other.to_ns),
        });
        let time = time.common(known.unwrap_or(span::NEVER));
        Ok(Subject { series, time })
    }

    /// The profiles of a subject that have I/O, each with its series.
    fn profiles<T>(
        &self,
        subject: &Subject,
        mut make: impl FnMut(&SeriesFacts, &SpanProfile) -> T,
    ) -> Result<(Vec<T>, Option<Span>), ApiRefusal> {
        let (mut made, mut whole) = (Vec::new(), None);
        for series in &subject.series {
            if self.budget.is_over() {
                return Err(ApiRefusal::Late);
            }
            let found = self.reader.profile(series, subject.time)?;
            if let Some(found) = found.filter(|found| found.profile.ios() > 0) {
                let known: Span = whole.unwrap_or(found.span);
                whole = Some(Span {
                    from_ns: known.from_ns.min(found.span.from_ns),
                    to_ns: known.to_ns.max(found.span.to_ns),
                });
                made.push(make(series, &found));
            }
        }
        Ok((made, whole))
    }

    /// The link to the same question behind this number of rows.
    fn behind(&self, rows: usize) -> Option<String> {
        Some(self.query.link(self.path, &[("skip", &rows.to_string())]))
    }
}

fn bad(name: &str, found: &str, expected: &str) -> ApiRefusal {
    ApiRefusal::Request(400, RequestFault::of_parameter(name, found, expected))
}

fn unknown_device(device: &str, all: &[SeriesFacts]) -> ApiRefusal {
    let mut names: Vec<&str> = all.iter().map(SeriesFacts::name).collect();
    names.small_sort_by(|one, other| plumb_geometry::natural(one, other));
    names.dedup();
    let further = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let mut expected = match names.as_slice() {
        [] => "a device of the history, which has none yet".to_owned(),
        names => format!("one of {}", names.join(", ")),
    };
    if further > 0 {
        expected += &format!(" and {further} more");
    }
    ApiRefusal::Request(404, RequestFault::of_parameter("device", device, expected))
}

fn document(result: ApiAnswer, time: Option<Span>) -> ApiDocument {
    let mut document = ApiDocument::new(env!("CARGO_PKG_VERSION"), result);
    document.from = time.map(|time| time_words(time.from_ns));
    document.to = time.map(|time| time_words(time.to_ns));
    document
}

fn devices(asked: &Asked<'_>) -> Result<ApiDocument, ApiRefusal> {
    Ok(document(ApiAnswer::Devices(list(asked.reader)?), None))
}

fn findings(asked: &Asked<'_>) -> Result<ApiDocument, ApiRefusal> {
    let (time, skip) = (asked.time()?, asked.skip()?);
    let all = asked.reader.names()?;
    let device = asked.query.get("device");
    let series = device.map(|device| span::series_of(&all, device));
    let device = device.zip(series.as_deref());
    let page = FindingPage {
        skip,
        rows: FINDINGS_MAX,
        is_late: &|| asked.budget.is_over(),
    };
    let Some((found, is_cut)) = findings_in(asked.reader, device, time, &page)? else {
        let device = device.map_or("", |(device, _)| device);
        return Err(unknown_device(device, &all));
    };
    if asked.budget.is_over() {
        return Err(ApiRefusal::Late);
    }
    let mut document = document(ApiAnswer::Findings(found), None);
    if is_cut {
        document.next = asked.behind(skip.saturating_add(FINDINGS_MAX));
    }
    Ok(document)
}

/// The word for windows of the last hour.
const RECENT: &str = "10s";

/// The windows of the last hour, if the question names them, or a time that they have in whole; `None` if the history has the answer.
fn recent_glance(asked: &Asked<'_>) -> Result<Option<ApiDocument>, ApiRefusal> {
    let tier = asked.query.get("tier");
    let is_named = tier == Some(RECENT);
    let Some(recent) = asked.recent else {
        let expected = "5m, 1h or 1d: windows of 10 s are in the memory of an agent";
        return match is_named {
            true => Err(bad("tier", RECENT, expected)),
            false => Ok(None),
        };
    };
    let (device, time) = (asked.device()?, asked.time()?);
    // Without a begin the question is about the whole history.
    let is_short = tier.is_none() && asked.query.get("from").is_some() && recent.has_all(time);
    if !is_named && !is_short {
        return Ok(None);
    }
    let Some(found) = recent.courses(device, time, WINDOWS_MAX) else {
        // A known device without I/O in the last hour.
        asked.subject()?;
        let none = document(ApiAnswer::Courses(Vec::new()), None);
        return Ok(is_named.then_some(none));
    };
    let RecentAnswer {
        courses,
        time,
        next_ns,
    } = found;
    let mut document = document(ApiAnswer::Courses(courses), time);
    document.next = next_ns.map(|from_ns| {
        let changed = [("from", &*time_words(from_ns)), ("tier", RECENT)];
        asked.query.link(asked.path, &changed)
    });
    Ok(Some(document))
}

fn glance(asked: &Asked<'_>) -> Result<ApiDocument, ApiRefusal> {
    if let Some(document) = recent_glance(asked)? {
        return Ok(document);
    }
    let tier = asked.query.get("tier").map(|word| {
        let tier = Tier::ALL.into_iter().find(|tier| tier.word() == word);
        tier.ok_or_else(|| bad("tier", word, "10s, 5m, 1h or 1d"))
    });
    let tier = tier.transpose()?;
    let Subject { series, mut time } = asked.subject()?;
    let rows = (WINDOWS_MAX / series.len()).max(1);
    let rows = i64::try_from(rows).unwrap_or(1);
    let tier = match tier {
        Some(tier) => {
            // Windows before these are gone.
            let oldest = asked.reader.oldest(tier)?;
            time.from_ns = time.from_ns.max(oldest.unwrap_or(time.from_ns));
            tier
        }
        None => tier_for(asked.reader, time, rows)?,
    };
    let first = Window::at(tier, time.from_ns).span();
    let limit = first.from_ns.saturating_add(rows * tier.width_ns());
    let is_cut = time.to_ns > limit;
    time.to_ns = time.to_ns.min(limit);
    let mut courses = Vec::new();
    for one in &series {
        if asked.budget.is_over() {
            return Err(ApiRefusal::Late);
        }
        let time = time.common(one.span.unwrap_or(span::NEVER));
        courses.push(course_in(asked.reader, one, time, tier)?);
    }
    let last = Window::at(tier, time.to_ns.saturating_sub(1)).span();
    let whole = (!time.is_empty()).then_some(Span {
        from_ns: first.from_ns,
        to_ns: last.to_ns,
    });
    let mut document = document(ApiAnswer::Courses(courses), whole);
    if is_cut {
        let changed = [("from", &*time_words(limit)), ("tier", tier.word())];
        document.next = Some(asked.query.link(asked.path, &changed));
    }
    Ok(document)
}

fn histograms(asked: &Asked<'_>) -> Result<ApiDocument, ApiRefusal> {
    // Windows of the last hour have closer bounds than those of the history.
    if let Some(recent) = asked.recent
        && asked.query.get("from").is_some()
        && let Some((made, whole)) = recent.histograms(asked.device()?, asked.time()?)
    {
        return Ok(document(ApiAnswer::Histograms(made), Some(whole)));
    }
    let subject = asked.subject()?;
    let (made, whole) = asked.profiles(&subject, |series, found| ApiHistograms {
        device: series.name().to_owned(),
        identity: series.identity.clone(),
        layer: series.layer.word(),
        from: time_words(found.span.from_ns),
        to: time_words(found.span.to_ns),
        ops: listing::histograms(&found.profile.ops),
        damaged: found.damaged,
    })?;
    Ok(document(ApiAnswer::Histograms(made), whole))
}

fn tables(asked: &Asked<'_>) -> Result<ApiDocument, ApiRefusal> {
    let skip = asked.skip()?;
    let subject = asked.subject()?;
    let rows_max = (ROWS_MAX / subject.series.len()).max(1);
    let end = skip.saturating_add(rows_max);
    let mut is_cut = false;
    let (made, whole) = asked.profiles(&subject, |series, found| {
        let table = &found.profile.places.table;
        is_cut |= table.len() > end;
        ApiTables {
            senders: senders_in(series, found),
            untabled_ios: found.untabled_ios,
            modulus_bytes: table.modulus_bytes(),
            are_latencies_shared: table.is_spread_unknown(),
            rows_total: table.len() as u64,
            rows: listing::rows(&found.profile, skip, rows_max),
        }
    })?;
    let mut document = document(ApiAnswer::Tables(made), whole);
    if is_cut {
        document.next = asked.behind(end);
    }
    Ok(document)
}
