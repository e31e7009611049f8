//! This run of the program, as its documents state it.

use std::sync::OnceLock;
use std::time::SystemTime;

use plumb_report::run::Run;

static HOST: OnceLock<Option<String>> = OnceLock::new();
static IS_BY_ROOT: OnceLock<bool> = OnceLock::new();

/// Whether root started the program, which may have dropped all privileges since.
pub fn is_by_root() -> bool {
    *IS_BY_ROOT.get_or_init(plumb_sys::user::is_root)
}

/// Reads the name of the host, before a sandbox hides it.
pub fn note_host() {
    HOST.get_or_init(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    });
}

/// The name of the host, if [`note_host`] could read it.
pub fn host() -> Option<&'static str> {
    HOST.get()?.as_deref()
}

/// The run, at this moment.
pub fn now() -> Run {
    Run {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host().map(str::to_owned),
        time: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        command: std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
    }
}
