//! `plumb plan`: from flags to a plan, and to its print.

use plumb_geometry::{Grid, GridKind};
use plumb_plan::partition::Label;
use plumb_plan::softpart::SoftPartition;
use plumb_plan::{
    Plan, PlanError, disks, filesystem, of_stack, partition, record, resync, softpart, stripe, writes,
};
use plumb_profile::Profile;
use plumb_report::plan as report;
use plumb_stack::{Kind, NodeId, Stack, node};
use plumb_trace::Layer;

use crate::cli::plan::{
    Disks, Filesystem, FsKind, KeeperKind, LabelKind, ManagerKind, Output, Partition, Plan as Args, RaidKind,
    Record, Resync, Softpart, Stripe, What, Writes,
};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

mod inputs;

use inputs::{Dumps, read_dumps, read_profile};

/// What was planned, and from what.
struct Planned {
    plans: Vec<Plan>,
    inputs: Vec<report::Input>,
    /// Whether some input was not read, or not to its end.
    is_partial: bool,
}

impl From<Plan> for Planned {
    fn from(plan: Plan) -> Planned {
        Planned { plans: vec![plan], inputs: Vec::new(), is_partial: false }
    }
}

/// Runs the command.
///
/// # Errors
/// When what was named cannot be read, or there is no such plan.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let (planned, output) = match &args.what {
        What::Partition(args) => (partition(args)?, args.output),
        What::Stripe(args) => (stripe::plan(&stripe(args)).map_err(fail)?.into(), args.output),
        What::Softpart(args) => (softpart(args)?, args.output),
        What::Filesystem(args) => (filesystem::plan(&filesystem(args)?).map_err(fail)?.into(), args.output),
        What::Record(args) => (record(args)?, args.output),
        What::Resync(args) => (resync::plan(&resync(args)).map_err(fail)?.into(), args.output),
        What::Disks(args) => (disks::plan(&disks(args)).map_err(fail)?.into(), args.output),
        What::Writes(args) => (writes::plan(&writes(args)).map_err(fail)?.into(), args.output),
    };
    print(&planned, output)?;
    let mut is_refused = false;
    for plan in &planned.plans {
        if let Some(why) = &plan.refusal {
            is_refused = true;
            Failure::unknown(format!("no way for {}: {why}", plan.title)).print();
        }
    }
    Ok(if planned.is_partial || is_refused { Exit::Unknown } else { Exit::Clean })
}

fn print(planned: &Planned, output: Output) -> Result<(), Failure> {
    let shown = if output.json {
        let version = env!("CARGO_PKG_VERSION");
        let json = report::json(version, &planned.inputs, &planned.plans);
        json.map_err(|error| Failure::failed(&error))? + "\n"
    } else {
        report::text(&planned.inputs, &planned.plans)
    };
    output::print(&shown)
}

/// A request that cannot be met ends otherwise than one that makes no sense.
fn fail(error: PlanError) -> Failure {
    if error.is_usage() { Failure::usage(error.to_string()) } else { Failure::unknown(error.to_string()) }
}

/// What files do not tell is no mistake of the command line.
fn untold(error: PlanError) -> Failure {
    Failure::unknown(error.to_string())
}

fn partition(args: &Partition) -> Result<Planned, Failure> {
    if args.from.is_empty() {
        let request = partition_request(args)?;
        return Ok(partition::plan(&request).map_err(fail)?.into());
    }
    let dumps = read_dumps(&args.from)?;
    let id = find(&dumps.stack, &args.device)?;
    let mut request = of_stack::partition(&dumps.stack, id).map_err(untold)?;
    if !args.grid.is_empty() {
        request.grids.clone_from(&args.grid);
        request.are_grids_assumed = false;
    }
    request.grids = moved(&request.grids, args)?;
    request.after = args.after.unwrap_or(request.after);
    request.before = args.before.or(request.before);
    request.size = args.size.or(request.size);
    request.disk_bytes = args.disk_size.or(request.disk_bytes);
    request.content = args.holds.clone().or(request.content);
    if args.size.is_none() {
        request = partition::fitted(request).map_err(fail)?;
    }
    Ok(planned(vec![partition::plan(&request).map_err(fail)?], dumps))
}

fn planned(plans: Vec<Plan>, dumps: Dumps) -> Planned {
    Planned { plans, inputs: dumps.inputs, is_partial: dumps.is_partial }
}

fn find(stack: &Stack, name: &str) -> Result<NodeId, Failure> {
    stack.find(name).ok_or_else(|| Failure::usage(format!("nothing in these files is named {name}")))
}

fn partition_request(args: &Partition) -> Result<partition::Request, Failure> {
    let is_assumed = args.grid.is_empty();
    // 1 MiB is what the tools of today take, and a multiple of what may be below.
    let grids = if is_assumed { vec![grid_of(1 << 20, 0)?] } else { args.grid.clone() };
    Ok(partition::Request {
        device: args.device.clone(),
        label: label(args)?,
        is_new_label: args.new_label,
        sector_bytes: args.sector.0,
        disk_bytes: args.disk_size,
        grids: moved(&grids, args)?,
        are_grids_assumed: is_assumed,
        after: args.after.or(args.current).unwrap_or_default(),
        before: args.before,
        size: args.size,
        number: args.number,
        current: args.current,
        content: args.holds.clone(),
        file_system: None,
        smaller_by: None,
    })
}

fn grid_of(granularity: u64, offset: u64) -> Result<Grid, Failure> {
    let offset = plumb_geometry::Bytes(offset % granularity.max(1));
    Grid::new(plumb_geometry::Bytes(granularity), offset, GridKind::Unit)
        .map_err(|error| Failure::usage(error.to_string()))
}

/// Grids with the alignment offset of the disk, which is part of them.
fn moved(grids: &[Grid], args: &Partition) -> Result<Vec<Grid>, Failure> {
    let by = args.alignment_offset.unwrap_or_default().0;
    let moved = |grid: &Grid| {
        let granularity = grid.granularity().0;
        let offset = (u128::from(grid.offset().0) + u128::from(by)) % u128::from(granularity);
        grid_of(granularity, offset as u64)
    };
    grids.iter().map(moved).collect()
}

fn label(args: &Partition) -> Result<Label, Failure> {
    let cylinder = || {
        let missing = "an SMI label needs --geometry HEADSxSECTORS: prtvtoc prints both (tracks and sectors)";
        args.geometry.ok_or_else(|| Failure::usage(missing))
    };
    Ok(match args.label {
        LabelKind::Gpt => Label::Gpt,
        LabelKind::Dos => Label::Dos,
        LabelKind::Efi => Label::SolarisEfi,
        LabelKind::Smi => Label::Smi { cylinder_sectors: cylinder()? },
        LabelKind::SmiX86 => Label::SmiX86 {
            cylinder_sectors: cylinder()?,
            fdisk_start: args.fdisk_start.ok_or_else(|| {
                Failure::usage("slices on x86 count from --fdisk-start: fdisk -W prints it in sectors")
            })?,
        },
    })
}

fn softpart(args: &Softpart) -> Result<Planned, Failure> {
    if !args.from.is_empty() {
        return softpart_from(args);
    }
    let sectors = |bytes: plumb_geometry::Bytes| {
        let whole = bytes.to_sectors_exact().map(|sectors| sectors.0);
        whole.ok_or_else(|| Failure::usage(format!("{bytes} is no whole number of sectors")))
    };
    // A name that is given twice is that of a volume of two extents.
    let mut existing: Vec<SoftPartition> = Vec::new();
    for (name, at, len) in &args.existing {
        let extent = (sectors(*at)?, sectors(*len)?);
        match existing.iter_mut().find(|volume| volume.name == *name) {
            Some(volume) => volume.extents.push(extent),
            None => existing.push(SoftPartition { name: name.clone(), extents: vec![extent], mirror: None }),
        }
    }
    let request = softpart::Request {
        component: args.component.clone().unwrap_or_default(),
        unit: args.unit.unwrap_or_default(),
        base: args.base,
        component_bytes: args.component_size,
        existing,
        new: args.new.clone(),
    };
    Ok(softpart::plan(&request).map_err(fail)?.into())
}

fn softpart_from(args: &Softpart) -> Result<Planned, Failure> {
    let dumps = read_dumps(&args.from)?;
    let components = match &args.component {
        Some(name) => vec![find(&dumps.stack, name)?],
        None => components(&dumps.stack),
    };
    if components.is_empty() {
        return Err(
            Failure::unknown("no soft partition in these files").with_help("give the output of metastat -p")
        );
    }
    if !args.new.is_empty() && components.len() > 1 {
        return Err(Failure::usage("--new needs the component that it is to be cut out of"));
    }
    let mut plans = Vec::with_capacity(components.len());
    for id in components {
        let mut request = of_stack::softpart(&dumps.stack, id, args.unit).map_err(untold)?;
        request.component_bytes = args.component_size.or(request.component_bytes);
        request.new.clone_from(&args.new);
        let blame = if args.new.is_empty() { untold } else { fail };
        plans.push(softpart::plan(&request).map_err(blame)?);
    }
    Ok(planned(plans, dumps))
}

/// What soft partitions are cut out of, by name.
fn components(stack: &Stack) -> Vec<NodeId> {
    let is_cut =
        |id: &NodeId| stack.above(*id).iter().any(|above| stack.node(*above).kind == Kind::SoftPartition);
    let mut found: Vec<NodeId> = stack.nodes().map(|(id, _)| id).filter(is_cut).collect();
    found.sort_by(|a, b| plumb_stack::graph::natural(&stack.node(*a).name, &stack.node(*b).name));
    found
}

fn stripe(args: &Stripe) -> stripe::Request {
    stripe::Request {
        io: args.io,
        base: args.base,
        starts: if args.any_sector { stripe::Starts::AnySector } else { stripe::Starts::Pages },
        share_max: args.share,
        chunk: args.chunk,
        segment: args.segment,
        manager: match args.manager {
            ManagerKind::Svm => stripe::Manager::Svm,
            ManagerKind::Md => stripe::Manager::Md,
            ManagerKind::Lvm => stripe::Manager::Lvm,
        },
        members: args.members.clone(),
        parity: args.parity,
    }
}

fn filesystem(args: &Filesystem) -> Result<filesystem::Request, Failure> {
    let members = args.members.unwrap_or(1);
    let data = node::data_chunks(members, args.parity, args.copies).ok_or_else(|| {
        Failure::usage(format!(
            "{members} members leave none for data, or do not come out even: parity {}, copies {}",
            args.parity, args.copies
        ))
    })?;
    Ok(filesystem::Request {
        kind: match args.kind {
            FsKind::Ext4 => filesystem::Type::Ext4,
            FsKind::Xfs => filesystem::Type::Xfs,
            FsKind::Btrfs => filesystem::Type::Btrfs,
            FsKind::Ufs => filesystem::Type::Ufs,
            FsKind::Zfs => filesystem::Type::Zfs,
        },
        device: args.device.clone(),
        mount: args.mount.clone(),
        chunk: args.chunk,
        data_members: data,
        block: args.block,
        physical: args.physical,
        page: args.page,
    })
}

fn record(args: &Record) -> Result<Planned, Failure> {
    let keeper = match args.keeper {
        KeeperKind::Zfs => record::Keeper::Zfs,
        KeeperKind::Zvol => record::Keeper::ZfsVolume,
        KeeperKind::Ufs => record::Keeper::Ufs,
    };
    let plan = |load| {
        let request = record::Request { load, keeper, name: args.name.clone(), current: args.current };
        record::plan(&request).map_err(fail)
    };
    match (&args.profile, args.page) {
        (Some(path), _) => {
            let (profiles, input) = read_profile(path)?;
            // A watch of applications saves what their disks received as well, which asks for no record.
            let is_asked = |profile: &&Profile| profile.layer == Layer::Vfs;
            let has_asked = profiles.iter().any(|profile| is_asked(&profile));
            let asked = profiles.iter().filter(|profile| !has_asked || is_asked(profile));
            let plans = asked.map(|profile| plan(record::Load::Profile(profile)));
            let plans: Vec<Plan> = plans.collect::<Result<_, Failure>>()?;
            Ok(Planned { plans, inputs: vec![input], is_partial: false })
        }
        (None, page) => Ok(plan(record::Load::Page(page.unwrap_or_default()))?.into()),
    }
}

fn resync(args: &Resync) -> resync::Request {
    resync::Request { size: args.size, maxphys: args.maxphys, mirror: args.mirror }
}

fn disks(args: &Disks) -> disks::Request {
    disks::Request {
        reads: args.reads,
        writes: args.writes,
        growth: args.growth,
        disk_rate: args.disk_rate,
        raid: match args.raid {
            RaidKind::Raid0 => disks::Raid::Raid0,
            RaidKind::Raid1 => disks::Raid::Raid1,
            RaidKind::Raid10 => disks::Raid::Raid10,
            RaidKind::Raid5 => disks::Raid::Raid5,
            RaidKind::Raid6 => disks::Raid::Raid6,
        },
        margin: args.margin.numerator as f64 / args.margin.denominator as f64,
        response_ms: args.response,
        chunk_kib: args.chunk.0.div_ceil(1024),
    }
}

fn writes(args: &Writes) -> writes::Request {
    writes::Request {
        record: args.record,
        gather: args.gather,
        demand: args.demand,
        random: args.random,
        sequential: args.sequential,
        gathered: args.gathered,
        gathered_sequential: args.both,
    }
}
