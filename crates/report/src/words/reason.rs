//! Why a rule could not judge, in words.

use plumb_geometry::{Bytes, plural};
use plumb_model::Reason;
use plumb_model::reason::Counting;

use super::phrase::{list, part_of, share};
use super::record_mismatch::keeper;
use super::software_stripe_on_hardware_raid::because;

/// The reason as a clause that follows the name of the target, without a full stop. A device whose name was removed is
/// `its device`.
#[must_use]
pub fn reason(reason: &Reason) -> String {
    let named = |name: &String| match name.as_str() {
        "" => "its device".to_owned(),
        name => name.to_owned(),
    };
    match reason {
        Reason::TooFew { what, seen, needed } => too_few(*what, *seen, *needed),
        Reason::Table { why } => why.to_string(),
        Reason::Lost { count, of, lost } => format!(
            "{} were seen, but the source lost {}",
            part_of(*count, *of),
            plural(*lost, "event")
        ),
        Reason::BeyondAssumed {
            count,
            of,
            granularity_bytes: grid,
        } => format!(
            "{} start off the assumed grid of {grid}; unknown beyond {grid}, since no grid is known: pass one with --grid",
            part_of(*count, *of)
        ),
        Reason::BeyondShown { count, of, grid } => format!(
            "{} start off the {grid} that the virtual disk states; the layers below it are not visible",
            part_of(*count, *of)
        ),
        Reason::BeyondTested {
            count,
            of,
            granularity_bytes: unit,
        } => format!(
            "{} start off {unit}; unknown beyond it: the source tested no larger unit",
            part_of(*count, *of)
        ),
        Reason::CompletionsOnly => "completions alone do not show streams".to_owned(),
        Reason::MissingFiles { files } => {
            format!("streams have holes: the recording lacks {}", plural(*files, "file"))
        }
        Reason::Unordered => "counts by place do not show streams: the source does not tell the order".to_owned(),
        Reason::LengthsNotTold => "the source does not tell single lengths".to_owned(),
        Reason::PlacesInFiles => {
            "places at the vfs layer are places in files: chunks need a trace of the striped device".to_owned()
        }
        Reason::BelowRecords { layer } => format!(
            "records are decided above the {} layer: this needs a trace of the vfs layer",
            layer.word()
        ),
        Reason::DeviceUnknown { why } => why.clone(),
        Reason::Uncounted { ways } => {
            format!("processes use ways that are not counted: {}", ways.join(", "))
        }
        Reason::NotSynced => {
            "writes went through the cache, and the watch did not start and end synced: watch with --sync".to_owned()
        }
        Reason::Stack { because, more } => {
            let more = match more {
                0 => String::new(),
                more => format!("; and {}", plural(*more, "more reason")),
            };
            let because: Vec<String> = because.iter().map(super::obstacle).collect();
            format!("{}{more}", because.join("; "))
        }
        Reason::NoGrid => "no grid is known below it".to_owned(),
        Reason::HoldsLayer { layer } => {
            format!("it holds a {layer}, and the start of the data in it is not known")
        }
        Reason::DiscardVaries {
            unit_bytes,
            step_bytes,
            on,
        } => format!(
            "chunks between move it by multiples of {step_bytes}, so its place on the {unit_bytes} discard unit of {} differs",
            named(on)
        ),
        Reason::ChunksBelow { on } => format!("chunks below {} are no multiples of the unit", named(on)),
        Reason::ChunksBetween { devices } => {
            let between = match devices.is_empty() {
                true => String::new(),
                false => format!(" ({})", list(devices)),
            };
            format!("chunks between{between} are no multiples of those below, so the share differs from one to the next")
        }
        Reason::DiffersByChunk => "its place on the unit differs from one chunk to the next".to_owned(),
        Reason::NothingBeyond {
            on,
            granularity_bytes,
        } => format!("nothing is known of {} beyond {granularity_bytes}", named(on)),
        Reason::ChunkDoubted { why } => super::doubt(why),
        Reason::WideForAssumed { chunk_bytes, io } => format!(
            "a chunk of {chunk_bytes} is wide enough for I/O of {}, which are assumed; unknown for larger ones: pass --page or a \
             profile",
            io.bytes
        ),
        Reason::FewSplitForAssumed { io, on, split } => format!(
            "{} I/O of {}, which are assumed, cross chunks of {}; unknown for others: pass --page or a profile",
            share(*split).to_lowercase(),
            io.bytes,
            named(on)
        ),
        Reason::OnAssumedUnit { grid, given_bytes } => {
            let unit = assumed_unit(grid.granularity_bytes, &named(&grid.on), *given_bytes);
            format!("it is on {unit}; unknown beyond that")
        }
        Reason::ExtentLengths { on } => format!("the lengths of the extents on {} are not known", named(on)),
        Reason::Segment { on } => {
            format!("the segment of the array behind {} is not known: pass --segment", named(on))
        }
        Reason::DriveOrLun { device } => {
            format!("{} may be a drive or a LUN of an array", named(device))
        }
        Reason::NoIdentity { because: why } => {
            format!("{}, and it has no identity by which to find its other paths", because(why))
        }
        Reason::Paths => "its paths are not known".to_owned(),
        Reason::StripeTooLong => "its full stripe does not fit 64 bits".to_owned(),
        Reason::WritesToStripe { stripe_bytes } => format!(
            "a full stripe is {stripe_bytes}; the size of the writes is not known: pass --page or a profile"
        ),
        Reason::WritesToFlash { on, unit_bytes } => format!(
            "{} keeps blocks of {unit_bytes}; the size of the writes is not known: pass --page",
            named(on)
        ),
        Reason::IoToRecords {
            keeper: kind,
            record_bytes,
        } => format!(
            "{} of {record_bytes}: the size of the I/O is not known: pass --page",
            keeper(*kind)
        ),
        Reason::ParityManager => "the manager that computes its parity is not known".to_owned(),
        Reason::ParityLayout => "its chunks and parity are not known".to_owned(),
        Reason::StripeNotTold { on } => format!(
            "the stripe in its superblock is not known; the stripe below it is {}",
            named(on)
        ),
        Reason::StripeNotVisible { told_bytes, on } => format!(
            "its superblock states a stripe unit of {told_bytes}; a stripe of {} would not be visible from here",
            named(on)
        ),
        Reason::StatedBlocks => "the blocks that it states to its users are not known".to_owned(),
        Reason::HardwareRequest => "the largest request of the hardware is not known".to_owned(),
        Reason::ReadPolicy => "its read policy is not known".to_owned(),
        Reason::MountOptions => "its mount options are not known".to_owned(),
        Reason::SystemFile => "/etc/system is not known: md_mirror_wow_flg may be set".to_owned(),
        Reason::Maxphys => "maxphys is not known: 256 KiB by default, or less".to_owned(),
        Reason::ResyncSize => {
            "the I/O size of resyncs is not known: by default 32 KiB, or 512 KiB on later systems".to_owned()
        }
        Reason::Segmap { default_percent } => {
            format!("segmap_percent is not known: {default_percent} by default")
        }
        Reason::Nmd {
            metadevices,
            default,
        } => format!(
            "{}, and nmd of md.conf is not known: {default} by default, made as needed from Solaris 10 on",
            plural(*metadevices, "metadevice")
        ),
        Reason::WhichVolume { volumes } => {
            format!("{}: name the one that the rate is for", plural(*volumes, "volume"))
        }
        Reason::DiskRate => {
            "the rate of one disk is not known: measure it with the I/O of the application".to_owned()
        }
        Reason::Demand => "the demand is not known: pass a rate, a profile or iostat".to_owned(),
        Reason::PlaceOnDisks => "the place of its bytes on disks is not known".to_owned(),
    }
}

fn assumed_unit(granularity: Bytes, on: &str, given: Option<Bytes>) -> String {
    match given {
        Some(given) => format!(
            "the {granularity} assumed, since nothing larger than the {given} given is known of {on}"
        ),
        None => format!("the {granularity} assumed, since nothing is known of {on}"),
    }
}

fn too_few(what: Counting, seen: u64, needed: u64) -> String {
    match what {
        Counting::Ios => format!("{seen} I/O seen, {needed} needed"),
        Counting::Writes => format!("{} seen, {needed} needed", plural(seen, "write")),
        Counting::Calls => format!("{} seen, {needed} needed", plural(seen, "call")),
        Counting::Pieces { members } => format!(
            "{} seen, {needed} needed for {}",
            plural(seen, "piece"),
            plural(members, "member")
        ),
        Counting::TimedWindows => format!(
            "{} with enough timed I/O of one kind (90 % reads or 90 % writes) seen, {needed} needed",
            plural(seen, "window")
        ),
        Counting::Windows => format!(
            "{} with enough I/O seen, {needed} needed",
            plural(seen, "window")
        ),
    }
}
