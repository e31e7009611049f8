//! The commands of each tool, with its traps.
//!
//! `sgdisk` rounds a start down to its own alignment first, and knows no alignment offset: `-a 1` and the exact sector.
//! `sfdisk` keeps given sectors, but none below the `first-lba` of the label. `parted` moves misaligned starts: `-a
//! none`. `format` and `fmthard` check nothing.

mod shift;

use plumb_model::Action;
use plumb_quoting::names::SOLARIS_DISK;
use plumb_quoting::shell::file_name;
use plumb_quoting::{Command, NoCommand};

use crate::nodes::System;
use crate::partition::{LabelScheme, PartitionLayout, PartitionRequest};
use crate::plan::{Harm, Remedy, Step};

/// Every way to make the partition there.
#[must_use]
pub fn remedies(request: &PartitionRequest, layout: &PartitionLayout) -> Vec<Remedy> {
    let work = PartitionWork {
        request,
        layout,
        device: &request.device,
        file: file_name(&request.device),
    };
    let mut remedies = match request.label {
        LabelScheme::Gpt => vec![work.sgdisk(), work.sfdisk(), work.parted()],
        LabelScheme::Dos => vec![work.sfdisk(), work.parted()],
        LabelScheme::SolarisEfi | LabelScheme::Smi { .. } | LabelScheme::SmiX86 { .. } => {
            let mut ways = vec![work.format()];
            ways.extend(work.fmthard());
            ways
        }
    };
    if request.label.system() == System::Linux && request.current.is_some() {
        remedies.extend(work.shifts());
    }
    remedies
}

/// Why a start is given in this way, where the tool alone would choose another.
const SGDISK_TRAP: &str = "-a 1 and the exact sector: sgdisk rounds a start down to its own alignment, and knows no \
                           alignment offset";
const LOST: &str =
    "the data of the partition are not moved along: they must be empty, or come back from a copy";
const SMALLER: &str =
    "it becomes smaller: a copy of the whole partition does not fit back, a copy of its files does";

/// The steps before a partition can shrink; empty if it keeps its length.
///
/// # Errors
/// Why it cannot be done, in words.
pub(super) fn smaller(
    request: &PartitionRequest,
    layout: &PartitionLayout,
) -> Result<Vec<Result<Step, NoCommand>>, String> {
    let (Some(_), Some(len)) = (request.smaller_by, layout.len) else {
        return Ok(Vec::new());
    };
    let node = request
        .label
        .node(&request.device, request.number)
        .into_iter()
        .next();
    super::smaller::steps(request, node.as_deref(), len)
}

const LABEL_GONE: &str = "the present label is lost, and with it the partitions";
const WRONG_DISK: &str = "a wrong disk: look at its size and serial number first";

struct PartitionWork<'a> {
    request: &'a PartitionRequest,
    layout: &'a PartitionLayout,
    device: &'a str,
    /// The name of files about it.
    file: String,
}

impl PartitionWork<'_> {
    fn remedy(&self, tool: &str) -> Remedy {
        let start = crate::error::position(self.layout.start);
        let remedy = Remedy::new(
            Harm::Recreate,
            format!("with {tool}"),
            format!("starts at {start}"),
        );
        let remade = self.request.existing().map(|partition| Action::Relabel {
            len_bytes: self
                .layout
                .len
                .filter(|len| Some(*len) != partition.len_bytes),
            to_bytes: self.layout.start,
            partition,
        });
        let remedy = remedy.action(remade);
        match self.request.current {
            Some(_) if self.request.smaller_by.is_some() => {
                remedy.constraint(LOST).constraint(SMALLER)
            }
            Some(_) => remedy.constraint(LOST),
            None => remedy,
        }
    }

    /// Limits of tools that number partitions by themselves.
    fn numbered(&self, remedy: Remedy) -> Remedy {
        if self.request.current.is_none()
            && (!self.request.is_new_label || self.request.number != 1)
        {
            return remedy.constraint("takes the first free number, not the requested one");
        }
        remedy
    }

    fn start(&self) -> u64 {
        self.layout.start_lba(self.request)
    }

    fn dump(&self) -> Command {
        Command::new("sfdisk -d").path(self.device)
    }

    fn dump_file(&self) -> String {
        format!("{}.sfdisk", self.file)
    }

    fn dump_saved(&self) -> Result<Step, NoCommand> {
        Step::save(self.dump().to_file(self.dump_file()))
    }

    /// Saves the label that a new one replaces. `sfdisk` reads and writes both kinds; `sgdisk --backup` of a DOS label
    /// would come back as a GPT.
    fn save_label(&self) -> Result<Step, NoCommand> {
        let none = Command::echo("no label there: nothing to go back to");
        Step::save(self.dump().to_file(self.dump_file()).or(none))
    }

    fn label_back(&self) -> Command {
        Command::new("sfdisk")
            .path(self.device)
            .from_file(self.dump_file())
    }

    fn sgdisk(&self) -> Remedy {
        let number = self.request.number;
        let backup = format!("{}.gpt", self.file);
        let look = || Command::new("sgdisk -i").arg(number).path(self.device);
        // 0 stands for the last block that is free.
        let last = self.layout.last_lba(self.request).unwrap_or(0);
        let place = |sgdisk: Command| {
            sgdisk
                .flags("-a 1 -n")
                .arg(format!("{number}:{}:{last}", self.start()))
        };
        let mut remedy = self.remedy("sgdisk").constraint(SGDISK_TRAP);
        let back = if self.request.is_new_label {
            // Without -g a disk with a DOS label is refused.
            remedy = remedy.step(self.save_label()).step(Step::new(
                Command::new("sgdisk -g -o").path(self.device),
                LABEL_GONE,
                self.label_back(),
            ));
            self.label_back()
        } else {
            remedy = remedy.step(Step::save(
                Command::new("sgdisk")
                    .arg(format!("--backup={backup}"))
                    .path(self.device),
            ));
            Command::new("sgdisk")
                .arg(format!("--load-backup={backup}"))
                .path(self.device)
        };
        let sgdisk = if self.request.current.is_some() {
            remedy = remedy.step(Step::look(kept_by_sgdisk(look())));
            place(Command::new("sgdisk -d").arg(number))
                .flags("-t")
                .variable(format!("{number}:"), "type")
                .flags("-u")
                .variable(format!("{number}:"), "uuid")
                .flags("-c")
                .variable(format!("{number}:"), "name")
        } else {
            place(Command::new("sgdisk"))
        };
        remedy
            .step(Step::new(sgdisk.path(self.device), WRONG_DISK, back))
            .step(Step::look(look()))
    }

    fn sfdisk(&self) -> Remedy {
        let size = self
            .layout
            .len_lba(self.request)
            .map_or(String::new(), |len| format!(", size={len}"));
        let place = format!("start={}{size}", self.start());
        let remedy = self.remedy("sfdisk");
        let remedy = if self.request.is_new_label {
            let mut lines = Command::new(r"printf '%s\n'").arg(format!(
                "label: {}",
                if self.request.label == LabelScheme::Dos {
                    "dos"
                } else {
                    "gpt"
                }
            ));
            if self.request.label != LabelScheme::Dos {
                let first = self.start().min(first_lba(self.request));
                lines = lines.arg(format!("first-lba: {first}"));
            }
            remedy.step(self.save_label()).step(Step::new(
                lines
                    .arg(place)
                    .pipe(Command::new("sfdisk").path(self.device)),
                LABEL_GONE,
                self.label_back(),
            ))
        } else {
            let (change, constraint) = match self.request.current {
                Some(_) => (
                    Command::new("sfdisk -N").arg(self.request.number),
                    Some("-N keeps type, name and UUID"),
                ),
                None => (Command::new("sfdisk --append"), None),
            };
            let remedy = remedy.step(self.dump_saved()).step(Step::new(
                Command::echo(place).pipe(change.path(self.device)),
                WRONG_DISK,
                self.label_back(),
            ));
            constraint
                .into_iter()
                .fold(remedy, |remedy, words| remedy.constraint(words))
        };
        let remedy = self.numbered(remedy).step(Step::look(self.dump()));
        if self.request.label == LabelScheme::Gpt && !self.request.is_new_label {
            return remedy.constraint(
                "the start is not below the first-lba that sfdisk -d prints: labels made by sfdisk have 2048",
            );
        }
        remedy
    }

    fn parted(&self) -> Remedy {
        let last = self
            .layout
            .last_lba(self.request)
            .map_or("100%".to_owned(), |last| format!("{last}s"));
        let is_dos = self.request.label == LabelScheme::Dos;
        let parted = || Command::new("parted -s").path(self.device);
        let mut remedy = self.remedy("parted").constraint(
            "-a none: with its own idea of alignment parted moves the start, or refuses it",
        );
        if self.request.is_new_label {
            remedy = remedy.step(self.save_label()).step(Step::new(
                parted().flags(if is_dos {
                    "mklabel msdos"
                } else {
                    "mklabel gpt"
                }),
                LABEL_GONE,
                self.label_back(),
            ));
        } else {
            remedy = remedy.step(self.dump_saved());
        }
        if self.request.current.is_some() {
            remedy = remedy
                .step(Step::new(
                    parted().flags("rm").arg(self.request.number),
                    LOST,
                    self.label_back(),
                ))
                .constraint("type, name and UUID of the partition are new ones");
        }
        self.numbered(remedy)
            .step(Step::new(
                Command::new("parted -s -a none")
                    .path(self.device)
                    .flags("unit s mkpart")
                    .flags(if is_dos { "primary" } else { "data" })
                    .arg(format!("{}s", self.start()))
                    .arg(last),
                WRONG_DISK,
                self.label_back(),
            ))
            .step(Step::look(parted().flags("unit s print")))
    }

    /// The answers to the menus of `format` come through a pipe: lines below the command would be commands of their own
    /// wherever it is not there or ends early.
    fn format(&self) -> Remedy {
        let (label, start, size) = match self.request.label.cylinder_of(self.layout.start) {
            None => {
                let size = self.layout.len_lba(self.request);
                ("1", self.start(), size.map(|len| format!("{len}b")))
            }
            Some((cylinder, bytes)) => {
                let size = self.layout.len.map(|len| format!("{}c", len.0 / bytes.0));
                ("0", cylinder, size)
            }
        };
        let answers = Command::new(r"printf '%s\n' partition")
            .arg(self.request.number)
            .flags("usr wm")
            .arg(start)
            .arg(size.as_deref().unwrap_or("$"))
            .flags("label")
            .arg(label)
            .flags("y quit quit");
        let format = Command::new("format -e -d").name(SOLARIS_DISK, self.disk());
        let remedy = self
            .remedy("format -e")
            .step(self.vtoc_saved())
            .step(Step::new(
                answers.pipe(format),
                "a wrong disk: format names its model when it starts",
                self.vtoc_back(),
            ))
            .step(Step::look(self.prtvtoc()))
            .constraint(
                "the words before format -e answer its menus and questions, one after the other",
            )
            .constraint(
                "tag usr and flag wm stand for those that the slice has: prtvtoc prints them",
            );
        match self.request.label {
            LabelScheme::SolarisEfi => remedy.constraint(
                "slice 8 (reserved, 8 MiB at the end) stays as it is; change from SMI to EFI loses all",
            ),
            _ => remedy
                .constraint("slices of an SMI label start at cylinders; slice 2 is the whole disk and stays"),
        }
    }

    /// One line of a VTOC; the others are kept as they are.
    fn fmthard(&self) -> Option<Remedy> {
        let len = self.layout.len_lba(self.request)?;
        let number = self.request.number;
        // Sectors of a VTOC on x86 count from the start of the fdisk partition.
        let origin = match self.request.label {
            LabelScheme::SmiX86 { fdisk_start, .. } => fdisk_start.0 / self.request.sector_bytes,
            _ => 0,
        };
        let start = self.start() - origin;
        let others = Command::new("awk")
            .arg(format!(
                r"$1 !~ /^\*/ && $1 != {number} {{ print $1, $2, $3, $4, $5 }}"
            ))
            .path(self.vtoc_file());
        let new = format!("{}.new", self.file);
        let lines = others
            .group(Command::echo(format!("{number} 4 00 {start} {len}")))
            .to_file(&new);
        Some(
            self.remedy("fmthard")
                .step(self.vtoc_saved())
                .step(Step::new(
                    lines.and(self.on_raw(Command::new("fmthard -s").path(&new))),
                    "all slices are written: look at the new file first",
                    self.vtoc_back(),
                ))
                .step(Step::look(self.prtvtoc()))
                .constraint(
                    "4 00 in the new line is tag usr and flag wm: use the values that prtvtoc printed for the slice",
                ),
        )
    }

    fn vtoc_file(&self) -> String {
        format!("{}.vtoc", self.file)
    }

    fn vtoc_saved(&self) -> Result<Step, NoCommand> {
        Step::save(self.prtvtoc().to_file(self.vtoc_file()))
    }

    fn vtoc_back(&self) -> Command {
        self.on_raw(Command::new("fmthard -s").path(self.vtoc_file()))
    }

    fn prtvtoc(&self) -> Command {
        self.on_raw(Command::new("prtvtoc"))
    }

    /// The disk as Solaris names it: `c1t0d0`.
    fn disk(&self) -> &str {
        self.device.rsplit('/').next().unwrap_or(self.device)
    }

    /// With the node through which the label of the disk is read and written.
    fn on_raw(&self, command: Command) -> Command {
        let whole = if self.request.label == LabelScheme::SolarisEfi {
            "s0"
        } else {
            "s2"
        };
        command.named(SOLARIS_DISK, "/dev/rdsk/", self.disk(), whole)
    }
}

/// Keeps type, UUID and name of a partition in variables, which the next command gives it again.
fn kept_by_sgdisk(look: Command) -> Command {
    Command::set("info", look).then(Command::new(
        r#"type=$(printf '%s\n' "$info" | sed -n 's/^Partition GUID code: \([^ ]*\).*/\1/p'); uuid=$(printf '%s\n' "$info" | sed -n 's/^Partition unique GUID: //p'); name=$(printf '%s\n' "$info" | sed -n "s/^Partition name: '\(.*\)'/\1/p")"#,
    ))
}

/// First block behind the entries of a GPT.
fn first_lba(request: &PartitionRequest) -> u64 {
    2 + 16_384_u64.div_ceil(request.sector_bytes)
}
