//! `plumb version`: the version, the source and target of this build, and the protections that commands which read files have on this host.

use crate::cli::Version;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::sandbox::{self, Enforced, Files};

/// The commit of the source. The scripts that make packages state it; another build does not know it.
const COMMIT: Option<&str> = option_env!("PLUMB_COMMIT");

/// The C library that the program was linked with.
const C_LIBRARY: &str = if cfg!(target_env = "musl") {
    "musl"
} else if cfg!(target_env = "gnu") {
    "gnu"
} else {
    "other"
};

/// Runs the command.
///
/// # Errors
/// When capabilities cannot be dropped, or nobody reads the output.
pub fn run(args: &Version) -> Result<Exit, Failure> {
    let mut text = format!("plumb {}\n", env!("CARGO_PKG_VERSION"));
    if args.verbose {
        // Tried out on this process, which has nothing else to do.
        let protection = sandbox::enter(&Files::default())?;
        let capabilities = match protection.has_no_capability {
            true => "dropped",
            false => "not dropped",
        };
        let files = match protection.files {
            Enforced::Fully => "active (Landlock)",
            Enforced::Partly => "active in part: this kernel has an older Landlock",
            Enforced::Not => "not active: this kernel has no Landlock, or does not enable it",
        };
        let calls = match protection.filters_calls {
            true => "active (seccomp)",
            false => "not active: this kernel has no seccomp filters",
        };
        text += &format!(
            "commit    {}\ntarget    {}-unknown-{}-{C_LIBRARY}\nfeatures  all; no feature is optional\n\nwhile analyze, check --from and --image, compare, convert and plan read files:\n  \
             capabilities        {capabilities}\n  \
             other files closed  {files}\n  \
             system calls        {calls}\n",
            COMMIT.unwrap_or("not stated by this build"),
            std::env::consts::ARCH,
            std::env::consts::OS,
        );
    }
    output::print(&text)?;
    Ok(Exit::Clean)
}
