//! `plumb diagnose`: the layout of this host's storage and the I/O of its disks, joined into one report.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use plumb_diagnose::accept::Accepted;
use plumb_diagnose::joined::{self, Joined};
use plumb_diagnose::layout::{Known, Sender as By, Watch};
use plumb_diagnose::{Analysis, Diagnosis};
use plumb_geometry::Grid;
use plumb_model::Finding;
use plumb_model::result::check::Unseen;
use plumb_model::result::watch::{IntervalSender, WatchSummary};
use plumb_report::check::Check;
use plumb_report::diagnose::{Diagnose as Page, json, text};
use plumb_report::verdict::{Outcome, WhyUnknown};
use plumb_report::{Report, Section, html};
use plumb_stack::{NodeId, Stack, Survey};

use crate::check::sources::GatheredHost;
use crate::check::{self, advice, sources, target};
use crate::cli::Diagnose;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{output, unseen, watch};

mod faults;
mod observe;

use observe::{Observation, WatchedDisk};

/// Runs the command. The report names the parts that are not permitted, so that it never ends for want of permission.
///
/// # Errors
/// When nothing can be looked at, or a requested file could not be written.
pub fn run(args: &Diagnose) -> Result<Exit, Failure> {
    diagnose(args).map_err(Failure::not_for_permission)
}

fn diagnose(args: &Diagnose) -> Result<Exit, Failure> {
    let outputs: Vec<&Path> = args
        .html
        .iter()
        .chain(&args.save)
        .map(PathBuf::as_path)
        .collect();
    output::may_write(&[], &outputs)?;
    let config = args.accepting.read(true)?;
    let host = HostStorage::look(args)?;
    let disks = observe::disks(&host.stack, host.wanted.as_ref());
    let mut unseen = Vec::new();
    let seen = host.watch(args, &disks, &mut unseen)?;
    unseen.extend(unseen::content(
        &host.stack,
        host.wanted.as_ref(),
        &host.gathered.unread,
    ));
    unseen.extend(unseen::below(&host.stack, host.wanted.as_ref()));
    let known = host.known(args, seen.as_ref());
    let profiles = seen.as_ref().map(|seen| &seen.profiles);
    let mut joined = joined::join(&host.stack, &known, profiles, &args.beneath.grid);
    let elsewhere = host
        .wanted
        .as_ref()
        .map(|wanted| check::keep(&mut joined.diagnosis, wanted))
        .unwrap_or_default();
    let judged = advice::Judged {
        stack: &host.stack,
        known: &known,
        profiles,
    };
    advice::with_commands(&args.beneath, false, judged, &mut joined.diagnosis);
    let aside = Aside {
        accepted: config.apply(&mut joined.diagnosis, &host.stack),
        elsewhere,
    };
    match (&args.save, &seen) {
        (Some(path), Some(seen)) => seen.whole.save(path)?,
        (Some(path), None) => output::say(&format!(
            "plumb: {}: not written, since nothing was watched",
            path.display()
        )),
        (None, _) => {}
    }
    report(args, &host, &disks, seen.as_ref(), &joined, &aside, &unseen)
}

/// Findings that do not count.
struct Aside {
    accepted: Accepted,
    elsewhere: Vec<Finding>,
}

/// The storage of this host.
struct HostStorage {
    gathered: GatheredHost,
    stack: Stack,
    target: Option<NodeId>,
    wanted: Option<HashSet<NodeId>>,
}

impl HostStorage {
    fn look(args: &Diagnose) -> Result<HostStorage, Failure> {
        let known = args.beneath.catalogue()?;
        let mut gathered = GatheredHost::default();
        sources::live(args.target.as_deref(), &mut gathered, &[])?;
        args.beneath.give(&known, &mut gathered.builder)?;
        let stack = std::mem::take(&mut gathered.builder).finish();
        if stack.nodes().next().is_none() {
            return Err(Failure::unknown("found no block device on this host"));
        }
        let target = target::find(&stack, args.target.as_deref(), gathered.target)?;
        let wanted = target.map(|id| target::around(&stack, id));
        Ok(HostStorage {
            gathered,
            stack,
            target,
            wanted,
        })
    }

    /// The I/O of the disks for a while; `None` if nobody asked for it, or it cannot be seen.
    fn watch(
        &self,
        args: &Diagnose,
        disks: &[WatchedDisk],
        unseen: &mut Vec<Unseen>,
    ) -> Result<Option<Observation>, Failure> {
        if args.watch.is_zero() {
            return Ok(None);
        }
        if disks.is_empty() {
            unseen.push(unseen::no_requests());
            return Ok(None);
        }
        let tables = joined::settings(&self.stack, &args.beneath.grid);
        let outputs: Vec<PathBuf> = args.html.iter().chain(&args.save).cloned().collect();
        match observe::watch(disks, self.wanted.is_none(), args.watch, tables, &outputs)? {
            Ok(seen) => Ok(Some(seen)),
            Err(why) => {
                unseen.push(unseen::io(&why));
                Ok(None)
            }
        }
    }

    /// The facts for the rules beside the layers.
    fn known(&self, args: &Diagnose, seen: Option<&Observation>) -> Known {
        let watch = seen.map(|seen| Watch {
            seconds: seen.seconds,
            senders: seen
                .processes
                .iter()
                .map(|one| By {
                    device: one.device.clone(),
                    comm: one.comm.clone(),
                    ios: one.ios,
                    faults: seen.faults.faults_of(one.pid),
                })
                .collect(),
        });
        Known {
            page: args.beneath.page,
            segment: args.beneath.segment_bytes(),
            volume: self.target,
            watch,
            ..Known::default()
        }
    }
}

/// Prints and writes the result.
fn report(
    args: &Diagnose,
    host: &HostStorage,
    disks: &[WatchedDisk],
    seen: Option<&Observation>,
    joined: &Joined<'_>,
    aside: &Aside,
    unseen: &[Unseen],
) -> Result<Exit, Failure> {
    let survey = Survey::judge(&host.stack);
    let mut notes = host.stack.notes().to_vec();
    let mut sources = vec!["this host: sysfs and the contents of its disks".to_owned()];
    if let Some(seen) = seen {
        notes.extend(seen.whole.saved.notes.iter().cloned());
        notes.extend(
            seen.gone
                .iter()
                .map(|name| format!("{name} went away while it was watched")),
        );
        sources.extend(seen.whole.saved.sources.iter().cloned());
    }
    let version = env!("CARGO_PKG_VERSION");
    let run = crate::this_run::now();
    let diagnosis = &joined.diagnosis;
    let sections = joined
        .seen
        .iter()
        .map(|(profile, analysis)| Section { profile, analysis });
    let io = Report {
        title: args.target.as_ref().map_or_else(
            || "this host".to_owned(),
            |target| target.display().to_string(),
        ),
        version,
        command: crate::typed::for_page(),
        sources: &sources,
        notes: &notes,
        sections: sections.collect(),
        diagnosis,
        // The verdict of a diagnosis is that of the whole page.
        outcome: Outcome::Clean,
    };
    let unread = host.gathered.unread_layers(&host.stack);
    let check = Check {
        run: &run,
        is_of_this_host: true,
        is_full: false,
        inputs: &[],
        stack: &host.stack,
        survey: &survey,
        wanted: host.wanted.as_ref(),
        diagnosis,
        accepted: &aside.accepted,
        elsewhere: &aside.elsewhere,
        unread: &unread,
        unseen,
        notes: &notes,
        outcome: Outcome::Clean,
    };
    let watched = seen.map(|seen| watched(disks, seen, joined));
    let mut page = Page { check, io, watched };
    page.check.outcome = outcome(args, seen, joined, &page);
    if let Some(path) = &args.html {
        output::write_file(path, html::diagnosed(&page).as_bytes())?;
    }
    let shown = if args.json {
        json(&page).map_err(|error| Failure::failed(&error))? + "\n"
    } else {
        output::drawn(text(
            &page,
            args.verbosity.detail(),
            output::paper(args.color),
        ))
    };
    output::print(&shown)?;
    Ok(page.check.outcome.into())
}

fn watched<'a>(
    disks: &'a [WatchedDisk],
    seen: &'a Observation,
    joined: &'a Joined<'_>,
) -> WatchSummary<'a> {
    let grid_of = |disk: &str| {
        let of_disk = joined
            .seen
            .iter()
            .find(|(profile, _)| profile.device == disk);
        let grid = of_disk.and_then(|(_, analysis)| first_grid(analysis));
        grid.unwrap_or(Grid::ASSUMED)
    };
    let senders: Vec<IntervalSender<'_>> = seen
        .processes
        .iter()
        .map(|process| watch::sender(process, &seen.seen_again, &grid_of(&process.disk)))
        .collect();
    WatchSummary {
        seconds: seen.seconds,
        disks: disks.iter().map(|disk| disk.name.as_str()).collect(),
        too_few: joined.too_few.clone(),
        senders,
    }
}

fn first_grid(analysis: &Analysis) -> Option<Grid> {
    analysis.device()?.grids.first().map(|fit| fit.grid)
}

fn outcome(
    args: &Diagnose,
    seen: Option<&Observation>,
    joined: &Joined<'_>,
    page: &Page<'_>,
) -> Outcome {
    let diagnosis: &Diagnosis = &joined.diagnosis;
    if diagnosis
        .worst()
        .is_some_and(|worst| args.fail_on.covers(worst))
    {
        return Outcome::Findings;
    }
    let is_watched = seen.is_some_and(|seen| !seen.whole.is_partial());
    if !args.watch.is_zero() && !is_watched {
        Outcome::Unknown(WhyUnknown::NotWatched)
    } else if !args.watch.is_zero() && joined.seen.len() <= joined.too_few.len() {
        Outcome::Unknown(WhyUnknown::TooFewIos)
    } else if page.check.is_unknown() {
        Outcome::Unknown(WhyUnknown::Layout)
    } else {
        Outcome::Clean
    }
}
