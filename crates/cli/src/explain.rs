//! `plumb explain`: the page of a finding as text.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use plumb_model::RuleId;
use plumb_model::rule::RULES;
use plumb_report::explain;

use crate::cli::{ColorChoice, Explain};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Runs the command.
///
/// # Errors
/// When the page could not be printed.
pub fn run(args: &Explain) -> Result<Exit, Failure> {
    let rule = args.finding.as_deref().and_then(RuleId::from_name);
    let paper = output::paper(ColorChoice::Never);
    let text = match rule {
        Some(rule) => explain::page(rule.rule(), paper),
        None => explain::index(RULES, paper),
    };
    show(&output::drawn(text))?;
    Ok(Exit::Clean)
}

/// Shows a text in the pager of the user, or prints it where there is no terminal or no pager.
///
/// # Errors
/// When the text could not be printed.
pub fn show(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() && is_paged(text) {
        return Ok(());
    }
    output::print(text)
}

/// Whether a pager took the text. A shell that finds no pager ends with one of two statuses, and has shown nothing.
fn is_paged(text: &str) -> bool {
    const NO_PAGER: [i32; 2] = [126, 127];
    let own = std::env::var("PAGER").ok();
    let (pager, complaints) = match own.filter(|pager| !pager.trim().is_empty()) {
        Some(pager) => (pager, Stdio::inherit()),
        None => ("less -FRX".to_owned(), Stdio::null()),
    };
    let child = Command::new("sh")
        .args(["-c", &pager])
        .stdin(Stdio::piped())
        .stderr(complaints)
        .spawn();
    let Ok(mut child) = child else { return false };
    let mut input = child.stdin.take();
    let written = input.as_mut().map(|input| input.write_all(text.as_bytes()));
    drop(input);
    // A reader may leave before the end, with status 0; a pager that fails at once has shown nothing.
    let is_read = written.is_some_and(|written| written.is_ok());
    let status = child.wait().ok().and_then(|status| status.code());
    status.is_some_and(|status| status == 0 || is_read && !NO_PAGER.contains(&status))
}
