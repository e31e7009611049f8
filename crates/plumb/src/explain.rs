//! `plumb explain`: the page of a finding as text.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use plumb_model::RuleId;
use plumb_model::rule::RULES;
use plumb_report::explain;

use crate::cli::Explain;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Runs the command.
///
/// # Errors
/// When the page could not be printed.
pub fn run(args: &Explain) -> Result<Exit, Failure> {
    let rule = args.finding.as_deref().and_then(RuleId::from_name);
    let text = match rule {
        Some(rule) => explain::page(rule.rule()),
        None => explain::index(RULES),
    };
    let text = output::drawn(text);
    if !io::stdout().is_terminal() || !page(&text) {
        output::print(&text)?;
    }
    Ok(Exit::Clean)
}

/// Shows a text in the pager of the user; `false` without a pager.
pub fn page(text: &str) -> bool {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less -FRX".to_owned());
    let child = Command::new("sh")
        .args(["-c", &pager])
        .stdin(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { return false };
    // A reader may leave before the end.
    let _ = child
        .stdin
        .take()
        .map(|mut input| input.write_all(text.as_bytes()));
    child.wait().is_ok_and(|status| status.success())
}
