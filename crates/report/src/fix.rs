//! The effect of a label fix, done or planned, as text and JSON.

use plumb_geometry::plural;
use plumb_model::result::fix::{
    DiskPlace, Fixed, LabelView, LossOwner, Moved, MovedLoss, MovedPlace, OwnerObstacle,
    OwnerSearch,
};
use plumb_quoting::visible;

use crate::format::{bytes, count};
use crate::json::Document;
use crate::run::Run;
use crate::text::{Page, Paper};

/// A move as text, or as JSON without paper.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn print_moved(
    run: &Run,
    moved: &Moved,
    paper: Option<Paper>,
) -> Result<String, serde_json::Error> {
    if let Some(paper) = paper {
        return Ok(moved_text(moved, paper));
    }
    let document = Document {
        schema: "plumb.fix/2",
        run,
        inputs: Vec::<()>::new(),
        verdict: None,
        findings: Vec::new(),
        result: moved,
    };
    Ok(plumb_quoting::json::pretty(&document)? + "\n")
}

fn moved_text(moved: &Moved, paper: Paper) -> String {
    let mut page = Page::new(paper);
    let (from, to) = (sectors(moved.from_bytes), sectors(moved.to_bytes));
    if moved.state == "in place" {
        page.line(format!(
            "{}: begins at sector {from} already: nothing to do",
            moved.partition
        ));
        moved
            .notes
            .iter()
            .for_each(|note| page.wrapped("  note: ", "    ", note));
        return page.text;
    }
    page.line(format!(
        "{}: {} from sector {from} to sector {to}",
        moved.partition,
        bytes(moved.len_bytes)
    ));
    if let Some(holds) = moved.holds.as_ref().filter(|holds| !holds.is_empty()) {
        page.wrapped("  holds ", "    ", holds.join(", "));
    }
    page.line(format!(
        "  copied in {} of at most {}",
        moved.copying,
        bytes(moved.window_bytes)
    ));
    let len = moved
        .journal_bytes
        .map_or(String::new(), |len| format!(", {}", bytes(len)));
    if moved.state == "shown" || moved.state == "incomplete" {
        page.line(format!("  journal {}{len}", moved.journal));
    }
    places(&mut page, &moved.places);
    for note in &moved.notes {
        page.wrapped("  note: ", "    ", note);
    }
    page.gap();
    lost(&mut page, moved);
    for obstacle in &moved.obstacles {
        page.wrapped("in the way: ", "    ", obstacle);
    }
    if let Some(doubt) = &moved.doubt {
        page.wrapped("", "  ", doubt);
    }
    match (moved.state, moved.seconds) {
        ("complete", Some(seconds)) => {
            let verifying = moved.verifying_seconds.unwrap_or_default();
            page.line(format!(
                "moved in {:.1} s, and verified in {verifying:.1} s",
                seconds - verifying
            ));
        }
        ("rolled back", Some(seconds)) => {
            page.line(format!("it is where it was, after {seconds:.1} s"))
        }
        ("complete", None) => page.line("the move is complete"),
        ("rolled back", None) => page.line("the move was rolled back"),
        ("shown", _) => {
            page.line("the partition must not be in use until the move has ended");
            page.line(match moved.obstacles.is_empty() {
                true => not_written(moved.command.is_some()),
                false => "nothing was written; remove the obstacles above, then run this:",
            });
        }
        _ => {
            let stage = moved.stage.unwrap_or("not begun");
            let (done, total) = (bytes(moved.bytes_done), bytes(moved.bytes_total));
            page.line(format!(
                "incomplete: {stage}, {done} of {total} at their place"
            ));
            page.line(match moved.command {
                Some(_) => "until it has ended the partition must not be used; this goes on:",
                None => "until it has ended the partition must not be used",
            });
        }
    }
    if let Some(command) = &moved.command {
        page.command("  ", command);
    }
    if let Some(undo) = &moved.undo {
        page.line("and this goes back:");
        page.command("  ", undo);
    }
    page.text
}

/// Introduces the command that acts, where there is one: a name that no command can hold has none.
const fn not_written(has_command: bool) -> &'static str {
    match has_command {
        true => "nothing was written; this does it:",
        false => "nothing was written",
    }
}

/// Every range of bytes that is lost, a line each; the rest as a number where there are many.
fn lost(page: &mut Page, moved: &Moved) {
    const SHOWN_MAX: usize = 16;
    if moved.lost.is_empty() {
        return;
    }
    let total: u64 = moved.lost.iter().map(|lost| lost.len_bytes).sum();
    page.line(format!(
        "lost: {} of the partition (bytes from its start)",
        bytes(total)
    ));
    for lost in moved.lost.iter().take(SHOWN_MAX) {
        let last = lost.start_bytes + lost.len_bytes - 1;
        let state = match lost.why {
            "unreadable" => "unreadable, now zeros",
            _ => "does not match its sum, kept as found",
        };
        page.line(format!(
            "  {} to {}: {state}",
            count(lost.start_bytes),
            count(last)
        ));
        owners(page, lost);
    }
    let more = moved.lost.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        page.line(format!("  and {more} more ranges"));
    }
    if let Some(file) = &moved.lost_file {
        page.line(format!("  all of them are in {file}"));
    }
    if let Some(search) = &moved.owner_search {
        owner_search(page, search);
    }
}

/// The files of one range, and the other objects there.
fn owners(page: &mut Page, lost: &MovedLoss) {
    const SHOWN_MAX: usize = 8;
    let Some(owners) = &lost.owners else { return };
    for owner in owners.iter().take(SHOWN_MAX) {
        let words = owner_words(owner);
        page.line(format!("    {}", visible(&words)));
    }
    let more = owners.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        page.line(format!("    and {more} more"));
    }
}

/// The owner of lost bytes in words, also in the file that lists them.
#[must_use]
pub fn owner_words(owner: &LossOwner) -> String {
    match owner {
        LossOwner::File(name) => format!("file {name}"),
        LossOwner::Inode(number) => format!("inode {number}, which has no name"),
        LossOwner::Metadata(name) => format!("file system structure: {name}"),
        LossOwner::Free => "free space: no file".to_owned(),
    }
}

fn owner_search(page: &mut Page, search: &OwnerSearch) {
    if let Some(obstacle) = &search.obstacle {
        page.wrapped("  ", "  ", visible(&obstacle_words(obstacle)));
        if let Some(command) = &search.command {
            page.line(
                "  this command looks up the first range, while the partition is not mounted:",
            );
            page.command("    ", command);
        }
    }
}

/// Why owners of lost bytes are missing, in words.
#[must_use]
pub fn obstacle_words(obstacle: &OwnerObstacle) -> String {
    match obstacle {
        OwnerObstacle::UnknownContents => {
            "the files with these bytes are not known: the partition starts with no ext, XFS or NTFS file system".to_owned()
        }
        OwnerObstacle::NoPartition => {
            "the files with these bytes are not known: the kernel does not have the partition at its place yet".to_owned()
        }
        OwnerObstacle::NoTool { tool } => {
            format!("the files with these bytes are not known: {tool} is not installed")
        }
        OwnerObstacle::TooSlow { tool, seconds } => format!(
            "not all files with these bytes are known: {tool} took longer than {seconds} s"
        ),
        OwnerObstacle::TooMany { blocks } => format!(
            "not all files with these bytes are known: Plumb looked up only the first {}",
            plural(*blocks, "block")
        ),
        OwnerObstacle::Failed { tool, said } => {
            format!("not all files with these bytes are known: {tool} failed: {said}")
        }
    }
}

/// Every place that is written, by its bytes on the disk.
fn places(page: &mut Page, places: &[MovedPlace]) {
    if places.is_empty() {
        return;
    }
    page.line(format!(
        "  {:<12}{:>20}  {:>20}",
        "writes", "from byte", "to byte"
    ));
    for place in places {
        let end = place.at_bytes.saturating_add(place.len_bytes);
        page.line(format!(
            "    {:<10}{:>20}  {:>20}",
            place.what,
            count(place.at_bytes),
            count(end)
        ));
    }
}

/// The document of `plumb fix`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(run: &Run, fixed: &Fixed<'_>) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.fix/2",
        run,
        inputs: Vec::<()>::new(),
        verdict: None,
        findings: Vec::new(),
        result: fixed,
    })
}

/// The same for a person.
#[must_use]
pub fn text(fixed: &Fixed<'_>, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    page.line(format!(
        "{}: {}, blocks of {} on {}",
        fixed.device,
        bytes(fixed.size_bytes),
        bytes(fixed.logical_block_bytes.into()),
        bytes(fixed.physical_block_bytes.into())
    ));
    if fixed.alignment_offset_bytes > 0 {
        let offset = bytes(fixed.alignment_offset_bytes.unsigned_abs().into());
        page.line(format!("its first aligned byte is {offset} from its start"));
    }
    for about in fixed.about {
        page.wrapped("  ", "  ", about);
    }
    let (before, then) = match fixed.is_done && !fixed.writes.is_empty() {
        true => ("label before", "label now"),
        false => ("label now", "label then"),
    };
    label(&mut page, before, fixed.before.as_ref());
    if !fixed.writes.is_empty() {
        label(&mut page, then, fixed.after.as_ref());
        page.gap();
        writes(&mut page, fixed);
    }
    for note in fixed.notes {
        page.wrapped("  note: ", "    ", note);
    }
    if let Some(command) = fixed.command {
        page.gap();
        page.line("nothing was written; this does it:");
        page.command("  ", command);
    }
    if let Some(undo) = fixed.undo {
        page.gap();
        page.line("the way back:");
        page.command("  ", undo);
    }
    page.text
}

/// The writes with their places, and the place of the old bytes.
fn writes(page: &mut Page, fixed: &Fixed<'_>) {
    let len: u64 = fixed.writes.iter().map(|place| place.len_bytes).sum();
    let places = format!(
        "{} in {}",
        bytes(len),
        plural(fixed.writes.len() as u64, "place")
    );
    page.line(if fixed.is_done {
        format!("written: {places}")
    } else {
        format!("to be written: {places}")
    });
    for DiskPlace {
        at_bytes,
        len_bytes,
    } in fixed.writes
    {
        page.line(format!(
            "  {:>20}  {:>12}",
            count(*at_bytes),
            count(*len_bytes)
        ));
    }
    if let Some(saved) = fixed.saved {
        let words = if fixed.is_done {
            "the old bytes are in"
        } else {
            "the old bytes go to"
        };
        page.wrapped("", "  ", format!("{words} {saved}"));
    }
}

fn label(page: &mut Page, words: &str, label: Option<&LabelView>) {
    page.gap();
    let Some(label) = label else {
        return page.line(format!("{words}: none"));
    };
    page.line(format!("{words}: {}", label.kind));
    for problem in &label.problems {
        page.wrapped("  problem: ", "    ", problem);
    }
    if label.partitions.is_empty() {
        return page.line("  no partitions");
    }
    page.line(format!(
        "  {:<24} {:>16} {:>16}",
        "", "first sector", "sectors"
    ));
    for part in &label.partitions {
        let (start, len) = (sectors(part.start_bytes), sectors(part.len_bytes));
        page.line(format!(
            "  {:<24} {start:>16} {len:>16}",
            visible(&part.name)
        ));
        let past = match part.past_grid_bytes {
            Some(0) => "on the grid".to_owned(),
            Some(past) => format!("{} past the grid", bytes(past)),
            None => String::new(),
        };
        let words: Vec<String> = part.kind.iter().cloned().chain([past]).collect();
        let words: Vec<String> = words
            .into_iter()
            .filter(|words| !words.is_empty())
            .collect();
        if !words.is_empty() {
            page.line(format!("    {}", words.join(", ")));
        }
    }
}

/// Sectors of 512 bytes, which every position of a label is a multiple of.
fn sectors(at: u64) -> String {
    count(at / plumb_geometry::SECTOR)
}
