//! Findings over time: the agent judges the I/O of each period and each survey of the layout, and reports a finding when it appears, worsens, or goes.
//!
//! The history keeps each finding from the time at which it appeared to that at which it went, also across a restart of the agent.
//!
//! A finding goes when its rule looked at the I/O of the same place and found nothing. A device without I/O, a rule that could not tell,
//! and a weaker finding at the same place leave it as it is: a share near a threshold would otherwise come and go all day. A finding about
//! the layout goes when a survey that could read its disk no longer has it.

use std::collections::{BTreeMap, BTreeSet};

use plumb_capture::Recorder;
use plumb_diagnose::{Diagnosis, Questions, analyze, diagnose, diagnose_answers};
use plumb_history::{FindingInterval, FindingKey, FindingStep};
use plumb_model::result::history::FindingChange;
use plumb_model::{Finding, Part, Reason, RuleId, Severity, Target};
use plumb_profile::Profile;
use plumb_profile::answers::SingleIo;
use plumb_profile::profile::ProfileSet;
use plumb_quoting::json;
use plumb_report::exports::FindingMetrics;
use plumb_stack::Obstacle;
use serde::{Deserialize, Serialize};

use super::identity::is_path_of;
use super::survey::LayoutSurvey;
use crate::config::Config;

/// Cap on the rows of a table, so that 200 busy devices take no more than 15 MB. Figures of a full table are ranges.
const ROWS_MAX: usize = 1024;
/// The layer of findings about the layout, in place of one at which I/O were seen.
const LAYOUT: &str = "layout";
/// I/O without a failure after which a device fails no more.
const IOS_WITHOUT_FAILURE: u64 = 1000;

/// The findings that are present.
#[derive(Default)]
pub struct Judge {
    /// The I/O of the period.
    profiles: ProfileSet,
    /// Identities of the devices, by name.
    identities: BTreeMap<String, String>,
    /// The begin of the period on the clock of the programs.
    from_ns: u64,
    present: Vec<(Place, Finding)>,
    /// Findings that the configuration of the host accepts: they are no news.
    config: Config,
    /// The places that the last survey accepts.
    accepted: Vec<Place>,
}

/// The place of a finding. A name may be that of another disk by now.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    rule: RuleId,
    on: Location,
}

/// A finding that is present.
pub struct PresentFinding {
    /// The finding.
    pub finding: FindingMetrics,
    /// The identity of the device whose I/O show it; absent for a finding about the layout.
    pub seen_on: Option<String>,
}

/// The part of a place that the history stores as words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// WWN, serial number or UUID; a name without them.
    identity: String,
    layer: String,
    part: Option<Part>,
}

impl Location {
    /// Reads the words of the history; `None` for those of another version.
    #[must_use]
    pub fn parse(words: &str) -> Option<Location> {
        json::from_slice(words.as_bytes()).ok()
    }

    /// Whether it is a device, or a partition of a device.
    #[must_use]
    pub fn is_on(&self, identity: &str) -> bool {
        let behind = self.identity.strip_prefix(identity);
        behind.is_some_and(|behind| behind.is_empty() || behind.starts_with("-part"))
    }

    /// Whether it is on the layout of the disk to which a path leads: all paths have one layout.
    #[must_use]
    pub fn is_on_disk_of(&self, path: &str) -> bool {
        let disk = self.identity.split("-part").next().unwrap_or_default();
        self.layer == LAYOUT && is_path_of(path, disk)
    }
}

/// A finding that appeared, worsened or went.
pub struct Change {
    /// The kind of change.
    pub kind: FindingChange,
    /// The finding; one that went as it was last.
    pub finding: Finding,
    place: Place,
}

impl Change {
    /// The identity of the place.
    pub fn identity(&self) -> &str {
        &self.place.on.identity
    }

    /// The step for the history; `None` if it cannot be written as JSON.
    pub fn step(&self) -> Option<(FindingKey, FindingStep)> {
        let key = FindingKey {
            rule: self.place.rule.name().to_owned(),
            place: json::exact(&self.place.on).ok()?,
        };
        let step = match self.kind {
            FindingChange::Gone => FindingStep::Gone,
            FindingChange::Appeared | FindingChange::Worsened => FindingStep::Found {
                severity: self.finding.severity.word().to_owned(),
                facts: json::exact(&self.finding).ok()?,
            },
        };
        Some((key, step))
    }
}

impl Judge {
    /// A judge that knows the findings of an earlier run: it reports them when they worsen or go. Findings of a newer version are left out.
    pub fn resume(earlier: &[FindingInterval]) -> Judge {
        let mut judge = Judge::default();
        judge.recall(earlier);
        judge
    }

    /// Adds the findings of an earlier run to those that are present.
    pub fn recall(&mut self, earlier: &[FindingInterval]) {
        for interval in earlier {
            let finding: Option<Finding> = json::from_slice(interval.facts.as_bytes()).ok();
            let on = Location::parse(&interval.key.place);
            let (Some(finding), Some(on)) = (finding, on) else {
                continue;
            };
            let rule = finding.rule();
            let place = Place { rule, on };
            if self.present.iter().all(|(known, _)| *known != place) {
                self.present.push((place, finding));
            }
        }
    }

    /// Accepts findings from now on.
    pub fn accept(&mut self, config: Config) {
        self.config = config;
    }

    /// The findings that are present and not accepted.
    pub fn present(&self) -> impl Iterator<Item = PresentFinding> {
        let counts = |(place, finding): &&(Place, Finding)| {
            !self.accepted.contains(place) && !self.config.accepts(finding)
        };
        self.present.iter().filter(counts).map(|(place, finding)| {
            let identity = &place.on.identity;
            PresentFinding {
                finding: FindingMetrics {
                    rule: place.rule,
                    severity: finding.severity,
                    device: finding.target.device.clone(),
                    part: match &finding.target.part {
                        Some(Part::Partition(name)) => name.clone(),
                        _ => String::new(),
                    },
                },
                seen_on: (place.on.layer != LAYOUT).then(|| identity.clone()),
            }
        })
    }

    /// Adds the I/O of a device since the last reading.
    pub fn add(&mut self, identity: &str, profile: &Profile) {
        let mut profile = profile.clone();
        profile.limit_rows(ROWS_MAX);
        self.profiles.add(&profile);
        let name = profile.device.clone();
        self.identities.insert(name, identity.to_owned());
    }

    /// Ends a period: judges its I/O, and returns the changes.
    pub fn end_period(&mut self) -> Vec<Change> {
        let profiles = std::mem::take(&mut self.profiles);
        let from_ns = std::mem::replace(&mut self.from_ns, Recorder::now_ns());
        let mut changes = self.end_of_renamed();
        for profile in profiles.iter() {
            let mut profile = profile.clone();
            forget_earlier(&mut profile, from_ns);
            let mut found = judge(&profile);
            let identity = self.identities.get(&profile.device);
            for finding in &mut found.findings {
                finding.target.identity = identity.filter(|one| **one != profile.device).cloned();
            }
            changes.extend(self.end_of_findings(&profile, &found));
            // An accepted finding is no news, and still there.
            found
                .findings
                .retain(|finding| !self.config.accepts(finding));
            for finding in found.findings {
                changes.extend(self.find(self.place(&profile, &finding), finding));
            }
        }
        changes
    }

    /// Judges the layout by a survey, and returns the changes.
    pub fn survey(&mut self, survey: LayoutSurvey) -> Vec<Change> {
        // An accepted finding is no news, and still there.
        let there = survey.findings.iter().chain(&survey.accepted);
        let there: Vec<Place> = there.map(place_in_layout).collect();
        self.accepted = survey.accepted.iter().map(place_in_layout).collect();
        let is_open = |place: &Place| {
            let is_of_place = |target: &Target| on_layout(target) == place.on;
            let is_unknown = survey.unknown.iter().any(|unknown| {
                unknown.rule == place.rule
                    && !fits_so_far(&unknown.reason)
                    && (unknown.target.is_host() || is_of_place(&unknown.target))
            });
            is_unknown || survey.unread.iter().any(is_of_place)
        };
        let mut changes = self.remove_gone(|place| {
            place.on.layer == LAYOUT && !there.contains(place) && !is_open(place)
        });
        for finding in survey.findings {
            changes.extend(self.find(place_in_layout(&finding), finding));
        }
        changes
    }

    fn place(&self, profile: &Profile, finding: &Finding) -> Place {
        let identity = self.identities.get(&profile.device);
        Place {
            rule: finding.rule(),
            on: Location {
                identity: identity.unwrap_or(&profile.device).clone(),
                layer: profile.layer.word().to_owned(),
                part: finding.target.part.clone(),
            },
        }
    }

    /// The findings on a device that its I/O of a period no longer show.
    fn end_of_findings(&mut self, profile: &Profile, found: &Diagnosis) -> Vec<Change> {
        let again = found.findings.iter();
        let again: Vec<Place> = again.map(|finding| self.place(profile, finding)).collect();
        let Some(identity) = self.identities.get(&profile.device).cloned() else {
            return Vec::new();
        };
        self.remove_gone(|place| {
            let is_judged = place.on.identity == identity && place.on.layer == profile.layer.word();
            is_judged && !again.contains(place) && finds_nothing(profile, found, place)
        })
    }

    /// The findings on identities that no disk has any more: a disk gets the identity of a path when a second path to it appears, and that
    /// of the disk when one is left. The rules find the defect again under the new identity.
    fn end_of_renamed(&mut self) -> Vec<Change> {
        let identities: BTreeSet<String> = self.identities.values().cloned().collect();
        self.remove_gone(|place| {
            let before = &place.on.identity;
            let is_renamed = |now: &String| is_path_of(now, before) || is_path_of(before, now);
            place.on.layer != LAYOUT
                && !identities.contains(before)
                && identities.iter().any(is_renamed)
        })
    }

    /// Removes findings, and returns their ends as changes.
    fn remove_gone(&mut self, is_gone: impl Fn(&Place) -> bool) -> Vec<Change> {
        let gone = self.present.extract_if(.., |(place, _)| is_gone(place));
        let changes = gone.map(|(place, finding)| Change {
            kind: FindingChange::Gone,
            finding,
            place,
        });
        changes.collect()
    }

    fn find(&mut self, place: Place, finding: Finding) -> Option<Change> {
        let known = self.present.iter_mut().find(|(known, _)| *known == place);
        let kind = match known {
            Some((_, known)) if finding.severity > known.severity => {
                known.clone_from(&finding);
                FindingChange::Worsened
            }
            Some((_, known)) => {
                // A disk may have another name by now.
                known.target = finding.target;
                return None;
            }
            None if finding.severity >= Severity::Warning => {
                self.present.push((place.clone(), finding.clone()));
                FindingChange::Appeared
            }
            _ => return None,
        };
        Some(Change {
            kind,
            finding,
            place,
        })
    }
}

/// Whether a rule found no defect on all grids that are visible, and could not tell for those beyond them alone.
fn fits_so_far(reason: &Reason) -> bool {
    match reason {
        Reason::NothingBeyond { .. } => true,
        Reason::Stack { because, more } => {
            let is_beyond = |why: &Obstacle| {
                matches!(
                    why,
                    Obstacle::BelowVirtualDisk { .. } | Obstacle::NothingBeyond { .. }
                )
            };
            *more == 0 && because.iter().all(is_beyond)
        }
        _ => false,
    }
}

/// The place of a finding about the layout.
fn place_in_layout(finding: &Finding) -> Place {
    Place {
        rule: finding.rule(),
        on: on_layout(&finding.target),
    }
}

/// A target in the layout. Two paths to one LUN have one identity, and are one place.
fn on_layout(target: &Target) -> Location {
    Location {
        identity: target.identity.as_ref().unwrap_or(&target.device).clone(),
        layer: LAYOUT.to_owned(),
        part: target.part.clone(),
    }
}

/// Judges a device, also one that completes nothing.
fn judge(profile: &Profile) -> Diagnosis {
    let questions = Questions::default();
    let analysis = analyze(profile, None, &questions);
    match profile.ios() {
        0 => diagnose_answers(profile, &analysis, &questions),
        _ => diagnose(profile, &analysis, &questions),
    }
}

/// The programs keep single I/O since the agent began; the period has only those that ended in it.
fn forget_earlier(profile: &mut Profile, from_ns: u64) {
    if let Some(answers) = &mut profile.answers {
        let is_later = |io: &SingleIo| io.at_ns >= from_ns;
        answers.slowest.retain(is_later);
        answers.failed.retain(is_later);
    }
}

/// Whether the rule of a place looked and found nothing there.
fn finds_nothing(profile: &Profile, found: &Diagnosis, place: &Place) -> bool {
    if place.rule == RuleId::FailingIo {
        return profile.ios() >= IOS_WITHOUT_FAILURE;
    }
    // I/O that fit the assumed grid show no misfit on that grid, whatever the real one is.
    let fits_assumed = found.unknown.iter().any(|one| {
        one.rule == place.rule
            && one.target.part == place.on.part
            && matches!(one.reason, Reason::BeyondAssumed { .. })
    });
    fits_assumed || found.silent.contains(&place.rule)
}

#[cfg(test)]
mod tests {
    use plumb_profile::{Collector, Settings};
    use plumb_trace::{Batch, Clock, Event, Layer, Names, Op, SourceInfo};

    use super::*;

    /// Reads of 8 KiB in random order, this far past a page, and slower for it.
    fn period(device: &str, ios: u64, past: u64) -> ProfileSet {
        let mut names = Names::default();
        let number = names.device(device);
        let mut batch = Batch::default();
        for at in 0..ios {
            let start = at * 7919 % 65_536 * 8192 + past;
            let time_ns = at as i64 * 1_000_000;
            let mut event = Event::new(time_ns, number, Layer::Request, Op::Read, start, 8192);
            event.device_ns = Some(100_000 + past as i64 * 100 + at as i64 % 7);
            batch.push(&event);
        }
        batch.names = std::sync::Arc::new(names);
        let mut collector = Collector::new(&Settings::default()).expect("a modulus");
        collector.set_clock(Clock::Boot);
        collector.fold(&batch);
        collector.finish(&SourceInfo::default())
    }

    fn changes(judge: &mut Judge, profiles: &ProfileSet) -> Vec<(FindingChange, RuleId)> {
        for profile in profiles.iter() {
            judge.add(&format!("wwn of {}", profile.device), profile);
        }
        let changes = judge.end_period().into_iter();
        let changes = changes.map(|change| (change.kind, change.finding.rule()));
        changes
            .filter(|(_, rule)| *rule == RuleId::MisalignedIo)
            .collect()
    }

    /// A second path appears and goes: the finding has the identity of the disk, of a path, and of the disk again, and is there once.
    #[test]
    fn a_finding_follows_the_identity_of_its_disk() {
        let mut judge = Judge::default();
        let profiles = period("sda", 3000, 512);
        let mut steps = |identity: &str| -> Vec<(FindingChange, String)> {
            for profile in profiles.iter() {
                judge.add(identity, profile);
            }
            let changes = judge.end_period().into_iter();
            let changes = changes.filter(|change| change.finding.rule() == RuleId::MisalignedIo);
            changes
                .map(|change| (change.kind, change.identity().to_owned()))
                .collect()
        };
        let one = |kind, identity: &str| (kind, identity.to_owned());
        use FindingChange::{Appeared, Gone};
        assert_eq!(steps("naa.1"), [one(Appeared, "naa.1")]);
        let path = "naa.1/2:0:0:1";
        assert_eq!(steps(path), [one(Gone, "naa.1"), one(Appeared, path)]);
        assert_eq!(steps(path), []);
        assert_eq!(steps("naa.1"), [one(Gone, path), one(Appeared, "naa.1")]);
    }

    #[test]
    fn all_paths_have_the_layout_of_their_disk() {
        let location = |identity: &str, layer: &str| Location {
            identity: identity.to_owned(),
            layer: layer.to_owned(),
            part: None,
        };
        for (identity, layer, expected) in [
            ("naa.1", LAYOUT, true),
            ("naa.1-part2", LAYOUT, true),
            ("naa.11", LAYOUT, false),
            // I/O of one path say nothing about another one.
            ("naa.1", "request", false),
        ] {
            let found = location(identity, layer).is_on_disk_of("naa.1/2:0:0:1");
            assert_eq!(found, expected, "{identity} {layer}");
        }
    }

    /// Findings of an earlier run that come late neither replace nor double those that are present.
    #[test]
    fn late_findings_are_added_once() {
        let interval = |facts: &Finding, place: &Place| FindingInterval {
            key: FindingKey {
                rule: place.rule.name().to_owned(),
                place: json::exact(&place.on).expect("JSON"),
            },
            severity: facts.severity.word().to_owned(),
            facts: json::exact(facts).expect("JSON"),
            appeared_ns: 0,
            changed_ns: 0,
            went_ns: None,
        };
        let mut earlier = Judge::default();
        changes(&mut earlier, &period("sda", 2000, 512));
        changes(&mut earlier, &period("sdb", 2000, 512));
        let all: Vec<FindingInterval> = earlier
            .present
            .iter()
            .map(|(place, finding)| interval(finding, place))
            .collect();
        let mut judge = Judge::default();
        changes(&mut judge, &period("sda", 2000, 512));
        judge.recall(&all);
        assert_eq!(judge.present.len(), earlier.present.len());
        assert_eq!(
            changes(&mut judge, &period("sdb", 2000, 0)),
            [(FindingChange::Gone, RuleId::MisalignedIo)]
        );
    }

    #[test]
    fn a_finding_is_reported_when_it_appears_and_goes() {
        let mut judge = Judge::default();
        let (bad, good) = (period("sda", 2000, 512), period("sda", 2000, 0));
        assert_eq!(changes(&mut judge, &good), []);
        assert_eq!(
            changes(&mut judge, &bad),
            [(FindingChange::Appeared, RuleId::MisalignedIo)]
        );
        assert_eq!(changes(&mut judge, &bad), [], "once");
        // No I/O, and too few of them, say nothing; nor does another device.
        assert_eq!(changes(&mut judge, &ProfileSet::default()), []);
        assert_eq!(changes(&mut judge, &period("sda", 3, 0)), []);
        assert_eq!(changes(&mut judge, &period("sdb", 2000, 0)), []);
        assert_eq!(
            changes(&mut judge, &good),
            [(FindingChange::Gone, RuleId::MisalignedIo)]
        );
        assert_eq!(changes(&mut judge, &good), []);
        assert_eq!(
            changes(&mut judge, &bad),
            [(FindingChange::Appeared, RuleId::MisalignedIo)]
        );
        // Another disk with this name.
        let [profile] = &bad.iter().collect::<Vec<_>>()[..] else {
            panic!("one profile")
        };
        judge.add("another", profile);
        let again = judge.end_period();
        let of_rule = |change: &&Change| change.finding.rule() == RuleId::MisalignedIo;
        let kinds: Vec<FindingChange> = again.iter().filter(of_rule).map(|one| one.kind).collect();
        assert_eq!(kinds, [FindingChange::Appeared]);
    }

    /// An accepted finding is no news, and no metric; it is still there, and news again when nobody accepts it any more.
    #[test]
    fn accepted_findings_are_no_news() {
        let (bad, good) = (period("sda", 2000, 512), period("sda", 2000, 0));
        let misaligned = |judge: &Judge| {
            let present = judge.present();
            present
                .filter(|one| one.finding.rule == RuleId::MisalignedIo)
                .count()
        };
        for device in ["sda", "/dev/sda", "wwn of sda"] {
            let text = format!(
                "[[accept]]\nrule = \"misaligned-io\"\ndevice = \"{device}\"\nreason = \"an archive\"\n"
            );
            let config = Config::parse("config.toml", &text).expect("a file without mistakes");
            let mut judge = Judge::default();
            judge.accept(config.clone());
            assert_eq!(changes(&mut judge, &bad), [], "{device}");
            assert_eq!(misaligned(&judge), 0);
            // Another disk has it as well.
            assert_eq!(
                changes(&mut judge, &period("sdb", 2000, 512)),
                [(FindingChange::Appeared, RuleId::MisalignedIo)]
            );
            judge.accept(Config::default());
            assert_eq!(
                changes(&mut judge, &bad),
                [(FindingChange::Appeared, RuleId::MisalignedIo)]
            );
            assert_eq!(misaligned(&judge), 2);
            judge.accept(config.clone());
            assert_eq!(misaligned(&judge), 1, "at once");
            assert_eq!(changes(&mut judge, &bad), [], "still there");
            // A period without I/O, or with too few of them, changes nothing.
            assert_eq!(changes(&mut judge, &ProfileSet::default()), []);
            assert_eq!(changes(&mut judge, &period("sda", 3, 0)), []);
            assert_eq!(misaligned(&judge), 1);
            assert_eq!(
                changes(&mut judge, &good),
                [(FindingChange::Gone, RuleId::MisalignedIo)]
            );
        }
        // After a restart.
        let mut judge = Judge::default();
        for profile in bad.iter() {
            judge.add("wwn of sda", profile);
        }
        let earlier = stored(&judge.end_period());
        let mut judge = Judge::resume(&earlier);
        assert_eq!(misaligned(&judge), 1);
        let text = "[[accept]]\nrule = \"misaligned-io\"\nreason = \"a test\"\n";
        judge.accept(Config::parse("config.toml", text).expect("a file without mistakes"));
        assert_eq!(misaligned(&judge), 0);
        // Its last day is over.
        let text =
            "[[accept]]\nrule = \"misaligned-io\"\nreason = \"a test\"\nuntil = 2020-01-31\n";
        let mut judge = Judge::default();
        judge.accept(Config::parse("config.toml", text).expect("a file without mistakes"));
        assert_eq!(
            changes(&mut judge, &bad),
            [(FindingChange::Appeared, RuleId::MisalignedIo)]
        );
    }

    /// The findings that steps leave behind in a store.
    fn stored(changes: &[Change]) -> Vec<FindingInterval> {
        let steps = changes.iter().map(|change| change.step().expect("JSON"));
        let found = steps.map(|(key, step)| match step {
            FindingStep::Found { severity, facts } => FindingInterval {
                key,
                severity,
                facts,
                appeared_ns: 1,
                changed_ns: 1,
                went_ns: None,
            },
            FindingStep::Gone => panic!("nothing went"),
        });
        found.collect()
    }

    /// After a restart a finding that is still there is no news, and its end is.
    #[test]
    fn a_restart_keeps_the_findings() {
        let (bad, good) = (period("sda", 2000, 512), period("sda", 2000, 0));
        let mut judge = Judge::default();
        for profile in bad.iter() {
            judge.add("wwn of sda", profile);
        }
        let earlier = stored(&judge.end_period());
        assert!(!earlier.is_empty());
        let mut judge = Judge::resume(&earlier);
        assert_eq!(changes(&mut judge, &bad), []);
        let mut judge = Judge::resume(&earlier);
        assert_eq!(
            changes(&mut judge, &good),
            [(FindingChange::Gone, RuleId::MisalignedIo)]
        );
        // A finding that this version does not know is left alone.
        let mut newer = earlier;
        newer[0].facts = "{\"rule\": \"rule-of-2030\"}".to_owned();
        assert_eq!(Judge::resume(&newer[..1]).present.len(), 0);
    }

    /// A finding about the layout of a partition.
    fn in_layout(device: &str, identity: Option<&str>) -> Finding {
        use plumb_model::TargetLayer;
        let mut judge = Judge::default();
        for profile in period("sda", 2000, 512).iter() {
            judge.add("wwn of sda", profile);
        }
        let of_rule = |change: &Change| change.finding.rule() == RuleId::MisalignedIo;
        let found = judge.end_period().into_iter().find(of_rule);
        let mut finding = found.expect("misaligned I/O").finding;
        finding.target = Target {
            host: None,
            device: device.to_owned(),
            part: None,
            layer: TargetLayer::Stack(plumb_stack::Kind::Partition),
            identity: identity.map(str::to_owned),
            node: None,
        };
        finding
    }

    #[test]
    fn findings_about_the_layout_are_followed() {
        let survey = |findings: &[Finding]| LayoutSurvey {
            findings: findings.to_vec(),
            ..LayoutSurvey::default()
        };
        let steps = |judge: &mut Judge, survey: LayoutSurvey| -> Vec<(FindingChange, String)> {
            let changes = judge.survey(survey).into_iter();
            let steps = changes.map(|change| (change.kind, change.finding.target.device));
            steps.collect()
        };
        let (one, other) = (
            in_layout("sda1", Some("wwn-part1")),
            in_layout("dm-3", None),
        );
        let appeared = |name: &str| (FindingChange::Appeared, name.to_owned());
        let gone = |name: &str| (FindingChange::Gone, name.to_owned());
        let mut judge = Judge::default();
        let both = [one.clone(), other.clone()];
        assert_eq!(
            steps(&mut judge, survey(&both)),
            [appeared("sda1"), appeared("dm-3")]
        );
        // The disk has another name after a boot, and is a second path to the LUN.
        let renamed = in_layout("sdq1", Some("wwn-part1"));
        let again = [one.clone(), renamed, other.clone()];
        assert_eq!(steps(&mut judge, survey(&again)), []);
        // A disk that was not read says nothing.
        let mut unread = survey(&[]);
        unread.unread = vec![one.target.clone(), other.target.clone()];
        assert_eq!(steps(&mut judge, unread), []);
        // Nor does a rule that could not judge the place, or an accepted finding.
        let unknown = plumb_model::Unjudged {
            rule: one.rule(),
            target: one.target.clone(),
            reason: Reason::NoGrid,
        };
        let mut open = survey(&[]);
        open.unknown.push(unknown.clone());
        open.accepted.push(other.clone());
        assert_eq!(steps(&mut judge, open), []);
        // I/O that fit are no statement about the layout.
        let good = period("sda1", 2000, 0);
        assert_eq!(changes(&mut judge, &good), []);
        // In a guest, layers below the virtual disk are never visible.
        let mut guest = survey(std::slice::from_ref(&other));
        let disk = "sda".to_owned();
        let why = Obstacle::BelowVirtualDisk { disk, target: None };
        guest.unknown.push(plumb_model::Unjudged {
            reason: Reason::Stack {
                because: vec![why],
                more: 0,
            },
            ..unknown
        });
        assert_eq!(steps(&mut judge, guest), [gone("sdq1")]);
        // Across a restart, with the words of the history.
        let mut judge = Judge::default();
        let earlier = stored(&judge.survey(survey(&both)));
        let mut judge = Judge::resume(&earlier);
        assert_eq!(steps(&mut judge, survey(&both)), []);
        assert_eq!(steps(&mut judge, survey(&[])), [gone("sda1"), gone("dm-3")]);
    }

    /// A device that completes nothing has no I/O to judge, but its answers.
    #[test]
    fn a_device_that_completes_nothing_is_judged() {
        use plumb_profile::answers::Answers;
        let mut judge = Judge::default();
        let mut profile = period("sda", 1, 0).iter().next().expect("a device").clone();
        profile.ops = <[_; 6]>::default();
        profile.answers = Some(Box::new(Answers {
            in_flight: 1,
            longest_silence_ns: 30_000_000_000,
            present_silence_ns: 30_000_000_000,
            ..Answers::default()
        }));
        judge.add("wwn", &profile);
        let rules: Vec<RuleId> = judge
            .end_period()
            .iter()
            .map(|change| change.finding.rule())
            .collect();
        assert_eq!(rules, [RuleId::StalledIo]);
    }

    /// A share on both sides of the threshold of a warning is one line.
    #[test]
    fn a_share_near_a_threshold_does_not_come_and_go() {
        let mut judge = Judge::default();
        let part = |off: u64| {
            let mut profiles = period("sda", 2000 - off, 0);
            profiles.merge(&period("sda", off, 512));
            profiles
        };
        let mut all = Vec::new();
        for off in [220, 180, 230, 170, 220] {
            all.extend(changes(&mut judge, &part(off)));
        }
        assert_eq!(all, [(FindingChange::Appeared, RuleId::MisalignedIo)]);
        let gone = changes(&mut judge, &part(0));
        assert_eq!(gone, [(FindingChange::Gone, RuleId::MisalignedIo)]);
    }

    /// A failure is in the log again if it comes back after a time without one.
    #[test]
    fn failures_go_and_come_back() {
        let mut judge = Judge::default();
        let mut seen = Vec::new();
        for failed in [0, 3, 2, 0, 0, 1] {
            for profile in period("sda", 2000, 0).iter() {
                let mut profile = profile.clone();
                profile.ops[Op::Read as usize].failed = failed;
                judge.add("wwn", &profile);
            }
            let changes = judge.end_period().into_iter();
            let of_rule = changes.filter(|change| change.finding.rule() == RuleId::FailingIo);
            seen.push(of_rule.map(|change| change.kind).collect::<Vec<_>>());
        }
        let (appeared, gone) = (vec![FindingChange::Appeared], vec![FindingChange::Gone]);
        assert_eq!(
            seen,
            [vec![], appeared.clone(), vec![], gone, vec![], appeared]
        );
    }
}
