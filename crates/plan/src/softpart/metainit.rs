//! The commands for soft partitions. Data do not move along: they come back from a copy, or from the other side of a
//! mirror.

use crate::plan::{Harm, Remedy, Step};
use crate::shell::word;
use crate::softpart::{Placed, SoftPartition, SoftpartRequest};

/// The ways there: create what is new; one side of each mirror at a time; or all from copies.
pub(super) fn remedies(request: &SoftpartRequest, placed: &[Placed]) -> Vec<Remedy> {
    let is_off = placed.iter().any(Placed::is_off);
    let mut remedies = Vec::new();
    if is_off {
        remedies.extend(by_mirrors(request, placed));
        remedies.push(anew(request, placed));
    } else if !request.new.is_empty() {
        let remedy = Remedy::new(
            Harm::Recreate,
            "with metainit",
            "the new ones are on the unit",
        );
        let steps = placed.iter().filter(|one| one.offset_now.is_none());
        let steps = steps.map(|one| create(request, &one.name, &[(one.offset, one.size)]));
        remedies.push(remedy.steps(steps).constraint(EXACT));
    }
    remedies
}

const EXACT: &str = "-o and -b go in pairs, in sectors without a unit, and never together with -A; -o is where data start";

fn create(request: &SoftpartRequest, name: &str, extents: &[(u64, u64)]) -> Step {
    let places: String = extents
        .iter()
        .map(|(at, size)| format!(" -o {at} -b {size}"))
        .collect();
    Step::new(
        format!(
            "metainit {} -p {}{places}",
            word(name),
            word(&request.component)
        ),
        "refused where extents overlap; what lay there before is not erased",
        format!("metaclear {}", word(name)),
    )
}

/// The soft partitions in the order in which their first extents lie, each with its new extents in the order of data.
fn renewed<'a>(
    request: &'a SoftpartRequest,
    placed: &[Placed],
) -> Vec<(&'a SoftPartition, Vec<(u64, u64)>)> {
    let mut parts: Vec<(&SoftPartition, Vec<(u64, u64)>)> = request
        .existing
        .iter()
        .map(|part| {
            let place = |(at, size): &(u64, u64)| {
                let found = placed
                    .iter()
                    .find(|one| one.name == part.name && one.offset_now == Some(*at));
                found.map_or((*at, *size), |one| (one.offset, one.size))
            };
            (part, part.extents.iter().map(place).collect())
        })
        .collect();
    parts.sort_by_key(|(_, extents)| extents.iter().map(|(at, _)| *at).min());
    parts
}

fn added(request: &SoftpartRequest, placed: &[Placed]) -> Vec<Step> {
    let new = placed.iter().filter(|one| one.offset_now.is_none());
    new.map(|one| create(request, &one.name, &[(one.offset, one.size)]))
        .collect()
}

fn anew(request: &SoftpartRequest, placed: &[Placed]) -> Remedy {
    let parts = renewed(request, placed);
    let mut remedy = Remedy::new(
        Harm::Recreate,
        "with metainit, data from copies",
        "all extents are on the unit",
    )
    .step(Step::save("metastat -p > metastat-p.before"))
    .constraint(EXACT)
    .constraint(
        "all of them are cleared before the first is made: their new places overlap the old ones",
    )
    .constraint("unmounted, nothing open; a copy of each that was read back and compared");
    for (part, _) in &parts {
        let raw = format!("/dev/md/rdsk/{}", part.name);
        remedy = remedy.step(Step::save(format!(
            "dd if={} of=/BACKUP/{}.img bs=1024k",
            word(&raw),
            crate::shell::file_name(&part.name)
        )));
    }
    for (part, _) in parts.iter().rev() {
        remedy = remedy.step(Step::new(
            format!("metaclear {}", word(&part.name)),
            "its data can only come back from the copy, or by the way back before anything else is written",
            was(request, part),
        ));
    }
    remedy = remedy.steps(
        parts
            .iter()
            .map(|(part, extents)| create(request, &part.name, extents)),
    );
    for (part, _) in &parts {
        let raw = format!("/dev/md/rdsk/{}", part.name);
        remedy = remedy.step(Step::new(
            format!(
                "dd if=/BACKUP/{}.img of={} bs=1024k",
                crate::shell::file_name(&part.name),
                word(&raw)
            ),
            "writes over what is there",
            "the copy stays until all was compared",
        ));
    }
    remedy.steps(added(request, placed))
}

/// The line that makes it as it is now.
fn was(request: &SoftpartRequest, part: &SoftPartition) -> String {
    let places: String = part
        .extents
        .iter()
        .map(|(at, size)| format!(" -o {at} -b {size}"))
        .collect();
    format!(
        "metainit {} -p {}{places}",
        word(&part.name),
        word(&request.component)
    )
}

/// Where each soft partition is one side of a mirror, the other side keeps the data while this one is made anew.
fn by_mirrors(request: &SoftpartRequest, placed: &[Placed]) -> Option<Remedy> {
    let parts = renewed(request, placed);
    if parts.is_empty() || parts.iter().any(|(part, _)| part.mirror.is_none()) {
        return None;
    }
    let mut remedy = Remedy::new(
        Harm::Online,
        "one side of the mirrors at a time",
        "all extents of this component are on the unit, and the data were in use all the time",
    )
    .step(Step::save("metastat -p > metastat-p.before"))
    .constraint(EXACT)
    .constraint("every mirror has another submirror in state Okay: metastat tells")
    .constraint("one component at a time: wait for all resyncs before the other side");
    for (part, _) in parts.iter().rev() {
        let Some(side) = &part.mirror else { continue };
        let (mirror, sub) = (word(&side.mirror), word(&side.submirror));
        let name = word(&part.name);
        remedy = remedy.step(Step::new(
            format!("metadetach {mirror} {sub} && metaclear {sub} && metaclear {name}"),
            "the mirror has one copy less until the resync is done",
            format!(
                "{} && metainit {sub} 1 1 {name} && metattach {mirror} {sub}",
                was(request, part)
            ),
        ));
    }
    remedy = remedy.steps(
        parts
            .iter()
            .map(|(part, extents)| create(request, &part.name, extents)),
    );
    for (part, _) in &parts {
        let Some(side) = &part.mirror else { continue };
        let (mirror, sub) = (word(&side.mirror), word(&side.submirror));
        remedy = remedy.step(Step::new(
            format!(
                "metainit {sub} 1 1 {} && metattach {mirror} {sub}",
                word(&part.name)
            ),
            "a full resync: the disks are busy, and a failure of the other side loses data",
            format!("metadetach {mirror} {sub}"),
        ));
    }
    Some(remedy.steps(added(request, placed)))
}
