//! `plumb plan`: from flags to a plan, and to its print.

use plumb_geometry::{Bytes, Grid, GridKind, SmallSort};
use plumb_model::result::plan::PlanInput;
use plumb_plan::partition::LabelScheme;
use plumb_plan::softpart::SoftPartition;
use plumb_plan::{
    Plan, PlanError, disks, filesystem, of_stack, partition, record, resync, softpart, stripe,
    writes,
};
use plumb_profile::Profile;
use plumb_report::plan as report;
use plumb_stack::{Kind, NodeId, Stack, node};
use plumb_trace::Layer;

use crate::cli::ColorChoice;
use crate::cli::plan::{
    Disks, Filesystem, FsKind, KeeperKind, LabelKind, ManagerKind, Partition, Plan as Args,
    PlanCommand, PlanOutput, RaidKind, RecordPlan, Resync, Softpart, Stripe, Writes,
};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

mod device_state;
mod inputs;

use inputs::{Dumps, read_dumps, read_profile};

/// A plan and its input.
struct Planned {
    plans: Vec<Plan>,
    inputs: Vec<PlanInput>,
    /// Whether some input was not read, or not to its end.
    is_partial: bool,
}

impl From<Plan> for Planned {
    fn from(plan: Plan) -> Planned {
        Planned {
            plans: vec![plan],
            inputs: Vec::new(),
            is_partial: false,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// When an input cannot be read, or there is no such plan.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let (planned, output) = match &args.what {
        PlanCommand::Partition(args) => (partition(args)?, args.output),
        PlanCommand::Stripe(args) => (stripe(args)?.into(), args.output),
        PlanCommand::Softpart(args) => (softpart(args)?, args.output),
        PlanCommand::Filesystem(args) => (filesystem(args)?.into(), args.output),
        PlanCommand::Record(args) => (record(args)?, args.output),
        PlanCommand::Resync(args) => (resync(args)?.into(), args.output),
        PlanCommand::Disks(args) => (disks(args)?.into(), args.output),
        PlanCommand::Writes(args) => (writes(args)?.into(), args.output),
    };
    print(&planned, output)?;
    let mut is_refused = false;
    for plan in &planned.plans {
        if let Some(why) = &plan.refusal {
            is_refused = true;
            Failure::unknown(format!("no way for {}: {why}", plan.title)).print();
        }
    }
    Ok(if planned.is_partial || is_refused {
        Exit::Unknown
    } else {
        Exit::Clean
    })
}

fn print(planned: &Planned, output: PlanOutput) -> Result<(), Failure> {
    let shown = if output.json {
        let run = crate::this_run::now();
        let json = report::json(&run, &planned.inputs, &planned.plans);
        json.map_err(|error| Failure::failed(&error))? + "\n"
    } else {
        output::drawn(report::text(
            &planned.inputs,
            &planned.plans,
            output::paper(ColorChoice::Never),
        ))
    };
    output::print(&shown)
}

/// The name of the plan's command, and its subject: all that a refused plan prints.
struct PlanSubject {
    kind: &'static str,
    title: String,
}

impl PlanSubject {
    fn new(kind: &'static str, title: String) -> PlanSubject {
        PlanSubject { kind, title }
    }

    /// A request that makes no sense is a mistake of the command line; one that cannot be met is a plan that says so.
    fn meet(self, plan: Result<Plan, PlanError>) -> Result<Plan, Failure> {
        match plan {
            Err(error) if error.is_usage() => Err(Failure::usage(error.to_string())),
            other => Ok(self.tell(other)),
        }
    }

    /// Facts that are missing in files are no mistake of the command line.
    fn tell(self, plan: Result<Plan, PlanError>) -> Plan {
        plan.unwrap_or_else(|why| Plan::refused(self.kind, self.title, why.to_string()))
    }
}

fn partition(args: &Partition) -> Result<Planned, Failure> {
    let asked = PlanSubject::new("partition", format!("a start on {}", args.device));
    if args.from.is_empty() {
        let device = device_state::find(&args.device)?;
        let is_stated = args.current.is_some() || args.new_label || args.label.is_some();
        let existing = match is_stated {
            true => None,
            false => device.partition(args.number),
        };
        let request = match existing {
            Some(request) => with_flags(request, args)?,
            None => partition_request(args, device.label())?,
        };
        let mut plan = asked.meet(partition::plan(&request))?;
        plan.warnings = device.warnings(&args.device);
        return Ok(plan.into());
    }
    let dumps = read_dumps(&args.from)?;
    let id = find(&dumps.stack, &args.device)?;
    let request = match of_stack::partition(&dumps.stack, id) {
        Ok(request) => with_flags(request, args)?,
        Err(why) => return Ok(planned(vec![asked.tell(Err(why))], dumps)),
    };
    Ok(planned(vec![asked.meet(partition::plan(&request))?], dumps))
}

/// A partition that exists, with the wishes of the command line.
fn with_flags(
    mut request: partition::PartitionRequest,
    args: &Partition,
) -> Result<partition::PartitionRequest, Failure> {
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
    Ok(request)
}

fn planned(plans: Vec<Plan>, dumps: Dumps) -> Planned {
    Planned {
        plans,
        inputs: dumps.inputs,
        is_partial: dumps.is_partial,
    }
}

fn find(stack: &Stack, name: &str) -> Result<NodeId, Failure> {
    stack
        .find(name)
        .ok_or_else(|| Failure::missing(format!("nothing in these files is named {name}")))
}

/// The first partition of a new label starts no earlier: boot loaders take the first MiB.
const NEW_LABEL_AFTER: Bytes = Bytes(1 << 20);

/// A partition as the command line states it, on a disk with this label.
fn partition_request(
    args: &Partition,
    found: Option<LabelKind>,
) -> Result<partition::PartitionRequest, Failure> {
    let is_assumed = args.grid.is_empty();
    // 1 MiB is the choice of today's tools, and a multiple of most units below.
    let grids = if is_assumed {
        vec![grid_of(1 << 20, 0)?]
    } else {
        args.grid.clone()
    };
    Ok(partition::PartitionRequest {
        device: args.device.clone(),
        label: label(args, found)?,
        is_new_label: args.new_label,
        sector_bytes: args.sector.0,
        disk_bytes: args.disk_size,
        grids: moved(&grids, args)?,
        are_grids_assumed: is_assumed,
        after: args.after.or(args.current).unwrap_or(match args.new_label {
            true => NEW_LABEL_AFTER,
            false => Bytes::default(),
        }),
        before: args.before,
        size: args.size,
        number: args.number,
        current: args.current,
        content: args.holds.clone(),
        file_system: None,
        reserved_from: None,
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

fn label(args: &Partition, found: Option<LabelKind>) -> Result<LabelScheme, Failure> {
    let cylinder = || {
        let missing =
            "an SMI label needs --geometry HEADSxSECTORS: prtvtoc prints both (tracks and sectors)";
        args.geometry.ok_or_else(|| Failure::usage(missing))
    };
    Ok(match args.label.or(found).unwrap_or(LabelKind::Gpt) {
        LabelKind::Gpt => LabelScheme::Gpt,
        LabelKind::Dos => LabelScheme::Dos,
        LabelKind::Efi => LabelScheme::SolarisEfi,
        LabelKind::Smi => LabelScheme::Smi {
            cylinder_sectors: cylinder()?,
        },
        LabelKind::SmiX86 => LabelScheme::SmiX86 {
            cylinder_sectors: cylinder()?,
            fdisk_start: args.fdisk_start.ok_or_else(|| {
                Failure::usage(
                    "slices on x86 count from --fdisk-start: fdisk -W prints it in sectors",
                )
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
            None => existing.push(SoftPartition {
                name: name.clone(),
                extents: vec![extent],
                mirror: None,
                users: Vec::new(),
            }),
        }
    }
    let request = softpart::SoftpartRequest {
        component: args.component.clone().unwrap_or_default(),
        unit: args.unit.unwrap_or_default(),
        is_unit_assumed: false,
        off_below: None,
        base: args.base,
        component_bytes: args.component_size,
        existing,
        new: args.new.clone(),
    };
    Ok(of_component(&request.component)
        .meet(softpart::plan(&request))?
        .into())
}

fn of_component(name: &str) -> PlanSubject {
    PlanSubject::new("softpart", format!("soft partitions of {name}"))
}

fn softpart_from(args: &Softpart) -> Result<Planned, Failure> {
    let dumps = read_dumps(&args.from)?;
    let components = match &args.component {
        Some(name) => vec![find(&dumps.stack, name)?],
        None => components(&dumps.stack),
    };
    if components.is_empty() {
        let why = PlanError::Missing {
            what: "a soft partition",
            give: "give the output of metastat -p",
        };
        let plan = PlanSubject::new("softpart", "soft partitions".to_owned()).tell(Err(why));
        return Ok(planned(vec![plan], dumps));
    }
    if !args.new.is_empty() && components.len() > 1 {
        return Err(Failure::usage(
            "--new needs the component that it is to be cut out of",
        ));
    }
    let mut plans = Vec::with_capacity(components.len());
    for id in components {
        let asked = of_component(dumps.stack.node(id).own_name());
        let found = of_stack::softpart(&dumps.stack, id, args.unit);
        let mut request = match found.and_then(|found| softpart::check(&found).map(|()| found)) {
            Ok(request) => request,
            Err(why) => {
                plans.push(asked.tell(Err(why)));
                continue;
            }
        };
        request.component_bytes = args.component_size.or(request.component_bytes);
        request.new.clone_from(&args.new);
        let plan = softpart::plan(&request);
        plans.push(if args.new.is_empty() {
            asked.tell(plan)
        } else {
            asked.meet(plan)?
        });
    }
    Ok(planned(plans, dumps))
}

/// The components that contain soft partitions, by name.
fn components(stack: &Stack) -> Vec<NodeId> {
    let is_cut = |id: &NodeId| {
        stack
            .above(*id)
            .iter()
            .any(|above| stack.node(*above).kind == Kind::SoftPartition)
    };
    let mut found: Vec<NodeId> = stack.nodes().map(|(id, _)| id).filter(is_cut).collect();
    found.small_sort_by(|a, b| plumb_geometry::natural(&stack.node(*a).name, &stack.node(*b).name));
    found
}

fn stripe(args: &Stripe) -> Result<Plan, Failure> {
    let request = stripe::StripeRequest {
        io: args.io,
        base: args.base,
        starts: if args.any_sector {
            stripe::IoStarts::AnySector
        } else {
            stripe::IoStarts::Pages
        },
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
    };
    PlanSubject::new("stripe", format!("chunks for I/O of {}", args.io))
        .meet(stripe::plan(&request))
}

fn filesystem(args: &Filesystem) -> Result<Plan, Failure> {
    let members = args.members.unwrap_or(1);
    let data = node::data_chunks(members, args.parity, args.copies).ok_or_else(|| {
        Failure::usage(format!(
            "{members} members leave none for data, or do not come out even: parity {}, copies {}",
            args.parity, args.copies
        ))
    })?;
    let request = filesystem::FilesystemRequest {
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
    };
    let title = format!("{} on {}", request.kind.word(), args.device);
    PlanSubject::new("filesystem", title).meet(filesystem::plan(&request))
}

fn record(args: &RecordPlan) -> Result<Planned, Failure> {
    let keeper = match args.keeper {
        KeeperKind::Zfs => record::Keeper::Zfs,
        KeeperKind::Zvol => record::Keeper::ZfsVolume,
        KeeperKind::Ufs => record::Keeper::Ufs,
    };
    let plan = |load| {
        let request = record::RecordRequest {
            load,
            keeper,
            name: args.name.clone(),
            current: args.current,
        };
        PlanSubject::new("record", format!("records of {}", args.name)).meet(record::plan(&request))
    };
    match (&args.profile, args.page) {
        (Some(path), _) => {
            let (profiles, input) = read_profile(path)?;
            // A watch of applications also saves the I/O of their disks, and those do not ask for a record.
            let is_asked = |profile: &&Profile| profile.layer == Layer::Vfs;
            let has_asked = profiles.iter().any(|profile| is_asked(&profile));
            let asked = profiles
                .iter()
                .filter(|profile| !has_asked || is_asked(profile));
            let plans = asked.map(|profile| plan(record::Load::Profile(profile)));
            let plans: Vec<Plan> = plans.collect::<Result<_, Failure>>()?;
            Ok(Planned {
                plans,
                inputs: vec![input],
                is_partial: false,
            })
        }
        (None, page) => Ok(plan(record::Load::Page(page.unwrap_or_default()))?.into()),
    }
}

fn resync(args: &Resync) -> Result<Plan, Failure> {
    let request = resync::ResyncRequest {
        size: args.size,
        maxphys: args.maxphys,
        mirror: args.mirror,
    };
    PlanSubject::new("resync", format!("resync in I/O of {}", args.size))
        .meet(resync::plan(&request))
}

fn disks(args: &Disks) -> Result<Plan, Failure> {
    let request = disks::DisksRequest {
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
    };
    PlanSubject::new("disks", format!("disks as {}", request.raid.word()))
        .meet(disks::plan(&request))
}

fn writes(args: &Writes) -> Result<Plan, Failure> {
    let request = writes::WritesRequest {
        record: args.record,
        gather: args.gather,
        demand: args.demand,
        random: args.random,
        sequential: args.sequential,
        gathered: args.gathered,
        gathered_sequential: args.both,
    };
    PlanSubject::new("writes", format!("writes of records of {}", args.record))
        .meet(writes::plan(&request))
}
