//! The commands of each tool, with its traps.
//!
//! `sgdisk` rounds a start down to its own alignment first, and knows no alignment offset: `-a 1` and the exact sector.
//! `sfdisk` keeps sectors that it is given, but none below the `first-lba` of the label. `parted` moves what it does
//! not like: `-a none`. `format` and `fmthard` check nothing.

mod shift;

use crate::nodes::System;
use crate::partition::{LabelScheme, PartitionLayout, PartitionRequest};
use crate::plan::{Harm, Remedy, Step};
use crate::shell::{file_name, word};

/// Every way to make the partition there.
#[must_use]
pub fn remedies(request: &PartitionRequest, layout: &PartitionLayout) -> Vec<Remedy> {
    let work = PartitionWork {
        request,
        layout,
        device: word(&request.device).into_owned(),
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

/// What has to be done before a partition can become smaller; nothing where it keeps its length.
///
/// # Errors
/// Why it cannot be done, in words.
pub(super) fn smaller(
    request: &PartitionRequest,
    layout: &PartitionLayout,
) -> Result<Vec<Step>, String> {
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

const LABEL_GONE: &str = "the label that is there is gone, and what it pointed at";

struct PartitionWork<'a> {
    request: &'a PartitionRequest,
    layout: &'a PartitionLayout,
    device: String,
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
        match self.request.current {
            Some(_) if self.request.smaller_by.is_some() => {
                remedy.constraint(LOST).constraint(SMALLER)
            }
            Some(_) => remedy.constraint(LOST),
            None => remedy,
        }
    }

    /// What tools that number partitions by themselves cannot do.
    fn numbered(&self, remedy: Remedy) -> Remedy {
        if self.request.current.is_none()
            && (!self.request.is_new_label || self.request.number != 1)
        {
            return remedy.constraint("takes the first free number, whatever was asked for");
        }
        remedy
    }

    fn start(&self) -> u64 {
        self.layout.start_lba(self.request)
    }

    /// Keeps what a new label takes the place of. `sfdisk` reads and writes both kinds; `sgdisk --backup` of a DOS label
    /// would come back as a GPT.
    fn save_label(&self) -> Step {
        let none = "echo 'no label there: nothing to go back to'";
        Step::save(format!(
            "sfdisk -d {} > {}.sfdisk || {none}",
            self.device, self.file
        ))
    }

    fn label_back(&self) -> String {
        format!("sfdisk {} < {}.sfdisk", self.device, self.file)
    }

    fn sgdisk(&self) -> Remedy {
        let (device, file, number) = (&self.device, &self.file, self.request.number);
        let back = if self.request.is_new_label {
            self.label_back()
        } else {
            format!("sgdisk --load-backup={file}.gpt {device}")
        };
        // 0 stands for the last block that is free.
        let last = self.layout.last_lba(self.request).unwrap_or(0);
        let place = format!("-a 1 -n {number}:{}:{last}", self.start());
        let mut remedy = self.remedy("sgdisk").constraint(SGDISK_TRAP);
        if self.request.is_new_label {
            // Without -g a disk with a DOS label is refused.
            remedy = remedy.step(self.save_label()).step(Step::new(
                format!("sgdisk -g -o {device}"),
                LABEL_GONE,
                self.label_back(),
            ));
        } else {
            remedy = remedy.step(Step::save(format!("sgdisk --backup={file}.gpt {device}")));
        }
        let step = if self.request.current.is_some() {
            remedy = remedy.step(Step::look(format!(
                "info=$(sgdisk -i {number} {device})\n\
                 type=$(echo \"$info\" | sed -n 's/^Partition GUID code: \\([^ ]*\\).*/\\1/p')\n\
                 uuid=$(echo \"$info\" | sed -n 's/^Partition unique GUID: //p')\n\
                 name=$(echo \"$info\" | sed -n \"s/^Partition name: '\\(.*\\)'/\\1/p\")"
            )));
            format!(
                "sgdisk -d {number} {place} -t {number}:\"$type\" -u {number}:\"$uuid\" -c {number}:\"$name\" {device}"
            )
        } else {
            format!("sgdisk {place} {device}")
        };
        remedy
            .step(Step::new(
                step,
                "a wrong disk: look at its size and serial number first",
                back,
            ))
            .step(Step::look(format!("sgdisk -i {number} {device}")))
    }

    fn sfdisk(&self) -> Remedy {
        let (device, file, number) = (&self.device, &self.file, self.request.number);
        let size = self
            .layout
            .len_lba(self.request)
            .map_or(String::new(), |len| format!(", size={len}"));
        let place = format!("start={}{size}", self.start());
        let dump = Step::save(format!("sfdisk -d {device} > {file}.sfdisk"));
        let back = self.label_back();
        let risk = "a wrong disk: look at its size and serial number first";
        let remedy = self.remedy("sfdisk");
        let remedy = if self.request.is_new_label {
            let (name, first) = match self.request.label {
                LabelScheme::Dos => ("dos", String::new()),
                _ => (
                    "gpt",
                    format!(
                        "first-lba: {}\\n",
                        self.start().min(first_lba(self.request))
                    ),
                ),
            };
            remedy.step(self.save_label()).step(Step::new(
                format!("printf 'label: {name}\\n{first}{place}\\n' | sfdisk {device}"),
                LABEL_GONE,
                self.label_back(),
            ))
        } else if self.request.current.is_some() {
            remedy
                .step(dump)
                .step(Step::new(
                    format!("echo '{place}' | sfdisk -N {number} {device}"),
                    risk,
                    back,
                ))
                .constraint("-N keeps type, name and UUID")
        } else {
            remedy.step(dump).step(Step::new(
                format!("echo '{place}' | sfdisk --append {device}"),
                risk,
                back,
            ))
        };
        let remedy = self
            .numbered(remedy)
            .step(Step::look(format!("sfdisk -d {device}")));
        if self.request.label == LabelScheme::Gpt && !self.request.is_new_label {
            return remedy.constraint(
                "the start is not below the first-lba that sfdisk -d prints: labels made by sfdisk have 2048",
            );
        }
        remedy
    }

    fn parted(&self) -> Remedy {
        let (device, file, number) = (&self.device, &self.file, self.request.number);
        let last = self
            .layout
            .last_lba(self.request)
            .map_or("100%".to_owned(), |last| format!("{last}s"));
        let kind = if self.request.label == LabelScheme::Dos {
            "primary"
        } else {
            "data"
        };
        let risk = "a wrong disk: look at its size and serial number first";
        let mut remedy = self.remedy("parted").constraint(
            "-a none: with its own idea of alignment parted moves the start, or refuses it",
        );
        let name = if self.request.label == LabelScheme::Dos {
            "msdos"
        } else {
            "gpt"
        };
        if self.request.is_new_label {
            remedy = remedy.step(self.save_label()).step(Step::new(
                format!("parted -s {device} mklabel {name}"),
                LABEL_GONE,
                self.label_back(),
            ));
        } else {
            remedy = remedy.step(Step::save(format!("sfdisk -d {device} > {file}.sfdisk")));
        }
        let back = self.label_back();
        if self.request.current.is_some() {
            remedy = remedy.step(Step::new(
                format!("parted -s {device} rm {number}"),
                LOST,
                back.clone(),
            ));
            remedy = remedy.constraint("type, name and UUID of the partition are new ones");
        }
        self.numbered(remedy)
            .step(Step::new(
                format!(
                    "parted -s -a none {device} unit s mkpart {kind} {}s {last}",
                    self.start()
                ),
                risk,
                back,
            ))
            .step(Step::look(format!("parted -s {device} unit s print")))
    }

    fn format(&self) -> Remedy {
        let disk = self.disk();
        let number = self.request.number;
        let remedy = self.remedy("format -e");
        let save = Step::save(format!("prtvtoc {} > {}.vtoc", self.raw(), self.file));
        let back = format!("fmthard -s {}.vtoc {}", self.file, self.raw());
        let (label, place) = match self.request.label.cylinder_of(self.layout.start) {
            None => {
                let size = self
                    .layout
                    .len_lba(self.request)
                    .map_or("$".to_owned(), |len| format!("{len}b"));
                ("1", format!("{}\n{size}", self.start()))
            }
            Some((cylinder, bytes)) => {
                let size = self
                    .layout
                    .len
                    .map_or("$".to_owned(), |len| format!("{}c", len.0 / bytes.0));
                ("0", format!("{cylinder}\n{size}"))
            }
        };
        let command = format!(
            "format -e -d {disk}\npartition\n{number}\nusr\nwm\n{place}\nlabel\n{label}\ny\nquit\nquit"
        );
        let remedy = remedy
            .step(save)
            .step(Step::new(
                command,
                "a wrong disk: format names its model when it starts",
                back,
            ))
            .step(Step::look(format!("prtvtoc {}", self.raw())))
            .constraint(
                "the lines below format -e answer its menus and questions, one after the other",
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
        let (raw, file, number) = (self.raw(), &self.file, self.request.number);
        // Sectors of a VTOC on x86 count from the start of the fdisk partition.
        let origin = match self.request.label {
            LabelScheme::SmiX86 { fdisk_start, .. } => fdisk_start.0 / self.request.sector_bytes,
            _ => 0,
        };
        let start = self.start() - origin;
        let line = format!("{number} 4 00 {start} {len}");
        let command = format!(
            "{{ awk '$1 !~ /^\\*/ && $1 != {number} {{ print $1, $2, $3, $4, $5 }}' {file}.vtoc; echo '{line}'; }} \
             > {file}.new\nfmthard -s {file}.new {raw}"
        );
        Some(
            self.remedy("fmthard")
                .step(Step::save(format!("prtvtoc {raw} > {file}.vtoc")))
                .step(Step::new(
                    command,
                    "all slices are written: look at the new file first",
                    format!("fmthard -s {file}.vtoc {raw}"),
                ))
                .step(Step::look(format!("prtvtoc {raw}")))
                .constraint(
                    "4 00 in the new line is tag usr and flag wm: put what prtvtoc printed for the slice",
                ),
        )
    }

    /// The disk as Solaris names it: `c1t0d0`.
    fn disk(&self) -> &str {
        let name = self.device.trim_matches('\'');
        name.rsplit('/').next().unwrap_or(name)
    }

    /// The node through which its label is read and written.
    fn raw(&self) -> String {
        let whole = if self.request.label == LabelScheme::SolarisEfi {
            "s0"
        } else {
            "s2"
        };
        format!("/dev/rdsk/{}{whole}", self.disk())
    }
}

/// First block behind the entries of a GPT.
fn first_lba(request: &PartitionRequest) -> u64 {
    2 + 16_384_u64.div_ceil(request.sector_bytes)
}
