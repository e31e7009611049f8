//! The commands for soft partitions. Data do not move along: they come back from a copy, or from the other side of a
//! mirror.

use plumb_geometry::{Bytes, SECTOR, SmallSort};
use plumb_model::action::{ExtentRef, SoftPartitionMove};
use plumb_model::{Action, DeviceRef};
use plumb_quoting::names::SVM;
use plumb_quoting::shell::file_name;
use plumb_quoting::{Command, NoCommand};

use crate::plan::{Harm, Remedy, Step};
use crate::softpart::{Placed, SoftPartition, SoftpartRequest, Submirror};

/// The ways: create new ones; one side of each mirror at a time; or all from copies.
pub(super) fn remedies(request: &SoftpartRequest, placed: &[Placed]) -> Vec<Remedy> {
    let is_off = placed.iter().any(Placed::is_off);
    let mut remedies = Vec::new();
    if is_off {
        remedies.extend(by_mirrors(request, placed));
        remedies.extend(by_copies(request, placed));
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

fn create(
    request: &SoftpartRequest,
    name: &str,
    extents: &[(u64, u64)],
) -> Result<Step, NoCommand> {
    Step::new(
        metainit(request, name, extents),
        "refused if extents overlap; older data in that place are not erased",
        Command::new("metaclear").name(SVM, name),
    )
}

/// The line that makes a soft partition of these extents.
fn metainit(request: &SoftpartRequest, name: &str, extents: &[(u64, u64)]) -> Command {
    let made = Command::new("metainit")
        .name(SVM, name)
        .flags("-p")
        .name(SVM, &request.component);
    extents.iter().fold(made, |made, (at, size)| {
        made.flags("-o").arg(at).flags("-b").arg(size)
    })
}

/// The soft partitions in the order of their first extents, each with its new extents in the order of data.
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
    // Those that stay where they are are left alone.
    parts.retain(|(part, extents)| part.extents != *extents);
    parts.small_sort_by_key(|(_, extents)| extents.iter().map(|(at, _)| *at).min());
    parts
}

/// The same change for programs.
fn moves(parts: &[(&SoftPartition, Vec<(u64, u64)>)]) -> Vec<SoftPartitionMove> {
    let extents = |of: &[(u64, u64)]| {
        let extent = |(at, size): &(u64, u64)| ExtentRef {
            start_bytes: Bytes(at * SECTOR),
            len_bytes: Bytes(size * SECTOR),
        };
        of.iter().map(extent).collect()
    };
    let one = |(part, to): &(&SoftPartition, Vec<(u64, u64)>)| SoftPartitionMove {
        volume: DeviceRef::named(&part.name),
        from: extents(&part.extents),
        to: extents(to),
    };
    parts.iter().map(one).collect()
}

fn added(request: &SoftpartRequest, placed: &[Placed]) -> Vec<Result<Step, NoCommand>> {
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
    .action(Action::RecreateSoftPartitions {
        component: DeviceRef::named(&request.component),
        moves: moves(&parts),
    })
    .step(layout_saved())
    .constraint(EXACT)
    .constraint(
        "all of them are cleared before the first is made: their new places overlap the old ones",
    )
    .constraint("unmounted, nothing open; a copy of each that was read back and compared");
    let users: Vec<&str> = parts
        .iter()
        .flat_map(|(part, _)| &part.users)
        .map(String::as_str)
        .collect();
    if !users.is_empty() {
        remedy = remedy.constraint(format!(
            "make {} again afterwards, with the lines that metastat-p.before has of them",
            users.join(", ")
        ));
    }
    let copy = |part: &SoftPartition| format!("/BACKUP/{}.img", file_name(&part.name));
    for (part, _) in &parts {
        remedy = remedy.step(Step::save(
            Command::new("dd")
                .named(SVM, "if=/dev/md/rdsk/", &part.name, "")
                .arg(format!("of={}", copy(part)))
                .flags("bs=1024k"),
        ));
    }
    for user in users {
        remedy = remedy.step(Step::prepare(
            Command::new("metaclear").name(SVM, user),
            "refused while it is in use: unmount it first",
            "metainit with its line in metastat-p.before",
        ));
    }
    for (part, _) in parts.iter().rev() {
        remedy = remedy.step(Step::new(
            Command::new("metaclear").name(SVM, &part.name),
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
        remedy = remedy.step(Step::new(
            Command::new("dd")
                .arg(format!("if={}", copy(part)))
                .named(SVM, "of=/dev/md/rdsk/", &part.name, "")
                .flags("bs=1024k"),
            "overwrites the data in that place",
            "the copy stays until all was compared",
        ));
    }
    remedy.steps(added(request, placed))
}

/// Each to a free place: the data are copied and compared before the old place is given up.
fn by_copies(request: &SoftpartRequest, placed: &[Placed]) -> Option<Remedy> {
    let parts = renewed(request, placed);
    let can_be = |(part, to): &(&SoftPartition, Vec<(u64, u64)>)| {
        part.extents.len() == 1
            && part.users.is_empty()
            && part.mirror.is_none()
            && is_free(request, to)
    };
    if parts.is_empty() || !parts.iter().all(can_be) {
        return None;
    }
    let mut remedy = Remedy::new(
        Harm::Move,
        "a copy at a free place of the component",
        "the misplaced ones are on the unit, and their neighbours stay where they are",
    )
    .step(layout_saved())
    .constraint(EXACT)
    .constraint("unmounted, nothing open, one after the other; dNEW is a free name");
    for ((part, to), change) in parts.iter().zip(moves(&parts)) {
        let raw = |command: Command, before: &'static str, name: &str| {
            command.named(SVM, before, name, "")
        };
        let copy = raw(Command::new("dd"), "if=/dev/md/rdsk/", &part.name);
        let compare = raw(Command::new("cmp"), "/dev/md/rdsk/", &part.name);
        remedy = remedy
            .action(Action::CopySoftPartition {
                component: DeviceRef::named(&request.component),
                change,
            })
            .step(Step::new(
                metainit(request, "dNEW", to),
                "refused where extents overlap",
                Command::new("metaclear dNEW"),
            ))
            .step(Step::new(
                copy.flags("of=/dev/md/rdsk/dNEW bs=1024k"),
                "the old one is only read; nothing may write to it meanwhile",
                "nothing to undo",
            ))
            .step(Step::look(compare.flags("/dev/md/rdsk/dNEW")))
            .step(Step::new(
                Command::new("metaclear").name(SVM, &part.name),
                "only if cmp found no difference; the data stay on the disk until something else is made there",
                was(request, part),
            ))
            .step(Step::new(
                Command::new("metarename dNEW").name(SVM, &part.name),
                "refused while it is open",
                Command::new("metarename").name(SVM, &part.name).flags("dNEW"),
            ));
    }
    Some(remedy)
}

/// Whether places, with the sectors of their headers, are in use by no soft partition now.
fn is_free(request: &SoftpartRequest, to: &[(u64, u64)]) -> bool {
    let mut used = request.existing.iter().flat_map(|part| &part.extents);
    !used.any(|(at, size)| {
        let end = at.saturating_add(*size);
        to.iter()
            .any(|(new, len)| new.saturating_sub(1) < end && at.saturating_sub(1) < new + len)
    })
}

fn layout_saved() -> Result<Step, NoCommand> {
    Step::save(Command::new("metastat -p").to_file("metastat-p.before"))
}

/// The line that makes it as it is now.
fn was(request: &SoftpartRequest, part: &SoftPartition) -> Command {
    metainit(request, &part.name, &part.extents)
}

/// If each soft partition is one side of a mirror, the other side keeps the data while this one is recreated.
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
    .action(Action::ResyncSoftPartitions {
        component: DeviceRef::named(&request.component),
        moves: moves(&parts),
    })
    .step(layout_saved())
    .constraint(EXACT)
    .constraint("every mirror has another submirror in state Okay: metastat tells")
    .constraint("one component at a time: wait for all resyncs before the other side");
    for (part, _) in parts.iter().rev() {
        let Some(side) = &part.mirror else { continue };
        let clear = |name: &str| Command::new("metaclear").name(SVM, name);
        remedy = remedy.step(Step::new(
            detach(side)
                .and(clear(&side.submirror))
                .and(clear(&part.name)),
            "the mirror has one copy less until the resync is done",
            was(request, part).and(attach(side, part)),
        ));
    }
    remedy = remedy.steps(
        parts
            .iter()
            .map(|(part, extents)| create(request, &part.name, extents)),
    );
    for (part, _) in &parts {
        let Some(side) = &part.mirror else { continue };
        remedy = remedy.step(Step::new(
            attach(side, part),
            "a full resync: the disks are busy, and a failure of the other side loses data",
            detach(side),
        ));
    }
    Some(remedy.steps(added(request, placed)))
}

fn detach(side: &Submirror) -> Command {
    Command::new("metadetach")
        .name(SVM, &side.mirror)
        .name(SVM, &side.submirror)
}

/// Makes the submirror of a soft partition, and gives it to its mirror.
fn attach(side: &Submirror, part: &SoftPartition) -> Command {
    let made = Command::new("metainit")
        .name(SVM, &side.submirror)
        .flags("1 1")
        .name(SVM, &part.name);
    made.and(
        Command::new("metattach")
            .name(SVM, &side.mirror)
            .name(SVM, &side.submirror),
    )
}
