//! Adds up the verdicts on the hosts of a fleet: the rankings at once; groups, outliers, changes and silent hosts at the end.

use std::collections::{BTreeMap, BTreeSet};

use plumb_fleet::answer::{
    FleetAnswer, FleetAttribute, FleetCause, FleetChange, FleetChanges, FleetGroup, FleetHost,
    FleetOutlier, FleetRest, FleetSilence, FleetUnknown, RankedDevice, RatioWithin, SilentHost,
    WasteChange,
};
use plumb_fleet::{
    Attributes, Groups, HostAttributes, HostFacts, Inventory, Latencies, Population, Slowness,
    attributes_of_path,
};
use plumb_geometry::SmallSort;
use plumb_model::{RuleId, Severity};
use plumb_stats::{Interval, Level, median};
use plumb_trace::Layer;

use super::checked::{CheckedDisk, CheckedHost, CheckedHosts, PlannedHost};
use super::judge::{DeviceVerdict, HostVerdict};
use super::pass::HostAge;
use super::plans::PlannedHosts;
use crate::moment::unix_words;

/// The bit of slow devices, behind those of the rules.
const SLOW: u32 = 63;
/// A finding is worse if its device wastes this many times as much as before. Less is the change of a load.
const WORSE_TIMES: f64 = 1.25;
/// Of hosts in the order of their newest I/O, one in this number may have a clock that is ahead.
const AHEAD: usize = 20;

/// The severities of the findings of a device, and its waste.
#[derive(Clone, Debug, Default)]
struct DeviceState {
    device: String,
    layer: Option<Layer>,
    findings: BTreeMap<RuleId, Severity>,
    judged: u64,
    /// Cells wasted in each second, the least and the most; `None` if unknown.
    wasted: Option<[f64; 2]>,
}

impl DeviceState {
    fn of(device: &DeviceVerdict) -> DeviceState {
        let mut findings = BTreeMap::new();
        let own = device.findings.iter();
        let own = own.map(|finding| (finding.rule(), finding.severity));
        let repeated = device.repeated.iter().map(|(rule, worst)| (*rule, *worst));
        for (rule, severity) in own.chain(repeated) {
            let worst = findings.entry(rule).or_insert(severity);
            *worst = severity.max(*worst);
        }
        let rules = findings
            .keys()
            .copied()
            .chain(device.silent.iter().copied());
        let judged = rules.fold(0, |judged, rule| judged | 1 << bit(rule));
        DeviceState {
            device: device.device.clone(),
            layer: Some(device.layer),
            judged,
            wasted: sure(device.wasted.as_ref()),
            findings,
        }
    }
}

/// The bit of a rule.
fn bit(rule: RuleId) -> u32 {
    rule as u32
}

/// The ends of a figure, 0 if they are negative; `None` if it is unknown.
fn sure(figure: Option<&Result<RankedDevice, FleetUnknown>>) -> Option<[f64; 2]> {
    let Some(Ok(device)) = figure else {
        return None;
    };
    Some([device.per_second.low, device.per_second.high].map(|end| end.max(0.0)))
}

/// The findings of an earlier fleet file, or of earlier recordings.
#[derive(Default)]
pub struct Earlier {
    /// The time that parts them from the present ones, ns since 1970; `None` for a fleet file.
    before_ns: Option<i64>,
    hosts: BTreeMap<String, Vec<DeviceState>>,
}

impl Earlier {
    /// Those of recordings before a time, ns since 1970.
    pub fn before(time: i64) -> Earlier {
        Earlier {
            before_ns: Some(time),
            ..Earlier::default()
        }
    }

    /// Adds a host.
    pub fn add(&mut self, host: HostVerdict) {
        let devices = host.devices.iter().map(DeviceState::of).collect();
        self.hosts.insert(host.facts.host, devices);
    }
}

/// A fleet, as far as it was judged.
pub struct Survey {
    /// The earlier findings, if they are asked for.
    pub since: Option<Earlier>,
    /// The attributes of hosts beside those of paths.
    pub inventory: Inventory,
    /// The hosts whose layers were judged, as far as they were not added.
    pub checked: CheckedHosts,
    /// Their collections, as far as they were added.
    planned: PlannedHosts,
    top: usize,
    answer: FleetAnswer,
    population: Population,
    latencies: Latencies,
    /// Wasted cells and lost ns of each device in each second: the parts that are sure; `None` if unknown.
    costs: Vec<[Option<f64>; 2]>,
    /// Hosts with the time of their newest I/O.
    newest: Vec<(String, Option<i64>)>,
    changes: FleetChanges,
}

impl Survey {
    /// Begins. Lists have at most `top` entries.
    pub fn new(top: usize) -> Survey {
        Survey {
            since: None,
            inventory: Inventory::default(),
            checked: CheckedHosts::new(),
            planned: PlannedHosts::new(),
            top,
            answer: FleetAnswer::default(),
            population: Population::default(),
            latencies: Latencies::default(),
            costs: Vec::new(),
            newest: Vec::new(),
            changes: FleetChanges::default(),
        }
    }

    /// Adds a host. Hosts come in the order of their names; those that have nothing but a collection are added between them.
    pub fn add(&mut self, host: HostVerdict) {
        if let (HostAge::Earlier, Some(since)) = (host.age, &mut self.since) {
            return since.add(host);
        }
        self.add_checked(Some(&host.facts.host));
        self.add_one(host);
    }

    /// Notes collections that could not be read.
    pub fn add_unread(&mut self, collections: u64) {
        self.answer.unread += collections;
    }

    /// Adds the hosts before a name that have nothing but a collection; all of them without a name.
    fn add_checked(&mut self, before: Option<&str>) {
        while let Some((name, _)) = self.checked.first_key_value()
            && before.is_none_or(|before| name.as_str() < before)
        {
            let facts = HostFacts {
                host: name.clone(),
                ..HostFacts::default()
            };
            self.add_one(HostVerdict {
                age: HostAge::Now,
                facts,
                devices: Vec::new(),
                newest_ns: None,
            });
        }
    }

    /// Adds the results on the disks of a host to those on its I/O.
    fn add_layers(&mut self, host: &mut HostVerdict, checked: CheckedHost) {
        let name = &host.facts.host;
        self.answer.inputs += 1;
        self.answer.collections += 1;
        self.answer.partial += u64::from(!checked.is_whole);
        self.inventory.add_facts(name, checked.attributes);
        let mut planned = PlannedHost::new(checked.path);
        for disk in checked.disks {
            let CheckedDisk {
                verdict,
                identity,
                remedied,
            } = disk;
            let seen = host.devices.iter_mut().find(|seen| {
                seen.device == verdict.device || Some(&seen.device) == identity.as_ref()
            });
            let Some(seen) = seen else {
                planned.add(&verdict.device, verdict.device.clone(), remedied);
                host.devices.push(verdict);
                continue;
            };
            planned.add(&seen.device, verdict.device, remedied);
            seen.findings.extend(verdict.findings);
            seen.repeated.extend(verdict.repeated);
            seen.unknown.extend(verdict.unknown);
            seen.silent.extend(verdict.silent);
        }
        self.planned.insert(name.clone(), planned);
    }

    fn add_one(&mut self, mut host: HostVerdict) {
        if let Some(checked) = self.checked.remove(&host.facts.host) {
            self.add_layers(&mut host, checked);
        }
        let facts = &host.facts;
        let answer = &mut self.answer;
        answer.hosts += 1;
        answer.inputs += facts.inputs.len() as u64;
        answer.partial += facts.partial.len() as u64;
        answer.unread += facts.unread.len() as u64;
        self.newest.push((facts.host.clone(), host.newest_ns));
        let of_host = self.inventory.host(&facts.host);
        let attributes = attributes(of_host, facts.inputs.keys());
        self.population.add_host(&facts.host, &attributes);
        let mut rules = BTreeSet::new();
        let mut states = Vec::with_capacity(host.devices.len());
        for device in host.devices {
            let state = DeviceState::of(&device);
            let of_host = self.inventory.host(&facts.host);
            self.population
                .add_device(&device.device, device.layer, of_host);
            if let Some(member) = self.population.last_mut() {
                member.judged = state.judged;
                let found = state.findings.keys();
                member.found = found.fold(0, |found, rule| found | 1 << bit(*rule));
            }
            self.latencies
                .add(&device.device, device.layer, &device.latencies);
            let costs = [state.wasted, sure(device.lost.as_ref())];
            self.costs.push(costs.map(|cost| cost.map(|[low, _]| low)));
            rules.extend(state.findings.keys().copied());
            count(&mut self.answer, device, self.top);
            states.push(state);
        }
        for rule in rules {
            self.answer.rule(rule).hosts += 1;
        }
        self.compare(&facts.host, &states);
    }

    /// Compares a host with the earlier file.
    fn compare(&mut self, host: &str, states: &[DeviceState]) {
        let Some(since) = &mut self.since else {
            return;
        };
        let Some(earlier) = since.hosts.remove(host) else {
            self.changes.hosts_new.add(host, self.top);
            return;
        };
        for now in states {
            let is_it =
                |then: &&DeviceState| (&then.device, then.layer) == (&now.device, now.layer);
            let nothing = DeviceState::default();
            let then = earlier.iter().find(is_it).unwrap_or(&nothing);
            let rules: BTreeSet<RuleId> = [then, now]
                .iter()
                .flat_map(|state| state.findings.keys().copied())
                .collect();
            for rule in rules {
                let [before, after] = [then, now].map(|state| state.findings.get(&rule).copied());
                let wasted = then.wasted.zip(now.wasted);
                let wasted = wasted
                    .filter(|(then, now)| now[0] > WORSE_TIMES * then[1].max(f64::MIN_POSITIVE));
                let wasted = wasted.filter(|_| rule == RuleId::MisalignedIo && before.is_some());
                let list = match (before, after) {
                    (None, _) => &mut self.changes.new,
                    (_, None) if now.judged & 1 << bit(rule) != 0 => &mut self.changes.gone,
                    (Some(before), Some(after)) if after > before || wasted.is_some() => {
                        &mut self.changes.worse
                    }
                    _ => continue,
                };
                let wasted = wasted.map(|(then, now)| WasteChange {
                    before: then[0],
                    after: now[0],
                });
                let change = FleetChange {
                    host: host.to_owned(),
                    device: now.device.clone(),
                    layer: now.layer.map_or("", Layer::word),
                    cause: FleetCause::Rule(rule),
                    before,
                    after,
                    wasted_per_second: wasted,
                };
                list.add(change, self.top);
            }
        }
    }

    /// The answer, and the hosts that may have a plan. A host is silent if its newest I/O are older than those of the fleet by more than
    /// `silent_after`, in seconds.
    pub fn finish(mut self, silent_after: u64) -> (FleetAnswer, PlannedHosts) {
        self.add_checked(None);
        let slowness = self.latencies.slowness();
        self.population.mark(SLOW, |at| slowness.is_slow(at));
        let mut causes: Vec<FleetCause> = self
            .answer
            .rules
            .iter()
            .filter(|rule| rule.findings > 0)
            .map(|rule| FleetCause::Rule(rule.rule))
            .collect();
        causes.small_sort_by_key(|cause| *cause);
        causes.push(FleetCause::SlowDevice);
        let bits: Vec<u32> = causes
            .iter()
            .map(|cause| match cause {
                FleetCause::Rule(rule) => bit(*rule),
                FleetCause::SlowDevice => SLOW,
            })
            .collect();
        let found = self.population.groups(&bits);
        for (cause, groups) in causes.into_iter().zip(found) {
            self.add_groups(cause, &groups, &slowness);
        }
        self.answer.silence = self.silence(silent_after);
        if let Some(since) = self.since.take() {
            for host in since.hosts.keys() {
                self.changes.hosts_gone.add(host, self.top);
            }
            self.changes.since = since.before_ns.and_then(unix_words);
            self.answer.changes = Some(self.changes);
        }
        let mut answer = self.answer;
        answer.groups.small_sort_by(|one, other| {
            let cost = |group: &FleetGroup| {
                let wasted = group.wasted_per_second.unwrap_or(0.0);
                (wasted, group.hosts_with as f64)
            };
            let [(waste, hosts), (waste_of, hosts_of)] = [cost(one), cost(other)];
            waste_of.total_cmp(&waste).then(hosts_of.total_cmp(&hosts))
        });
        answer.settle();
        (answer, self.planned)
    }

    fn add_groups(&mut self, cause: FleetCause, groups: &Groups, slowness: &Slowness) {
        for group in &groups.groups {
            let on = self.hosts_of(&group.members);
            // Unknown if it is of each device.
            let sum = |at: usize| -> Option<f64> {
                let known = group.members.iter().filter_map(|one| self.costs[*one][at]);
                known.reduce(|sum, cost| sum + cost)
            };
            let is_slow = cause == FleetCause::SlowDevice;
            let wastes = cause == FleetCause::Rule(RuleId::MisalignedIo);
            let remedy = cause.remedy();
            let attribute = |value: u32| {
                let (name, value) = self.population.value(value);
                FleetAttribute {
                    name: name.to_owned(),
                    value: value.to_owned(),
                }
            };
            self.answer.groups.push(FleetGroup {
                cause,
                attribute: attribute(group.value),
                same: group.same.iter().map(|value| attribute(*value)).collect(),
                hosts: group.sides.inside,
                hosts_with: group.sides.inside_with,
                other_hosts: group.sides.outside,
                other_hosts_with: group.sides.outside_with,
                lift: ratio(&group.lift),
                chance: group.chance,
                times: is_slow
                    .then(|| self.times(&group.members, slowness))
                    .flatten(),
                devices: group.members.len() as u64,
                wasted_per_second: wastes.then(|| sum(0)).flatten(),
                lost_ns_per_second: wastes.then(|| sum(1)).flatten(),
                remedy,
                on: on
                    .into_iter()
                    .map(|(host, devices)| FleetHost {
                        command: remedy.on(&host, None),
                        plan: None,
                        host,
                        devices,
                    })
                    .collect(),
            });
        }
        if cause == FleetCause::SlowDevice {
            self.add_outliers(&groups.rest, slowness);
        } else if !groups.rest.is_empty() {
            self.answer.ungrouped.push(FleetRest {
                cause,
                hosts: self.hosts_of(&groups.rest).len() as u64,
                devices: groups.rest.len() as u64,
            });
        }
    }

    /// How many times as long the I/O of slow devices take: the median over hosts of the median over their devices.
    fn times(&self, members: &[usize], slowness: &Slowness) -> Option<RatioWithin> {
        let population = self.population.members();
        let by_host =
            members.chunk_by(|one, other| population[*one].host == population[*other].host);
        let hosts: Vec<f64> = by_host
            .filter_map(|devices| {
                let mut values: Vec<f64> =
                    devices.iter().filter_map(|at| slowness.of[*at]).collect();
                values.small_sort_by(f64::total_cmp);
                let upper = values.get(values.len() / 2)?;
                let lower = values.get((values.len() - 1) / 2)?;
                Some(f64::midpoint(*lower, *upper))
            })
            .collect();
        let times = median(&hosts, Level::P95).ok()?;
        Some(RatioWithin {
            estimate: times.estimate.exp(),
            low: times.low.exp(),
            high: times.high.exp(),
        })
    }

    fn add_outliers(&mut self, rest: &[usize], slowness: &Slowness) {
        let outliers = &mut self.answer.outliers;
        outliers.compared = slowness.of.iter().flatten().count() as u64;
        outliers.limit_times = slowness.limit.map(f64::exp);
        let all = 0..slowness.of.len();
        outliers.slow = all.filter(|at| slowness.is_slow(*at) == Some(true)).count() as u64;
        outliers.alone = rest.len() as u64;
        let mut slowest: Vec<(f64, usize)> = rest
            .iter()
            .filter_map(|at| Some((slowness.of[*at]?, *at)))
            .collect();
        slowest.small_sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        slowest.truncate(self.top);
        for (slow, at) in slowest {
            let member = &self.population.members()[at];
            outliers.devices.push(FleetOutlier {
                host: self.population.host(member.host).to_owned(),
                device: member.device.clone(),
                layer: member.layer.word(),
                times: slow.exp(),
            });
        }
    }

    /// Devices by host, in the order of the hosts.
    fn hosts_of(&self, members: &[usize]) -> BTreeMap<String, Vec<String>> {
        let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for at in members {
            let member = &self.population.members()[*at];
            let devices = hosts.entry(self.population.host(member.host).to_owned());
            let devices = devices.or_default();
            if devices.last() != Some(&member.device) {
                devices.push(member.device.clone());
            }
        }
        hosts
    }

    fn silence(&self, silent_after: u64) -> FleetSilence {
        let mut times: Vec<i64> = self
            .newest
            .iter()
            .filter_map(|(_, newest)| *newest)
            .collect();
        times.small_sort_by_key(|time| *time);
        let newest = times.iter().rev().nth(times.len() / AHEAD).copied();
        let mut silence = FleetSilence {
            newest: newest.and_then(unix_words),
            limit_seconds: silent_after,
            undated: (self.newest.len() - times.len()) as u64,
            ..FleetSilence::default()
        };
        let limit_ns = i64::try_from(silent_after)
            .unwrap_or(i64::MAX)
            .saturating_mul(1_000_000_000);
        for (host, time) in &self.newest {
            let is_silent =
                |time: &i64| newest.is_some_and(|newest| newest.saturating_sub(*time) > limit_ns);
            let Some(time) = time.filter(is_silent) else {
                continue;
            };
            silence.all += 1;
            if silence.listed.len() < self.top {
                silence.listed.push(SilentHost {
                    host: host.clone(),
                    newest: unix_words(time).unwrap_or_default(),
                });
            }
        }
        silence
    }
}

fn ratio<N>(interval: &Interval<N>) -> RatioWithin {
    RatioWithin {
        estimate: interval.estimate,
        low: interval.low,
        high: interval.high,
    }
}

/// The attributes of a host: those of the inventory come before those of paths.
fn attributes<'a>(
    inventory: Option<&HostAttributes>,
    inputs: impl Iterator<Item = &'a String>,
) -> Attributes {
    let mut attributes = attributes_of_path(inputs);
    if let Some(host) = inventory {
        attributes.extend(host.own.clone());
    }
    attributes
}

/// Counts the findings on a device, and ranks it.
fn count(answer: &mut FleetAnswer, device: DeviceVerdict, top: usize) {
    answer.devices += 1;
    answer.ios = answer.ios.saturating_add(device.ios);
    for rule in device.unknown {
        answer.rule(rule).unknown += 1;
    }
    let mut on_device = BTreeSet::new();
    for finding in device.findings {
        let rule = finding.rule();
        answer.rule(rule).findings += 1;
        if on_device.insert(rule) {
            answer.rule(rule).devices += 1;
        }
        answer.show(finding);
    }
    for rule in device.repeated.into_keys() {
        if on_device.insert(rule) {
            answer.rule(rule).devices += 1;
        }
    }
    answer.with_findings += u64::from(!on_device.is_empty());
    for (figure, ranking) in [
        (device.wasted, &mut answer.by_waste),
        (device.lost, &mut answer.by_time_lost),
    ] {
        if let Some(figure) = figure {
            ranking.add(figure, top);
        }
    }
}

#[cfg(test)]
mod tests {
    use plumb_model::rule::RULES;

    use super::*;

    #[test]
    fn every_rule_has_a_bit_of_its_own() {
        let bits: BTreeSet<u32> = RULES.iter().map(|rule| bit(rule.id)).collect();
        assert_eq!(bits.len(), RULES.len());
        assert!(bits.iter().all(|bit| *bit < SLOW), "{bits:?}");
    }
}
