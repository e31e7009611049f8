//! Data and label moved in place: by `plumb fix move`, which an interruption does not harm, and by `sfdisk`, which it does.

use plumb_geometry::{SECTOR, group_digits};

use plumb_model::{Action, PartitionRef};
use plumb_quoting::{Command, NoCommand};

use super::{PartitionWork, smaller};
use crate::plan::{Harm, Remedy, Step};

const UNUSED: &str = "unmount it first; no volume, swap or database may use it during the move";

impl PartitionWork<'_> {
    /// The way that loses nothing first.
    pub(super) fn shifts(&self) -> Vec<Remedy> {
        self.plumb_fix_move()
            .into_iter()
            .chain(self.sfdisk_move_data())
            .collect()
    }

    fn way(&self, harm: Harm, title: &str) -> Remedy {
        let start = crate::error::position(self.layout.start);
        Remedy::new(harm, title, format!("starts at {start}, data with it")).constraint(UNUSED)
    }

    /// The unmount that a move needs; nothing if the file system is not mounted, or if it is the root file system, which
    /// only another system can move.
    fn unmount(&self) -> Option<Result<Step, NoCommand>> {
        let mount = self.mount().filter(|mount| *mount != "/")?;
        Some(Step::prepare(
            Command::new("umount").path(mount),
            "fails while a process uses the file system; stop its applications first",
            Command::new("mount")
                .path(mount)
                .remark("or as it was mounted before"),
        ))
    }

    fn mount(&self) -> Option<&str> {
        self.request.file_system.as_ref()?.mount.as_deref()
    }

    /// The steps that shorten it to the available length; none if it fits. `None` if that is impossible.
    fn made_smaller(&self) -> Option<Vec<Result<Step, NoCommand>>> {
        let mut steps = smaller(self.request, self.layout).ok()?;
        let (Some(now), Some(_)) = (self.request.current, self.request.smaller_by) else {
            return Some(steps);
        };
        let len = self.layout.len_lba(self.request)?;
        steps.push(Step::new(
            self.entry(now.0 / self.request.sector_bytes, len)
                .pipe(self.sfdisk_of_entry(Command::new("sfdisk"))),
            "a file system that is still longer loses its end: only after it was made smaller",
            self.label_back(),
        ));
        Some(steps)
    }

    /// The line of `sfdisk` for an entry of the label.
    fn entry(&self, start: u64, len: u64) -> Command {
        Command::echo(format!("start={start}, size={len}"))
    }

    fn sfdisk_of_entry(&self, sfdisk: Command) -> Command {
        sfdisk
            .flags("-N")
            .arg(self.request.number)
            .path(self.device)
    }

    /// The change that makes room, where the partition fills its space.
    fn shrink(&self) -> Option<Action> {
        self.request.smaller_by?;
        Some(Action::Shrink {
            partition: self.request.existing()?,
            len_bytes: self.layout.len?,
        })
    }

    /// The partition as it is after that.
    fn shrunk(&self, partition: PartitionRef) -> PartitionRef {
        match self.request.smaller_by {
            Some(_) => PartitionRef {
                len_bytes: self.layout.len,
                ..partition
            },
            None => partition,
        }
    }

    /// Only of a partition with a node; an image in a file has none.
    fn plumb_fix_move(&self) -> Option<Remedy> {
        let request = self.request;
        let node = request
            .label
            .node(&request.device, request.number)
            .into_iter()
            .next()?;
        let to = format!("{}s", self.layout.start.0 / SECTOR);
        let shown = || {
            Command::new("plumb fix move")
                .path(&node)
                .flags("--to")
                .arg(&to)
        };
        // The name for --yes is the kernel's name, which a link does not show.
        let name = node
            .strip_prefix("/dev/")
            .filter(|name| !name.contains('/'));
        let done = match name {
            Some(name) => shown().option("--yes", name),
            None => {
                let at = Command::new("readlink -f").path(&node);
                shown()
                    .flags("--yes")
                    .output_of(Command::new("basename").output_of(at))
            }
        };
        let smaller = self.made_smaller()?;
        let save = (!smaller.is_empty()).then(|| self.dump_saved());
        // The steps that shrink a file system unmount it themselves, some of them at their end.
        let is_shrunk = !smaller.is_empty();
        let unmount = self.unmount().filter(|_| !is_shrunk);
        let way = self
            .way(Harm::Move, "with plumb fix move")
            .action(self.shrink())
            .action(request.existing().map(|partition| Action::Move {
                partition: self.shrunk(partition),
                to_bytes: self.layout.start,
            }))
            .steps(unmount)
            .steps(save)
            .steps(smaller)
            .step(Step::look(shown()))
            .step(Step::new(
                done,
                "it cannot be used until it has ended; a kill, a power cut or a failed write loses nothing: plumb fix resume \
                 goes on",
                Command::new("plumb fix rollback")
                    .path(&node)
                    .remark("until it has ended, then a move back to the old start"),
            ))
            .step(Step::look(Command::new("plumb check").path(&node)))
            .constraint("its journal must be on another disk: --journal FILE if /var/lib/plumb is on the same");
        let way = if is_shrunk {
            way.constraint(
                "only the move is crash-safe: back up the file system before you shrink it",
            )
        } else {
            way
        };
        if self.mount() == Some("/") {
            return Some(way.constraint(
                "it holds the root file system: boot from other media, such as a live system, and run the commands there",
            ));
        }
        Some(way)
    }

    /// Needs the length: an entry that becomes smaller by the same command is written, and its data are left behind.
    fn sfdisk_move_data(&self) -> Option<Remedy> {
        let len = self
            .layout
            .len_lba(self.request)
            .filter(|_| self.request.size.is_some())?;
        let shift = Command::new("sfdisk")
            .arg(format!("--move-data={}.log", self.file))
            .flags("--move-use-fsync");
        Some(
            self.way(Harm::Shift, "with sfdisk --move-data")
                .action(self.shrink())
                .action(self.request.existing().map(|partition| Action::Shift {
                    partition: self.shrunk(partition),
                    to_bytes: self.layout.start,
                }))
                .step(self.dump_saved())
                .steps(self.made_smaller()?)
                .step(Step::new(
                    self.entry(self.start(), len)
                        .pipe(self.sfdisk_of_entry(shift)),
                    "not safe against an interruption: it writes the label first and cannot resume; killed, it \
                     leaves a file system that mounts under the old label, passes a check, and has corrupt files",
                    "none once it has begun: only a full copy that was verified before",
                ))
                .step(Step::look(self.dump()))
                .constraint("a full copy on another disk, read back and compared")
                .constraint(format!(
                    "its length is {} blocks by then: if it is longer, sfdisk writes the label and leaves the data behind",
                    group_digits(len)
                ))
                .constraint("never with logical partitions of a DOS label: those behind it are dropped")
                .constraint("the old superblock stays behind in the gap: wipefs the gap afterwards"),
        )
    }
}
