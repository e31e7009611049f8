//! `queue-setting`: read-ahead, request size or scheduler of a queue that do harm.

use plumb_geometry::Bytes;
use plumb_quoting::names::KERNEL_DEVICE;
use plumb_quoting::{Command, NoCommand};
use plumb_stack::node::keys;
use plumb_stack::{Node, NodeId, Placing};

use super::context::Context;
use super::{LayoutRule, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "queue-setting",
    title: "read-ahead, request size or scheduler do harm",
    needs: "a live Linux host",
    decides: false,
    thresholds: || {
        vec![
            format!("read-ahead above {}", Bytes(READ_AHEAD_BYTES_MAX)),
            format!("{STRIPES_AHEAD} stripes of an array"),
            format!("requests below {}", Bytes(REQUEST_BYTES_MIN)),
            format!("at least {REQUEST_RATIO} times"),
            SEEK_SCHEDULERS.join(" or "),
        ]
    },
    plan: None,
    judge,
};

/// Read-ahead above this is read for nothing by whoever stops reading: 64 MiB, taken from a hint, brought a volume from
/// its cap to a few MiB/s (Azure AKS 5743). Streams of one disk are at full speed with a few hundred KiB.
pub const READ_AHEAD_BYTES_MAX: u64 = 4 << 20;

/// What the kernel reads ahead unless told otherwise.
const READ_AHEAD_BYTES: u64 = 128 << 10;

/// Where the kernel cuts requests unless told otherwise.
const REQUEST_BYTES: u64 = 1280 << 10;

/// So many stripes of an array are right whatever their size: the default of md.
pub const STRIPES_AHEAD: u64 = 2;

/// Requests below this are small where the hardware takes more: chunks of stripes are larger.
pub const REQUEST_BYTES_MIN: u64 = 256 << 10;

/// The hardware has to take so many times the request size before it is far below.
pub const REQUEST_RATIO: u64 = 4;

/// Schedulers that order I/O for a head that a flash drive does not have.
pub const SEEK_SCHEDULERS: [&str; 2] = ["bfq", "cfq"];

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    context
        .stack
        .nodes()
        .filter_map(|(id, node)| judge_node(context, id, node))
        .collect()
}

/// What is wrong: evidence, one sentence, how bad, and what mends it.
type Point = (Evidence, String, Severity, Setting);

/// A file of the queue, what it should hold, and what it holds.
struct Setting {
    file: &'static str,
    better: String,
    now: String,
}

impl Setting {
    fn of_kib(file: &'static str, better: u64, now: u64) -> Setting {
        Setting {
            file,
            better: (better >> 10).to_string(),
            now: (now >> 10).to_string(),
        }
    }

    fn fix(&self, node: &Node) -> Result<Fix, NoCommand> {
        Fix::new(
            self.write(node, &self.better),
            "none to data; I/O in flight are not touched, and after a boot it is as before",
            self.write(node, &self.now),
        )
    }

    fn write(&self, node: &Node, value: &str) -> Command {
        // The kernel writes the slash of a device in a folder as an exclamation mark.
        let name = node.own_name().replace('/', "!");
        let file = format!("/queue/{}", self.file);
        Command::echo(value)
            .flags(">")
            .named(KERNEL_DEVICE, "/sys/block/", &name, file)
    }
}

fn judge_node(context: &Context<'_>, id: NodeId, node: &Node) -> Option<Outcome> {
    let keys = [keys::READ_AHEAD, keys::MAX_REQUEST, keys::SCHEDULER];
    keys.iter()
        .any(|key| node.facts.contains_key(key))
        .then_some(())?;
    let points = [read_ahead(node), request(node), scheduler(node)];
    let mut points: Vec<Point> = points.into_iter().flatten().collect();
    points.sort_by_key(|(_, _, severity, _)| std::cmp::Reverse(*severity));
    let mut points = points.into_iter();
    let Some((evidence, sentence, severity, setting)) = points.next() else {
        // A request size without what the hardware takes cannot be judged.
        let is_half_known = node.number(keys::MAX_REQUEST).is_some()
            && node.number(keys::MAX_REQUEST_HARDWARE).is_none();
        return Some(if is_half_known && node.kind.is_leaf() {
            let why = "what the hardware takes in one request is not known".to_owned();
            Outcome::UnknownOf(context.target(id), why)
        } else {
            Outcome::Silent
        });
    };
    let finding: Finding = context.finding(
        &RULE,
        (id, severity, Confidence::Medium),
        sentence,
        evidence,
    );
    let finding = finding.with_fix(setting.fix(node));
    let finding = points.fold(finding, |finding, (evidence, sentence, _, setting)| {
        finding
            .with_evidence(evidence)
            .explained(sentence)
            .with_fix(setting.fix(node))
    });
    let finding = match &node.host {
        Some(host) => finding.explained(format!(
            "commands are for {host}, with the names that it has for its devices"
        )),
        None => finding,
    };
    Some(Outcome::Found(finding.explained(
        "settings of a queue are changed at once and without risk to data; keep them in a udev rule, or they are gone \
         after a boot",
    )))
}

fn source(node: &Node, key: &str) -> String {
    node.facts
        .get(key)
        .map(|fact| fact.source.to_string())
        .unwrap_or_default()
}

fn read_ahead(node: &Node) -> Option<Point> {
    // md reads two stripes ahead, so that all members have work.
    let stripes = match &node.placing {
        Placing::Chunks(chunks) => chunks
            .stripe_bytes()
            .map_or(0, |stripe| stripe.0.saturating_mul(STRIPES_AHEAD)),
        _ => 0,
    };
    let most = READ_AHEAD_BYTES_MAX.max(stripes);
    let bytes = node
        .number(keys::READ_AHEAD)
        .filter(|bytes| *bytes > most)?;
    let evidence = words::bytes(
        "read_ahead_bytes",
        Bytes(bytes),
        source(node, keys::READ_AHEAD),
    );
    let sentence = format!(
        "read-ahead of {}: each small read in a row may bring in as much; more than {} serves no stream",
        Bytes(bytes),
        Bytes(most)
    );
    let better = READ_AHEAD_BYTES.max(stripes);
    Some((
        evidence,
        sentence,
        Severity::Warning,
        Setting::of_kib("read_ahead_kb", better, bytes),
    ))
}

fn request(node: &Node) -> Option<Point> {
    let bytes = node
        .number(keys::MAX_REQUEST)
        .filter(|bytes| *bytes < REQUEST_BYTES_MIN)?;
    let hardware = node.number(keys::MAX_REQUEST_HARDWARE)?;
    (hardware >= bytes.saturating_mul(REQUEST_RATIO)).then_some(())?;
    let evidence = words::bytes(
        "max_request_bytes",
        Bytes(bytes),
        source(node, keys::MAX_REQUEST),
    );
    let sentence = format!(
        "requests are cut at {}, and the hardware takes {}: large I/O become many commands",
        Bytes(bytes),
        Bytes(hardware)
    );
    let setting = Setting::of_kib("max_sectors_kb", hardware.min(REQUEST_BYTES), bytes);
    Some((evidence, sentence, Severity::Note, setting))
}

fn scheduler(node: &Node) -> Option<Point> {
    let scheduler = node
        .word(keys::SCHEDULER)
        .filter(|word| SEEK_SCHEDULERS.contains(word))?;
    let is_flash = node.word(keys::ROTATIONAL) == Some("0") || node.name.starts_with("nvme");
    is_flash.then_some(())?;
    let evidence = words::number("rotational", 0, "flag", source(node, keys::ROTATIONAL));
    let sentence = format!(
        "scheduler {scheduler} on a drive without a head: it costs time for each I/O and limits depth; none or \
         mq-deadline does better for most"
    );
    let setting = Setting {
        file: "scheduler",
        better: "none".to_owned(),
        now: scheduler.to_owned(),
    };
    Some((evidence, sentence, Severity::Note, setting))
}
