//! Findings that the user accepts, for every command that judges a layout.

use std::path::PathBuf;

use clap::Args;
use plumb_diagnose::accept::Acceptance;

use crate::config::{Config, parse_ignored};
use crate::failure::Failure;

/// The findings that the user accepts.
#[derive(Clone, Debug, Default, Args)]
pub struct Accepting {
    /// Read the accepted findings from FILE instead of /etc/plumb/config.toml
    #[arg(long, value_name = "FILE", help_heading = "Accepted findings")]
    pub config: Option<PathBuf>,
    /// Ignore the findings of a rule, on one device or on all; may be given several times
    #[arg(long, value_name = "RULE[:DEVICE]", value_parser = parse_ignored, help_heading = "Accepted findings")]
    pub ignore: Vec<Acceptance>,
}

impl Accepting {
    /// The configuration with the flags in front. The file of this host counts only if the command judges this host.
    ///
    /// # Errors
    /// When the file is not there or has a mistake.
    pub fn read(&self, is_of_host: bool) -> Result<Config, Failure> {
        let mut config = Config::read(self.config.as_deref(), is_of_host)?;
        let mut accept = self.ignore.clone();
        accept.append(&mut config.accept);
        config.accept = accept;
        Ok(config)
    }
}
