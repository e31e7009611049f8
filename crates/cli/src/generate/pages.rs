//! Manual pages: the parts that `clap_mangen` makes of the flags, and the sections that every page of section 1 has: exit status, examples,
//! files, see also.

use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::FilesToWrite;
use crate::cli::manual::{self, FILES, manual};

/// Adds `man/*.1`.
pub fn add(files: &mut FilesToWrite) {
    let mut command = manual::command().disable_help_subcommand(true);
    command.build();
    let names = shown(&command);
    let mut all = vec!["plumb".to_owned()];
    all.extend(names.iter().map(|name| format!("plumb-{name}")));
    add_pages(&command, &[], &all, files);
}

/// Names of the subcommands of a command, without hidden ones.
fn shown(command: &Command) -> Vec<String> {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown.map(|sub| sub.get_name().to_owned()).collect()
}

/// The page of a command, and those of its subcommands. `siblings` are pages beside it.
fn add_pages(command: &Command, path: &[&str], siblings: &[String], files: &mut FilesToWrite) {
    let name = std::iter::once("plumb")
        .chain(path.iter().copied())
        .collect::<Vec<_>>()
        .join("-");
    let below: Vec<String> = shown(command)
        .iter()
        .map(|sub| format!("{name}-{sub}"))
        .collect();
    let mut beside: Vec<String> = below.clone();
    let others = siblings.iter().filter(|other| **other != name);
    beside.extend(others.filter(|other| !below.contains(other)).cloned());
    let file = Path::new("man").join(format!("{name}.1"));
    files.insert(file, page(command, path, &beside));
    let mut siblings = vec![name.clone()];
    siblings.extend(below);
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let mut path = path.to_vec();
        path.push(sub.get_name());
        add_pages(sub, &path, &siblings, files);
    }
}

fn page(command: &Command, path: &[&str], beside: &[String]) -> String {
    // The sections of this page replace the text behind the flags.
    let behind = behind(command, path);
    let bare = command.clone().after_help("").after_long_help("");
    let man = Man::new(bare);
    let mut text = Vec::new();
    let render = || -> std::io::Result<()> {
        man.render_title(&mut text)?;
        man.render_name_section(&mut text)?;
        man.render_synopsis_section(&mut text)?;
        man.render_description_section(&mut text)?;
        man.render_options_section(&mut text)?;
        if !shown(command).is_empty() {
            man.render_subcommands_section(&mut text)?;
        }
        Ok(())
    };
    let mut render = render;
    render().expect("memory takes everything");
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let mut roff = Roff::new();
    notes(&mut roff, &behind);
    exit_status(&mut roff, &behind);
    examples(&mut roff, path);
    files(&mut roff, path);
    see_also(&mut roff, beside);
    text += &roff.to_roff();
    text
}

/// The text behind the flags without the examples, a paragraph a line.
fn behind(command: &Command, path: &[&str]) -> Vec<String> {
    let text = command.get_after_long_help().map(ToString::to_string);
    let text = text.unwrap_or_default();
    let number = manual(path).map_or(0, |manual| manual.examples.len());
    // A heading, and two lines for each example.
    let lines = text.lines().skip(1 + 2 * number);
    lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

const EXIT: &str = "Exit status: ";

fn notes(roff: &mut Roff, behind: &[String]) {
    let mut notes = behind
        .iter()
        .filter(|line| !line.starts_with(EXIT))
        .peekable();
    if notes.peek().is_none() {
        return;
    }
    roff.control("SH", ["NOTES"]);
    for note in notes {
        roff.text([roman(note.as_str())]);
        roff.control("PP", []);
    }
}

/// `0 clean, 1 findings, 2 usage` as a list. A status begins where a digit and a blank follow a comma or a semicolon.
fn exit_status(roff: &mut Roff, behind: &[String]) {
    let line = behind.iter().find_map(|line| line.strip_prefix(EXIT));
    let line = line.unwrap_or("0 done, 2 usage, 5 failed.");
    roff.control("SH", ["EXIT STATUS"]);
    for (status, words) in statuses(line) {
        roff.control("TP", []);
        roff.text([bold(status)]);
        roff.text([roman(words)]);
    }
}

/// Each status with its words.
fn statuses(line: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for word in line.trim_end_matches('.').split(' ') {
        let is_status = word.len() == 1 && word.starts_with(|sign: char| sign.is_ascii_digit());
        let is_next = found
            .last()
            .is_none_or(|(_, words)| words.ends_with(',') || words.ends_with(';'));
        match found.last_mut() {
            _ if is_status && is_next => found.push((word.to_owned(), String::new())),
            Some((_, words)) => {
                if !words.is_empty() {
                    words.push(' ');
                }
                words.push_str(word);
            }
            None => {}
        }
    }
    for (_, words) in &mut found {
        let bare = words.trim_end_matches([',', ';']).len();
        words.truncate(bare);
    }
    found
}

fn examples(roff: &mut Roff, path: &[&str]) {
    roff.control("SH", ["EXAMPLES"]);
    for (line, purpose) in manual(path).map_or(&[][..], |manual| manual.examples) {
        roff.control("TP", []);
        roff.text([bold(*line)]);
        roff.text([roman(format!("{purpose}."))]);
    }
}

fn files(roff: &mut Roff, path: &[&str]) {
    let first = path.first().copied().unwrap_or_default();
    let mut named = FILES
        .iter()
        .filter(|(.., commands)| commands.contains(&first))
        .peekable();
    roff.control("SH", ["FILES"]);
    if named.peek().is_none() {
        roff.text([roman("Only files that are named on the command line.")]);
    }
    for (file, words, _) in named {
        roff.control("TP", []);
        roff.text([bold(*file)]);
        roff.text([roman(format!("{words}."))]);
    }
}

fn see_also(roff: &mut Roff, beside: &[String]) {
    roff.control("SH", ["SEE ALSO"]);
    let mut words = Vec::new();
    for (at, name) in beside.iter().enumerate() {
        words.push(bold(name.as_str()));
        let end = if at + 1 < beside.len() {
            "(1), "
        } else {
            "(1)"
        };
        words.push(roman(end));
    }
    roff.text(words);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_its_sections() {
        let mut files = FilesToWrite::new();
        add(&mut files);
        assert!(files.len() > 30);
        for (path, text) in files {
            for section in ["SYNOPSIS", "EXIT STATUS", "EXAMPLES", "FILES", "SEE ALSO"] {
                let heading = format!("\n.SH \"{section}\"\n");
                let bare = format!("\n.SH {section}\n");
                assert!(
                    text.contains(&heading) || text.contains(&bare),
                    "{}: no {section}\n{text}",
                    path.display()
                );
            }
            assert!(!text.contains("Examples:"), "{}", path.display());
        }
    }

    #[test]
    fn statuses_are_taken_apart() {
        let line = "0 clean, 1 findings, 3 unknown, or read only in part, 4 not permitted (needs 2 rights); 5 failed.";
        let statuses = statuses(line);
        let shown: Vec<(&str, &str)> = statuses
            .iter()
            .map(|(status, words)| (status.as_str(), words.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("0", "clean"),
                ("1", "findings"),
                ("3", "unknown, or read only in part"),
                ("4", "not permitted (needs 2 rights)"),
                ("5", "failed"),
            ]
        );
    }
}
