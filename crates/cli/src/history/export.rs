//! `plumb history export`: the totals of windows for other programs.

use std::path::Path;

use plumb_history::{GlanceRow, Reader, SeriesFacts, Span, Tier};
use plumb_model::result::history::HistoryAnswer;
use plumb_report::history as report;
use plumb_trace::parquet::table::{self, Cells, TableColumn};
use plumb_trace::write::{Gathered, Output};

use super::objects::{GRACE_NS, each_object, put_into_folder, times_over};
use super::{
    course_of, failed, last_ns, last_of_all, named, now_ns, print, seconds, span, stored_window,
    tier_for,
};
use crate::cli::{ExportForm, HistoryExport};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Version of the columns.
const PARQUET_VERSION: &str = "2";

/// Runs the command.
///
/// # Errors
/// When the history cannot be read, or the output cannot be written.
pub fn run(args: &HistoryExport) -> Result<Exit, Failure> {
    let reader = span::open(&args.folder.find()?)?;
    if let Some(folder) = &args.fleet {
        return into_fleet(&reader, args, folder);
    }
    let wanted = match &args.last {
        Some(last) => last_of_all(&reader, last)?,
        None => named(&reader, &args.spans, true)?,
    };
    let to = args.output.as_deref();
    match args.form {
        ExportForm::Parquet => {
            let to = to.ok_or_else(|| {
                Failure::usage(
                    "--as parquet: found no output, expected -o FILE (- is standard output)",
                )
            })?;
            let rows = write_parquet(&reader, &wanted, to)?;
            if to != Path::new("-") {
                let rows = plumb_geometry::plural(rows, "window");
                output::say(&format!("wrote {rows} to {}", to.display()));
            }
            Ok(Exit::Clean)
        }
        ExportForm::Csv | ExportForm::Json => {
            let courses = wanted
                .iter()
                .map(|(series, time)| course_of(&reader, series, *time, i64::MAX))
                .collect::<Result<Vec<_>, Failure>>()?;
            let is_json = args.form == ExportForm::Json;
            match to.filter(|to| *to != Path::new("-")) {
                None if is_json => print(&HistoryAnswer::Courses(courses), true, Exit::Clean),
                None => output::print(&report::csv(&courses)).map(|()| Exit::Clean),
                Some(to) => {
                    let text = match is_json {
                        true => super::document(&HistoryAnswer::Courses(courses))?,
                        false => report::csv(&courses),
                    };
                    output::write_file(to, text.as_bytes())?;
                    Ok(Exit::Clean)
                }
            }
        }
    }
}

/// Writes the objects of all devices that are not in the folder of a fleet yet.
fn into_fleet(reader: &Reader, args: &HistoryExport, folder: &Path) -> Result<Exit, Failure> {
    let last = args.last.as_deref().map(last_ns).transpose()?;
    let now_ns = now_ns();
    let from_ns = last.map_or(0, |ns| now_ns.saturating_sub(ns));
    let (mut written, mut known, mut damaged) = (0, 0, 0);
    for tier in args.tiers() {
        for time in times_over(reader, tier, from_ns, now_ns - GRACE_NS)? {
            damaged += each_object(reader, tier, time, &mut |object| {
                match put_into_folder(folder, object)? {
                    true => written += 1,
                    false => known += 1,
                }
                Ok(())
            })?;
        }
    }
    let objects = plumb_geometry::plural(written, "object");
    output::say(&format!(
        "wrote {objects} to {}; {known} of the history were there already",
        folder.display()
    ));
    if written + known == 0 {
        output::say(
            "an object holds a whole day, or an hour of 5-minute windows, and is made when that time is over",
        );
    }
    if damaged > 0 {
        let windows = plumb_geometry::plural(damaged, "damaged window");
        output::say(&format!("left out {windows}"));
        return Ok(Exit::Unknown);
    }
    Ok(Exit::Clean)
}

/// Name of this host.
pub fn host() -> String {
    let host = rustix::system::uname();
    host.nodename().to_string_lossy().into_owned()
}

/// The rows of a table in the making.
#[derive(Default)]
pub struct Rows {
    devices: Vec<String>,
    identities: Vec<String>,
    layers: Vec<String>,
    from: Vec<i64>,
    seconds: Vec<i64>,
    glances: Vec<GlanceRow>,
    /// Saved profiles: one for each row, or none at all.
    profiles: Vec<Vec<u8>>,
}

/// Writes the windows of devices, and returns their number.
fn write_parquet(
    reader: &Reader,
    wanted: &[(SeriesFacts, Span)],
    to: &Path,
) -> Result<u64, Failure> {
    let mut rows = Rows::default();
    for (series, time) in wanted {
        let time = time.common(series.span.unwrap_or(*time));
        let tier = tier_for(reader, time, i64::MAX)?;
        let windows = reader.glance(tier, time, Some(series.number));
        for row in windows.map_err(failed)? {
            // No column is a range.
            let has_means =
                || stored_window(reader, series, &row).map(|one| one.averages.is_some());
            if row.glance.ios > 0 || !has_means()? {
                rows.add(series, tier, row, None);
            }
        }
    }
    let count = rows.len() as u64;
    let output = Output::create(to).map_err(|error| Failure::failed(&error))?;
    rows.write(&host(), output)?;
    Ok(count)
}

impl Rows {
    /// Adds a window, with its profile or without.
    pub fn add(
        &mut self,
        series: &SeriesFacts,
        tier: Tier,
        row: GlanceRow,
        profile: Option<Vec<u8>>,
    ) {
        self.devices.push(series.name().to_owned());
        self.identities.push(series.identity.clone());
        self.layers.push(series.layer.word().to_owned());
        self.from.push(row.window.span().from_ns);
        self.seconds.push(whole(seconds(tier)));
        self.glances.push(row);
        self.profiles.extend(profile);
    }

    /// Number of windows.
    pub fn len(&self) -> usize {
        self.glances.len()
    }

    /// Bytes of the profiles.
    pub fn profiles_bytes(&self) -> usize {
        self.profiles.iter().map(Vec::len).sum()
    }

    /// The table as a file.
    ///
    /// # Errors
    /// If the library refuses the columns.
    pub fn into_parquet(self, host: &str) -> Result<Vec<u8>, Failure> {
        let gathered = Gathered::default();
        self.write(host, Output::gather("an object of the history", &gathered))?;
        Ok(gathered.take())
    }

    fn write(self, host: &str, output: Output) -> Result<(), Failure> {
        let facts = [
            ("plumb.history.version", PARQUET_VERSION),
            ("plumb.version", env!("CARGO_PKG_VERSION")),
        ];
        table::write(&self.columns(host), &facts, output).map_err(|error| Failure::failed(&error))
    }

    /// The columns of the document of the format.
    fn columns(self, host: &str) -> Vec<TableColumn> {
        let glances = &self.glances;
        let count = |of: fn(&GlanceRow) -> u64| {
            Cells::Numbers(glances.iter().map(|row| whole(of(row))).collect())
        };
        let perhaps = |of: fn(&GlanceRow) -> Option<u64>| {
            Cells::Perhaps(glances.iter().map(|row| of(row).map(whole)).collect())
        };
        let hosts = vec![host.to_owned(); glances.len()];
        let columns = [
            ("host", Cells::Words(hosts)),
            ("device", Cells::Words(self.devices)),
            ("identity", Cells::Words(self.identities)),
            ("layer", Cells::Words(self.layers)),
            ("from", Cells::Times(self.from)),
            ("seconds", Cells::Numbers(self.seconds)),
            ("ios", count(|row| row.glance.ios)),
            ("reads", count(|row| row.glance.reads)),
            ("writes", count(|row| row.glance.writes)),
            ("read_bytes", count(|row| row.glance.read_bytes)),
            ("write_bytes", count(|row| row.glance.write_bytes)),
            ("misaligned_4k", perhaps(|row| row.glance.off_4k)),
            ("timed", count(|row| row.glance.timed)),
            ("p50_ns", perhaps(|row| row.glance.p50_ns)),
            ("p99_ns", perhaps(|row| row.glance.p99_ns)),
            ("max_ns", perhaps(|row| row.glance.max_ns)),
            ("to_4k", count(|row| row.glance.mix[0])),
            ("to_16k", count(|row| row.glance.mix[1])),
            ("to_64k", count(|row| row.glance.mix[2])),
            ("to_256k", count(|row| row.glance.mix[3])),
            ("longer", count(|row| row.glance.mix[4])),
        ];
        let profiles = Some(self.profiles).filter(|profiles| !profiles.is_empty());
        let profiles = profiles.map(|profiles| ("profile", Cells::Blobs(profiles)));
        let column = |(name, cells)| TableColumn { name, cells };
        columns.into_iter().chain(profiles).map(column).collect()
    }
}

/// Engines read signed numbers; larger ones become the largest.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
