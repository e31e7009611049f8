//! The report of `plumb check`: findings first, then the number of layers for each verdict, then the stack as a tree.

use std::collections::{HashMap, HashSet};

use plumb_diagnose::Diagnosis;
use plumb_diagnose::accept::{self, Accepted};
use plumb_geometry::plural;
use plumb_model::result::check::{CheckInput, Unseen};
use plumb_model::result::verdict::Verdict;
use plumb_model::{Finding, Reason, RuleId, Target};
use plumb_quoting::{Command, CommandLine, NoCommand};
use plumb_stack::{NodeId, Overall, Stack, Stand, Survey};

use crate::brief;
use crate::format::count;
use crate::run::Run;
use crate::text::alike::{self, groups, kinds};
use crate::text::page::Page;
use crate::text::{Detail, Paper, finding_lines};
use crate::verdict::{Grounds, Outcome, WhyUnknown, is_without_cost, reported};
use crate::words;

pub(crate) mod accepted;
mod json;
mod standing;
mod tree;

pub use json::json;
pub(crate) use json::{CheckResult, result};
pub(crate) use tree::lines as tree_lines;

pub(crate) use standing::listed;

/// Groups of equal findings of one kind that are printed in full; the others are named.
const FINDINGS_IN_FULL: usize = 2;

/// Everything that the report shows.
pub struct Check<'a> {
    /// The run of the program.
    pub run: &'a Run,
    /// Whether the layers are those of the host on which the program ran.
    pub is_of_this_host: bool,
    /// Whether the document has every extent of every file.
    pub is_full: bool,
    /// The inputs.
    pub inputs: &'a [CheckInput],
    /// The layers.
    pub stack: &'a Stack,
    /// The alignment of each of them.
    pub survey: &'a Survey,
    /// The layers that were asked about; `None` for all.
    pub wanted: Option<&'a HashSet<NodeId>>,
    /// The results of the rules.
    pub diagnosis: &'a Diagnosis,
    /// Findings that are accepted: counted, and without influence on the outcome.
    pub accepted: &'a Accepted,
    /// Findings on other devices than those asked about: counted, and without influence on the outcome.
    pub elsewhere: &'a [Finding],
    /// Devices whose labels and superblocks could not be read, with the partitions and file systems on them.
    pub unread: &'a [Target],
    /// The parts that were not visible.
    pub unseen: &'a [Unseen],
    /// Sentences that a reader must know.
    pub notes: &'a [String],
    /// The result. The exit status follows it.
    pub outcome: Outcome,
}

impl Check<'_> {
    pub(crate) fn wants(&self, id: NodeId) -> bool {
        self.wanted.is_none_or(|wanted| wanted.contains(&id))
    }

    /// The host whose layers were checked; `None` if it is not known.
    pub(crate) fn host(&self) -> Option<&str> {
        self.run.host.as_deref().filter(|_| self.is_of_this_host)
    }

    /// Numbers of devices, and of layers above them.
    pub(crate) fn extent(&self) -> (usize, usize) {
        let nodes = || self.stack.nodes().filter(|(id, _)| self.wants(*id));
        let leaves = nodes().filter(|(id, _)| self.stack.is_leaf(*id)).count();
        (leaves, nodes().count() - leaves)
    }

    /// `3 devices and 11 layers checked`.
    pub(crate) fn scope(&self) -> String {
        let (leaves, layers) = self.extent();
        format!(
            "{} and {} checked",
            plural(leaves as u64, "device"),
            plural(layers as u64, "layer")
        )
    }

    /// The verdict on the layout.
    pub(crate) fn verdict(&self) -> Verdict {
        self.grounds().verdict()
    }

    pub(crate) fn grounds(&self) -> Grounds<'_> {
        Grounds {
            outcome: self.outcome,
            findings: &self.diagnosis.findings,
            accepted: self.accepted.findings.len(),
            scope: self.scope(),
            fit: None,
            unknown: self.first_unknown(),
            unread: self.unread_words(),
            has_accepted_unseen: self.has_accepted_unseen(),
        }
    }

    /// The parts that were not visible, without accepted ones.
    pub(crate) fn unseen_that_count(&self) -> Vec<&Unseen> {
        let is_accepted = self.has_accepted_unseen();
        let counts = |one: &&Unseen| !(one.is_below_guest && is_accepted);
        self.unseen.iter().filter(counts).collect()
    }

    /// The parts of this host that could not be read, as a clause.
    fn unread_words(&self) -> Option<String> {
        let of_host = self.unseen.iter().filter(|one| !one.is_below_guest);
        let clauses: Vec<&str> = of_host.map(|one| one.clause.as_str()).collect();
        (!clauses.is_empty()).then(|| format!("not visible: {}", clauses.join(", ")))
    }

    /// Whether a layer or a rule is unknown and counts. The argument of `counts` is true for a layer that is
    /// unknown for one reason alone: this host cannot see the layers below a virtual disk.
    fn is_unknown_where(&self, counts: impl Fn(bool) -> bool) -> bool {
        let mut unjudged = self.diagnosis.unknown.iter();
        let mut tops = self.stack.tops().into_iter().filter(|id| self.wants(*id));
        unjudged
            .any(|one| one.rule.rule().decides && counts(accept::is_unseen_alone(self.stack, one)))
            || tops.any(|id| {
                self.survey.stand(id).is_some_and(|stand| {
                    stand.overall == Overall::Unknown
                        && counts(accept::stands_unseen_alone(self.stack, stand))
                })
            })
    }

    /// Whether an alignment is unknown, also if no rule had anything to judge. Layers that this host cannot see do not count if
    /// they are accepted.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.is_unknown_where(|is_unseen| !(is_unseen && self.accepted.unseen))
    }

    /// Whether everything that is unknown is below virtual disks, so that a guest can accept it.
    #[must_use]
    pub fn is_unseen_alone(&self) -> bool {
        self.outcome == Outcome::Unknown(WhyUnknown::Layout)
            && self.is_unknown_where(|is_unseen| is_unseen)
            && !self.is_unknown_where(|is_unseen| !is_unseen)
    }

    /// Whether a layer is unknown for layers that are accepted as they are.
    pub(crate) fn is_accepted_unseen(&self, stand: &Stand) -> bool {
        self.accepted.unseen && accept::stands_unseen_alone(self.stack, stand)
    }

    /// Whether layers below virtual disks were accepted, and there are some.
    pub(crate) fn has_accepted_unseen(&self) -> bool {
        self.accepted.unseen && self.is_unknown_where(|is_unseen| is_unseen)
    }

    /// The first thing that could not be judged, with the number of the others.
    fn first_unknown(&self) -> Option<String> {
        let mut unjudged = self.diagnosis.unknown.iter();
        let first = unjudged.find(|one| one.rule.rule().decides)?;
        let more = unjudged.filter(|one| one.rule.rule().decides).count();
        let why = words::reason(&first.reason);
        let on = match first.target.is_host() {
            true => "the host".to_owned(),
            false => standing::name(&first.target.device),
        };
        let more = match more {
            0 => String::new(),
            more => format!(", and {} more (-vv)", count(more as u64)),
        };
        Some(format!("{on}: {why}{more}"))
    }
}

/// The report as text, for 80 columns.
#[must_use]
pub fn text(check: &Check<'_>, detail: Detail, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    let verdict = check.verdict();
    if detail == Detail::Brief {
        let findings = &check.diagnosis.findings;
        brief::lines(&mut page, &verdict, check.outcome, findings, |page| {
            aside(page, check, "plumb check");
            unread(page, check.inputs);
            brief::unseen_lines(page, verdict.word, &check.unseen_that_count());
            if check.is_unseen_alone() {
                brief::accept_unseen_line(page);
            }
        });
        return page.text;
    }
    brief::first_line(&mut page, &verdict);
    page.line(headline(check));
    findings(&mut page, check, detail);
    aside(&mut page, check, "plumb check");
    if detail == Detail::All {
        unknown(&mut page, check);
    }
    summary(&mut page, check);
    tree::lines(&mut page, check);
    unseen(&mut page, check.unseen);
    if detail == Detail::All {
        doubts(&mut page, check);
        sources(&mut page, check);
    }
    brief::last_line(&mut page, &verdict);
    page.text
}

/// Findings that do not count: accepted ones, and those of other devices, which `command` shows.
pub(crate) fn aside(page: &mut Page, check: &Check<'_>, command: &str) {
    accepted::lines(page, check.accepted);
    accepted::elsewhere_line(page, check.elsewhere, command);
}

/// Inputs that could not be read.
fn unread(page: &mut Page, inputs: &[CheckInput]) {
    if inputs.iter().any(|input| input.error.is_some()) {
        page.gap();
    }
    for input in inputs {
        if let Some(error) = &input.error {
            // A place in the file begins with its path.
            let has_path = error
                .strip_prefix(&input.path)
                .is_some_and(|rest| rest.starts_with(':'));
            let words = match has_path {
                true => error.clone(),
                false => format!("{}: {error}", input.path),
            };
            page.wrapped("Not read: ", "  ", words);
        }
    }
}

/// How much was found in how much.
pub(crate) fn headline(check: &Check<'_>) -> String {
    let (leaves, layers) = check.extent();
    let some = |number: usize, noun: &str| plural(number as u64, noun);
    let number = check.diagnosis.findings.len();
    let found = if number == 0 {
        "no finding".to_owned()
    } else {
        some(number, "finding")
    };
    format!(
        "{found} in {} and {} above",
        some(leaves, "device"),
        some(layers, "layer")
    )
}

/// Findings of one kind and severity one after the other: equal ones as a group, the first groups in full, the others by name,
/// with the command that shows them.
pub(crate) fn findings(page: &mut Page, check: &Check<'_>, detail: Detail) {
    let is_all = detail == Detail::All;
    let findings = &check.diagnosis.findings;
    let in_brief = reported(check.outcome, findings);
    let shown = findings.iter().filter(|one| {
        let is_reported = in_brief.iter().any(|other| std::ptr::eq(*other, *one));
        is_all || is_reported || is_without_cost(one) || one.has_action()
    });
    for kind in kinds(shown) {
        let groups = groups(kind.iter().copied());
        let full = match !is_all && groups.len() > FINDINGS_IN_FULL + 1 {
            true => FINDINGS_IN_FULL,
            false => groups.len(),
        };
        let (long, short) = groups.split_at(full);
        for group in long {
            match is_all {
                true => each_lines(page, group),
                false => group_lines(page, check, group),
            }
        }
        let others: Vec<&Finding> = short.iter().flatten().copied().collect();
        if !others.is_empty() {
            let devices = others.iter().map(|other| other.target.device.as_str());
            let devices = listed(devices.collect());
            let (many, rule) = (count(others.len() as u64), others[0].rule());
            page.gap();
            page.wrapped(
                "  ",
                "  ",
                format!("{many} more of {rule}: {devices}. To show them:"),
            );
            command_of_all(page, check.run);
        }
    }
}

/// Equal findings, each in full.
fn each_lines(page: &mut Page, group: &[&Finding]) {
    group
        .iter()
        .for_each(|finding| finding_lines(page, finding));
    if let [_, others @ ..] = group
        && !others.is_empty()
    {
        page.gap();
        page.wrapped("  ", "  ", format!("{}.", alike::ONE_CAUSE));
    }
}

/// Equal findings: the first in full, and the names of the others.
fn group_lines(page: &mut Page, check: &Check<'_>, group: &[&Finding]) {
    let [first, others @ ..] = group else {
        return;
    };
    finding_lines(page, first);
    if !others.is_empty() {
        page.gap();
        page.wrapped("  ", "  ", alike::the_same_on(others) + " To show them:");
        command_of_all(page, check.run);
    }
}

fn command_of_all(page: &mut Page, run: &Run) {
    match all_of(run) {
        Ok(command) => page.command("    ", &command),
        Err(_) => page.line("    the same command with -vv"),
    }
}

/// The parts that were not visible, and the commands that would show them.
pub(crate) fn unseen(page: &mut Page, unseen: &[Unseen]) {
    if unseen.is_empty() {
        return;
    }
    page.heading("Not seen");
    for (at, one) in unseen.iter().enumerate() {
        page.wrapped("  ", "    ", &one.what);
        // One command may do for several in a row.
        if unseen
            .get(at + 1)
            .is_some_and(|next| next.commands == one.commands)
        {
            continue;
        }
        for command in &one.commands {
            page.command("    ", command);
        }
    }
}

/// The command of a run, printing everything.
fn all_of(run: &Run) -> Result<CommandLine, NoCommand> {
    let words = run.command.iter().skip(1);
    let is_detail = |word: &&String| matches!(word.as_str(), "-v" | "-vv" | "--verbose");
    let command = words
        .filter(|word| !is_detail(word))
        .fold(Command::new("plumb"), |command, word| command.arg(word));
    command.flags("-vv").line()
}

/// The subjects that rules could not judge: by rule and reason, with the devices.
pub(crate) fn unknown(page: &mut Page, check: &Check<'_>) {
    let unjudged = &check.diagnosis.unknown;
    if unjudged.is_empty() {
        return;
    }
    page.heading("Unknown");
    let mut gathered: Vec<(RuleId, &Reason, Vec<&Target>)> = Vec::new();
    let mut known = HashMap::new();
    for one in unjudged {
        // Reasons that differ only in the names of devices are one.
        let words = without_names(check.stack, &one.reason);
        let at = *known.entry((one.rule, words)).or_insert(gathered.len());
        match gathered.get_mut(at) {
            Some((.., targets)) => targets.push(&one.target),
            None => gathered.push((one.rule, &one.reason, vec![&one.target])),
        }
    }
    for (rule, reason, targets) in gathered {
        let why = if targets.len() > 1 {
            without_names(check.stack, reason)
        } else {
            words::reason(reason)
        };
        let devices = match targets.as_slice() {
            [only] if only.is_host() => "the host".to_owned(),
            _ => listed(targets.iter().map(|one| one.device.as_str()).collect()),
        };
        page.wrapped("  ", "    ", format!("{rule}: {devices}: {why}"));
    }
}

/// A reason with names of devices replaced by `its device`, and each clause once.
fn without_names(stack: &Stack, reason: &Reason) -> String {
    let why = words::reason(&reason.without_names());
    // The stack gives its reasons in words of its own.
    let Reason::Stack { .. } = reason else {
        return why;
    };
    let is_name = |word: &str| stack.find(word).is_some();
    let bare = |part: &str| {
        let words = part.split(' ').map(|word| {
            if is_name(word.trim_matches(',')) {
                "its device"
            } else {
                word
            }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let mut parts: Vec<String> = why.split("; ").map(bare).collect();
    parts.dedup();
    parts.join("; ")
}

/// The number of layers of each kind for each verdict.
pub(crate) fn summary(page: &mut Page, check: &Check<'_>) {
    let tallies = check.survey.tallies(check.stack, |id| check.wants(id));
    if tallies.is_empty() {
        return;
    }
    page.heading("Summary");
    for (kind, tally) in tallies {
        let of = count(tally.nodes);
        let parts = [
            (tally.misaligned, "misaligned"),
            (tally.unknown, "unknown"),
            (tally.aligned, "aligned on every grid that is known"),
        ];
        let parts = parts.iter().filter(|(number, _)| *number > 0);
        let parts: Vec<String> = parts
            .map(|(number, words)| format!("{} of {of} {words}", count(*number)))
            .collect();
        page.wrapped(
            "  ",
            "    ",
            format!("{}: {}", kind.text(), parts.join(", ")),
        );
    }
}

/// The statements of devices that are not believed, each statement once.
pub(crate) fn doubts(page: &mut Page, check: &Check<'_>) {
    let mut gathered: Vec<(String, Vec<&str>)> = Vec::new();
    for (id, node) in check.stack.nodes().filter(|(id, _)| check.wants(*id)) {
        for fact in check.stack.grids(id) {
            let plumb_stack::Belief::Doubted { why } = &fact.belief else {
                continue;
            };
            let what = format!(
                "{} of {} ({})",
                fact.what.text(),
                fact.granularity(),
                fact.source.word()
            );
            let words = format!("{what}: {}", crate::words::doubt(why));
            match gathered.iter_mut().find(|(known, _)| *known == words) {
                Some((_, devices)) => devices.push(&node.name),
                None => gathered.push((words, vec![&node.name])),
            }
        }
    }
    if gathered.is_empty() {
        return;
    }
    page.heading("Stated and not believed");
    for (words, devices) in gathered {
        page.wrapped("  ", "    ", format!("{}: {}", listed(devices), words));
    }
}

pub(crate) fn sources(page: &mut Page, check: &Check<'_>) {
    let has_unused = !check.accepted.unused.is_empty();
    if check.inputs.is_empty() && check.notes.is_empty() && !has_unused {
        return;
    }
    page.heading("Source");
    for input in check.inputs {
        let what = match (&input.error, &input.tool) {
            (Some(error), _) => format!("not read: {error}"),
            (None, tool) => {
                let tool = tool.as_deref().unwrap_or("unknown");
                let verified = if input.verified {
                    ""
                } else {
                    ", reader unverified on output of the real tool"
                };
                let over = match input.passed_over {
                    0 => String::new(),
                    over => format!(", {} passed over", count(over)),
                };
                format!(
                    "{tool}{verified}; {} understood{over}",
                    plural(input.understood, "record")
                )
            }
        };
        page.wrapped("  ", "    ", format!("{}: {what}", input.path));
    }
    for note in check.notes {
        page.wrapped("  note: ", "    ", note);
    }
    for note in accepted::unused(check.accepted) {
        page.wrapped("  note: ", "    ", note);
    }
}
