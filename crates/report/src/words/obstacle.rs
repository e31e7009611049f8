//! Why the place of bytes is not known and why a statement is doubted, in words.

use plumb_geometry::{Bytes, group_digits, plural};
use plumb_stack::{GridDoubt, ImageObstacle, LuksFault, Obstacle};

/// The reason, without a full stop.
#[must_use]
pub fn obstacle(why: &Obstacle) -> String {
    match why {
        Obstacle::TooManyLayers { layers } => {
            format!("more than {layers} layers: those below were not followed")
        }
        Obstacle::TooManyPieces { pieces } => {
            format!("more than {pieces} pieces below: not all were followed")
        }
        Obstacle::StandsOnItself { upper, lower } => {
            format!("{upper} is on {lower}, and {lower} is on {upper}")
        }
        Obstacle::BeyondLayer => "it ends beyond the layer below it".to_owned(),
        Obstacle::Hole { file } => {
            format!("{file} has a hole there: nothing is placed until it is written")
        }
        Obstacle::NoPart { of } => format!("no part of {of} is placed there"),
        Obstacle::NothingKnown => "nothing is known of the layers below it".to_owned(),
        Obstacle::NothingBeyond {
            on,
            granularity_bytes,
        } => format!("nothing is known of {on} beyond {granularity_bytes}"),
        Obstacle::BelowVirtualDisk { disk, target: None } => {
            format!("on the grid that the virtual disk states; layers below {disk} are not visible")
        }
        Obstacle::BelowVirtualDisk {
            disk,
            target: Some(target),
        } => format!(
            "on the grid that the virtual disk states; only its target {target} knows the layers below {disk}"
        ),
        Obstacle::Refused { said } => said.clone(),
        Obstacle::Beyond64Bits { source: None } => "it ends beyond 2^64 bytes".to_owned(),
        Obstacle::Beyond64Bits {
            source: Some(source),
        } => format!("{source}: it ends beyond 2^64 bytes"),
        Obstacle::NoTable => "no table is loaded".to_owned(),
        Obstacle::LeadsNowhere => "its table leads nowhere: error or zero".to_owned(),
        Obstacle::UnknownTarget { target } => format!("the target {target} is not known"),
        Obstacle::IntegrityChecksums => {
            "dm-integrity puts checksums between the data".to_owned()
        }
        Obstacle::PoolTableMissing => {
            "the block of its pool is not known: the table of the pool is missing".to_owned()
        }
        Obstacle::TableNotCollected => "its table is not among the collected files".to_owned(),
        Obstacle::TableNeedsRoot => "table not readable without root".to_owned(),
        Obstacle::NoBackingDevice => "the backing device is not known".to_owned(),
        Obstacle::UnknownUse { device } => {
            format!("how {device} uses the devices below it is not known")
        }
        Obstacle::Drbd => "DRBD does not state the device of its data".to_owned(),
        Obstacle::PlacesItself { format } => format!("{format} places its blocks itself"),
        Obstacle::NoBacking => "its target does not state the device or file behind it".to_owned(),
        Obstacle::ServedByProgram { handler: None } => "a program serves it".to_owned(),
        Obstacle::ServedByProgram {
            handler: Some(handler),
        } => format!("a program serves it ({handler:?})"),
        Obstacle::NotOfHost { device } => {
            format!("its device {device} is not among those of this host")
        }
        Obstacle::NoFileSystem => "no mounted file system holds it".to_owned(),
        Obstacle::NotOnBlockDevice { format } => {
            format!("{format} is not on a block device of this host")
        }
        Obstacle::RealtimeDevice => {
            "it may be on the realtime device of its file system".to_owned()
        }
        Obstacle::OnlyHost => "only its host can tell the place of its bytes".to_owned(),
        Obstacle::FileDeleted { file } => format!("its file {file} was deleted"),
        Obstacle::NothingPlaced => "none of its bytes has a place on the device yet".to_owned(),
        Obstacle::ArrayState { state } => format!(
            "the array is {state}: only the superblocks of its members state the start of the data"
        ),
        Obstacle::MembersNotPrinted => {
            "its members are not printed: the array does not run".to_owned()
        }
        Obstacle::Reshaping { sector: None } => "the array is being reshaped".to_owned(),
        Obstacle::Reshaping {
            sector: Some(sector),
        } => format!("the array is being reshaped, and is at sector {sector}"),
        Obstacle::TooManyMembers { members } => format!("the array claims {members} members"),
        Obstacle::DataStart { member } => format!("the start of the data on {member} is not stated"),
        Obstacle::DataStartInSuperblock { member } => format!(
            "only its superblock states the start of the data on {member}: add `mdadm --examine /dev/{member}`"
        ),
        Obstacle::NoChunk => "the chunk is not stated".to_owned(),
        Obstacle::MemberSize => "the size of a member is not stated".to_owned(),
        Obstacle::MemberSizesInSuperblocks => {
            "only superblocks state the sizes of its members: add `mdadm --examine`".to_owned()
        }
        Obstacle::MissingMemberSize => {
            "a member is missing, so its length is not known".to_owned()
        }
        Obstacle::MissingMember { array, slot } => format!("member {slot} of {array} is missing"),
        Obstacle::UnknownLevel { level } => format!("the level {level:?} is not known"),
        Obstacle::MissingVolume { volume, group } => {
            format!("{volume} of volume group {group} was not seen")
        }
        Obstacle::Snapshot => "a snapshot: unchanged blocks are in its origin".to_owned(),
        Obstacle::NotInGroupText => "the text of the volume group does not state its place".to_owned(),
        Obstacle::UnknownSegment { segment } => {
            format!("the places of segments of type {segment:?} are not known here")
        }
        Obstacle::SegmentNotPrinted { segment } => format!(
            "the places of segments of type {segment} are not in this report: add `dmsetup table`"
        ),
        Obstacle::HiddenVolume => {
            "a hidden volume, which was not printed: use `lvs -a --segments`".to_owned()
        }
        Obstacle::PoolBlockNotPrinted => {
            "the block of its pool is not known: add `lvs --segments -o +chunk_size`".to_owned()
        }
        Obstacle::RoundedSegment => {
            "the length of a segment is rounded: use `lvs --segments --units s`".to_owned()
        }
        Obstacle::ExtentNotPrinted => {
            "the extent of its group is not known: add `vgs -o +vg_extent_size`".to_owned()
        }
        Obstacle::FirstExtentNotPrinted { device } => format!(
            "the first extent of {device} is not known: add `pvs -o +pe_start --units s`"
        ),
        Obstacle::SegmentDevicesNotPrinted => {
            "its devices were not printed: add `lvs --segments -o +devices`".to_owned()
        }
        Obstacle::StripeNotPrinted => {
            "its stripe was not printed: add `lvs --segments -o +stripe_size`".to_owned()
        }
        Obstacle::ZfsPartition => {
            "the partition that ZFS made on a whole disk is not among the dumps: add its label, or `zdb -C`".to_owned()
        }
        Obstacle::VdevDisks => {
            "its disks are not in the dump: use `zdb -C` or `zpool status`".to_owned()
        }
        Obstacle::RoundedCylinders => {
            "the table counts in rounded cylinders: use `sfdisk -d`".to_owned()
        }
        Obstacle::RoundedByParted => "parted rounded the starts: use `parted unit s print`".to_owned(),
        Obstacle::NoStartColumn => {
            "lsblk was not asked for START: use `lsblk -J -O -b`, or `dmsetup table` for mapped partitions".to_owned()
        }
        Obstacle::ImageFile => {
            "an image in a file: the layers below the file are not in the dumps".to_owned()
        }
        Obstacle::NumberAlone { number } => {
            format!("device {number} is named by its number alone: add `lsblk -J -O -b`")
        }
        Obstacle::LoopFileNotPrinted => {
            "lsblk does not print the file of a loop device: run `plumb check` on the host".to_owned()
        }
        Obstacle::ArrayStartNotPrinted => {
            "lsblk does not print the start of an array's data: add `mdadm --detail` of it and `mdadm --examine` of its members".to_owned()
        }
        Obstacle::MappedStartNotPrinted => {
            "lsblk does not print the start of a mapped device's data: add `dmsetup table`".to_owned()
        }
        Obstacle::LabelNotDumped { disk } => format!(
            "the label of {disk} is not among the dumps: add `sfdisk -d /dev/{disk}` or `lsblk -J -O -b`"
        ),
        Obstacle::NotDescribed => {
            "other layers are on it, and no dump describes it".to_owned()
        }
        Obstacle::NoDeviceName => {
            "dumpe2fs does not print its device: name the file after it, as in dumpe2fs-sda1.txt".to_owned()
        }
        Obstacle::RaidZ => "RAID-Z places each block by its length".to_owned(),
        Obstacle::NoAshift => "the label does not state ashift".to_owned(),
        Obstacle::SpreadOverVdevs => "ZFS places its blocks itself".to_owned(),
        Obstacle::UnknownVdev { vdev } => {
            format!("the places of blocks on a vdev of type {vdev:?} are not known here")
        }
        Obstacle::ChosenByMetainit { volume } => {
            format!("metainit chose the place of {volume}: add `metastat -p {volume}`")
        }
        Obstacle::BehindReplicas { component } => format!(
            "{component} holds state database replicas, and the cylinders of its disk are not known"
        ),
        Obstacle::NoInterlace {
            old_bytes,
            new_bytes,
        } => no_interlace(*old_bytes, *new_bytes),
        Obstacle::RowLength { row } => format!(
            "the length of {} is not known, and with it the start of the rows behind it",
            row.as_deref().unwrap_or("a row")
        ),
        Obstacle::ColumnStart { column } => {
            format!("the start of the data of column {column} is not known")
        }
        Obstacle::VolumeNotDescribed { volume } => format!("nothing describes {volume}"),
        Obstacle::NotInLabel { disk, slice } => format!("the label of {disk} has no {slice}"),
        Obstacle::NoLabel { disk } => format!("no label of {disk} was given"),
        Obstacle::PublicRegion { device } => {
            format!("the start of the public region is not stated: add `vxdisk list {device}`")
        }
        Obstacle::FdiskStart { disk } => format!(
            "the label counts from the fdisk partition for Solaris, whose start on {disk} it does not state"
        ),
        Obstacle::LuksHeader { fault } => luks_fault(fault),
        Obstacle::Image { fault } => image_obstacle(fault),
    }
}

fn no_interlace(old: Bytes, new: Bytes) -> String {
    format!("no interlace is given: {old} before illumos, {new} there")
}

fn luks_fault(fault: &LuksFault) -> String {
    match fault {
        LuksFault::BeyondEnd => "its data start beyond the end".to_owned(),
        LuksFault::Detached => "its header is not on the device of its data".to_owned(),
        LuksFault::CutOff => "the header is cut off".to_owned(),
        LuksFault::Length(bytes) => {
            format!("found a header of {bytes} bytes, expected one of 16 KiB to 4 MiB")
        }
        LuksFault::NoJson => "the text of the header is no JSON".to_owned(),
        LuksFault::NoSegments => "the header names no segments".to_owned(),
        LuksFault::Segments(found) => {
            format!("found {found} segments, expected one: it is being encrypted again")
        }
        LuksFault::NotInPlace => "its data are not encrypted in place".to_owned(),
        LuksFault::NoStart => "the header does not state the start of the data".to_owned(),
    }
}

fn image_obstacle(fault: &ImageObstacle) -> String {
    match fault {
        ImageObstacle::Unreadable => "the virtual disk in it cannot be read".to_owned(),
        ImageObstacle::SomeCompressed => {
            "some of its clusters are compressed, and those start at any byte".to_owned()
        }
        ImageObstacle::AllCompressed => {
            "its clusters are compressed, and those start at any byte".to_owned()
        }
        ImageObstacle::SomeInBacking => {
            "some of its clusters are in its backing file, and that file is not known here"
                .to_owned()
        }
        ImageObstacle::AllInBacking => {
            "its clusters are in its backing file, and that file is not known here".to_owned()
        }
        ImageObstacle::GrainsCompressed => "its grains are compressed".to_owned(),
        ImageObstacle::TooManyBlocks(most) => {
            format!("it has more than {}", plural(*most, "grain"))
        }
        ImageObstacle::ExtentKind(kind) => {
            format!("its extents of kind {kind} are files with tables of their own")
        }
    }
}

/// Why a statement is not believed, without a full stop.
#[must_use]
pub fn doubt(why: &GridDoubt) -> String {
    match why {
        GridDoubt::Derived => "worked out by the kernel from the devices below".to_owned(),
        GridDoubt::TakenOver => "taken over from the layer that holds the file".to_owned(),
        GridDoubt::NoOffset => "the kernel found no offset that fits".to_owned(),
        GridDoubt::Bridge => format!(
            "{} sectors are the limit of a USB bridge, not a preference of the drive",
            group_digits(65_535)
        ),
        GridDoubt::LargerThan { bytes } => format!("larger than {bytes}"),
        GridDoubt::BelowPhysical { physical_bytes } => {
            format!("smaller than the physical block of {physical_bytes}")
        }
        GridDoubt::OffPhysical { physical_bytes } => {
            format!("no multiple of the physical block of {physical_bytes}")
        }
        GridDoubt::OffMinimum { minimum_bytes } => {
            format!("no multiple of the minimum I/O size of {minimum_bytes}")
        }
        GridDoubt::OddSectors => "an odd number of sectors".to_owned(),
        GridDoubt::PreferredSize => {
            "NOWS is a size that suits the drive, and not the unit in which it maps flash"
                .to_owned()
        }
        GridDoubt::StatedToInitiators => {
            "stated to initiators; the layers below are known here".to_owned()
        }
        GridDoubt::StatedByVirtualDisk { made_of } => {
            format!("stated by a virtual disk, and {made_of}, which it is made of, decides")
        }
        GridDoubt::NoInterlace {
            old_bytes,
            new_bytes,
        } => no_interlace(*old_bytes, *new_bytes),
        GridDoubt::Choice { said } => format!("{said}: pick one with --disk-type or --grid"),
    }
}
