//! Every keyword of Vdbench, section by section, in the order in which it looks at them: taken, or refused and why.

use super::definition::Varied;
use super::keyword::KeywordTable;
use super::keyword::Meaning::{self, Refused, Taken};

const OTHER_TOOLS: &str = "is about data that Vdbench writes and checks";
const COMMANDS: &str = "runs a command";
pub(super) const FILE_SYSTEMS: &str =
    "is about trees of files, not about a device or file as a whole";

#[derive(Clone, Copy, Debug)]
pub(super) enum General {
    /// Only the fixed value here: `no`.
    No,
}

pub(super) const GENERAL: KeywordTable<General> = &[
    (
        "abort_failed_skew",
        Refused("ends a run that shares its rate out wrongly"),
    ),
    ("aux", Refused(COMMANDS)),
    ("compratio", Refused(OTHER_TOOLS)),
    ("concatenatesds", Refused("joins storages to one")),
    ("create_anchors", Refused(FILE_SYSTEMS)),
    (
        "data_errors",
        Refused("ends a run after errors, which are counted here"),
    ),
    ("dedupratio", Refused(OTHER_TOOLS)),
    ("dedupunit", Refused(OTHER_TOOLS)),
    ("dedupsets", Refused(OTHER_TOOLS)),
    ("endcmd", Refused(COMMANDS)),
    ("end_cmd", Refused(COMMANDS)),
    ("force_error_after", Refused("makes errors on purpose")),
    ("formatsds", Refused("writes whole storages")),
    ("formatxfersize", Refused("writes whole storages")),
    (
        "histogram",
        Refused("chooses how latencies are counted, which is fixed here"),
    ),
    ("ios_per_jvm", Refused("is about Java")),
    ("journal", Refused(OTHER_TOOLS)),
    ("loop", Refused("repeats everything: run the command again")),
    ("messagescan", Taken(General::No)),
    (
        "misc",
        Refused("is a collection of switches within Vdbench"),
    ),
    ("monitor", Refused("ends a run by a file that appears")),
    ("patterns", Refused(OTHER_TOOLS)),
    ("port", Refused("is about several hosts")),
    ("replay", Refused("replays a trace: see plumb replay")),
    ("report", Refused("chooses reports: see --json and --html")),
    ("showlba", Refused("writes every start to a file")),
    ("startcmd", Refused(COMMANDS)),
    ("start_cmd", Refused(COMMANDS)),
    ("swat", Refused("sends results to another tool")),
    ("timeout", Refused("ends Vdbench as a whole")),
    ("validate", Taken(General::No)),
];

#[derive(Clone, Copy, Debug)]
pub(super) enum HostParameter {
    System,
    Processes,
}

pub(super) const HOST: KeywordTable<HostParameter> = &[
    ("system", Taken(HostParameter::System)),
    ("jvms", Taken(HostParameter::Processes)),
    ("vdbench", Refused("names a folder on another host")),
    ("shell", Refused("is about other hosts")),
    ("user", Refused("is about other hosts")),
    ("clients", Refused("makes a host look like several")),
    ("mount", Refused(FILE_SYSTEMS)),
];

#[derive(Clone, Copy, Debug)]
pub(super) enum Sd {
    Host,
    Lun,
    Count,
    Size,
    Threads,
    HitArea,
    Offset,
    Align,
    OpenFlags,
    Range,
}

pub(super) const SD: KeywordTable<Sd> = &[
    ("host", Taken(Sd::Host)),
    ("hd", Taken(Sd::Host)),
    ("lun", Taken(Sd::Lun)),
    ("count", Taken(Sd::Count)),
    ("size", Taken(Sd::Size)),
    ("threads", Taken(Sd::Threads)),
    ("hitarea", Taken(Sd::HitArea)),
    ("offset", Taken(Sd::Offset)),
    ("align", Taken(Sd::Align)),
    ("kstat", Refused("names statistics of Solaris")),
    ("instance", Refused("names statistics of Solaris")),
    ("replay", Refused("replays a trace: see plumb replay")),
    ("journal", Refused(OTHER_TOOLS)),
    ("resetlun", Refused("resets the device")),
    ("resetbus", Refused("resets the device")),
    ("openflags", Taken(Sd::OpenFlags)),
    ("range", Taken(Sd::Range)),
    ("dedup", Refused(OTHER_TOOLS)),
    ("streams", Refused("is of wd, and not taken there either")),
];

#[derive(Clone, Copy, Debug)]
pub(super) enum Wd {
    Storages,
    Skew,
    Lengths,
    ReadPercent,
    WritePercent,
    Range,
    Order,
    Stride,
    ReadHits,
    WriteHits,
    Host,
    OpenFlags,
}

pub(super) const WD: KeywordTable<Wd> = &[
    ("sd", Taken(Wd::Storages)),
    ("skew", Taken(Wd::Skew)),
    ("xfersize", Taken(Wd::Lengths)),
    ("readpct", Taken(Wd::ReadPercent)),
    ("rdpct", Taken(Wd::ReadPercent)),
    ("writepct", Taken(Wd::WritePercent)),
    ("wrpct", Taken(Wd::WritePercent)),
    ("range", Taken(Wd::Range)),
    ("hotband", Refused("skews starts by a law of its own")),
    ("seekpct", Taken(Wd::Order)),
    ("stride", Taken(Wd::Stride)),
    ("priority", Refused("lets one workload wait for another")),
    (
        "iorate",
        Refused("sets a rate for one workload of several: give it to rd, with skew"),
    ),
    ("rhpct", Taken(Wd::ReadHits)),
    ("whpct", Taken(Wd::WriteHits)),
    ("host", Taken(Wd::Host)),
    ("hd", Taken(Wd::Host)),
    ("openflags", Taken(Wd::OpenFlags)),
    ("user", Refused("loads a class of Java")),
    (
        "threads",
        Refused("is for storages that were joined: give it to sd or rd"),
    ),
    (
        "streams",
        Refused("divides a storage among sequential streams"),
    ),
];

#[derive(Clone, Copy, Debug)]
pub(super) enum Rd {
    Workloads,
    Storages,
    Rate,
    Curve,
    Elapsed,
    Interval,
    Warmup,
    Pause,
    Repeated(Varied),
    Arrivals,
    OpenFlags,
}

const fn repeated(what: Varied) -> Meaning<Rd> {
    Taken(Rd::Repeated(what))
}

pub(super) const RD: KeywordTable<Rd> = &[
    ("wd", Taken(Rd::Workloads)),
    ("sd", Taken(Rd::Storages)),
    ("fsd", Refused(FILE_SYSTEMS)),
    ("iorate", Taken(Rd::Rate)),
    ("maxdata", Refused("ends a run after a number of bytes")),
    ("maxdataread", Refused("ends a run after a number of bytes")),
    (
        "maxdatawritten",
        Refused("ends a run after a number of bytes"),
    ),
    ("curve", Taken(Rd::Curve)),
    ("stopcurve", Refused("ends a curve by its latency")),
    ("elapsed", Taken(Rd::Elapsed)),
    ("interval", Taken(Rd::Interval)),
    ("warmup", Taken(Rd::Warmup)),
    ("replay", Refused("replays a trace: see plumb replay")),
    ("pause", Taken(Rd::Pause)),
    ("forxfersize", repeated(Varied::Length)),
    ("forthreads", repeated(Varied::Threads)),
    ("forrdpct", repeated(Varied::ReadPercent)),
    ("forrhpct", repeated(Varied::ReadHits)),
    ("forwhpct", repeated(Varied::WriteHits)),
    ("forseekpct", repeated(Varied::RandomPercent)),
    ("forhitarea", repeated(Varied::HitArea)),
    ("foriorate", repeated(Varied::Rate)),
    ("forcompratio", Refused(OTHER_TOOLS)),
    ("forcompression", Refused(OTHER_TOOLS)),
    ("fordepth", Refused(FILE_SYSTEMS)),
    ("forwidth", Refused(FILE_SYSTEMS)),
    ("forfiles", Refused(FILE_SYSTEMS)),
    ("forsizes", Refused(FILE_SYSTEMS)),
    ("fortotalsize", Refused(FILE_SYSTEMS)),
    ("forwss", Refused(FILE_SYSTEMS)),
    ("forworkingsetsize", Refused(FILE_SYSTEMS)),
    ("foroperations", Refused(FILE_SYSTEMS)),
    ("xfersize", repeated(Varied::Length)),
    ("threads", repeated(Varied::Threads)),
    ("rdpct", repeated(Varied::ReadPercent)),
    ("rhpct", repeated(Varied::ReadHits)),
    ("whpct", repeated(Varied::WriteHits)),
    ("seekpct", repeated(Varied::RandomPercent)),
    ("hitarea", repeated(Varied::HitArea)),
    ("compratio", Refused(OTHER_TOOLS)),
    ("compression", Refused(OTHER_TOOLS)),
    ("depth", Refused(FILE_SYSTEMS)),
    ("width", Refused(FILE_SYSTEMS)),
    ("files", Refused(FILE_SYSTEMS)),
    ("sizes", Refused(FILE_SYSTEMS)),
    ("totalsize", Refused(FILE_SYSTEMS)),
    ("wss", Refused(FILE_SYSTEMS)),
    ("workingsetsize", Refused(FILE_SYSTEMS)),
    ("distribution", Taken(Rd::Arrivals)),
    ("startcmd", Refused(COMMANDS)),
    ("start_cmd", Refused(COMMANDS)),
    ("endcmd", Refused(COMMANDS)),
    ("end_cmd", Refused(COMMANDS)),
    ("fwd", Refused(FILE_SYSTEMS)),
    ("fwdrate", Refused(FILE_SYSTEMS)),
    ("operations", Refused(FILE_SYSTEMS)),
    ("format", Refused(FILE_SYSTEMS)),
    ("openflags", Taken(Rd::OpenFlags)),
    ("mount", Refused(FILE_SYSTEMS)),
];
