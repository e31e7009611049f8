//! The effect of signals on this program: one that ends it first removes unfinished files.
//!
//! A command that stops by itself asks for a flag instead ([`stop_flag`]), and then ends as it likes. A signal that was
//! ignored when the program began stays ignored, since nohup and shells ask for that; only SIGINT and SIGTERM still set a
//! flag: a shell without job control ignores SIGINT for every command behind `&`, and its script ends a recording with
//! `kill -INT`.
//!
//! The handlers only make system calls on memory that is never freed, so that they may run at any moment.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::{fmt, io, ptr};

use rustix::fs::{AtFlags, unlinkat};
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM,
    SIGXCPU, SIGXFSZ,
};
use signal_hook::low_level;

/// Signals that end the program unless something else is asked for. SIGABRT is how a panic in a panic ends.
const ENDING: [i32; 11] = [
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM,
    SIGXCPU,
];
/// Those that ask for an end.
const STOPPING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Whether [`STOPPING`] signals only set flags.
static STOPS_BY_ITSELF: AtomicBool = AtomicBool::new(false);

/// Lets every signal that ends this program remove unfinished files first, and makes a write beyond the largest file size
/// an error instead of an end. Called once, at the beginning.
///
/// # Errors
/// The error of the kernel.
pub fn remove_unfinished_at_the_end() -> io::Result<()> {
    for signal in ENDING.into_iter().filter(|signal| !is_ignored(*signal)) {
        let end = move || {
            if STOPPING.contains(&signal) && STOPS_BY_ITSELF.load(Ordering::SeqCst) {
                return;
            }
            remove_all();
            // As without a handler, with the status that a waiting parent expects.
            let _ = low_level::emulate_default_handler(signal);
        };
        // SAFETY: the handler loads atomics, calls unlinkat, and functions that emulate_default_handler documents as
        // safe in a handler.
        unsafe { low_level::register(signal, end) }?;
    }
    if !is_ignored(SIGXFSZ) {
        // SAFETY: the handler does nothing. With it write(2) returns EFBIG.
        unsafe { low_level::register(SIGXFSZ, || {}) }?;
    }
    Ok(())
}

/// A flag that becomes true with a signal that asks for an end (SIGINT, SIGTERM, SIGHUP). From now on these do nothing else.
///
/// # Errors
/// The error of the kernel.
pub fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in STOPPING {
        set(&stop, signal)?;
    }
    STOPS_BY_ITSELF.store(true, Ordering::SeqCst);
    Ok(stop)
}

/// Lets the signals end the program again, after the work that a [`stop_flag`] is for.
pub fn end_at_signals() {
    STOPS_BY_ITSELF.store(false, Ordering::SeqCst);
}

/// The flags of a service: the first becomes true with SIGINT and SIGTERM, the second with SIGHUP, which asks for a reload. From now on
/// these signals do nothing else.
///
/// # Errors
/// The error of the kernel.
pub fn service_flags() -> io::Result<(Arc<AtomicBool>, Arc<AtomicBool>)> {
    let (stop, reload) = (Arc::default(), Arc::default());
    set(&stop, SIGINT)?;
    set(&stop, SIGTERM)?;
    set(&reload, SIGHUP)?;
    STOPS_BY_ITSELF.store(true, Ordering::SeqCst);
    Ok((stop, reload))
}

/// Lets a signal set a flag. An ignored SIGHUP stays ignored.
fn set(flag: &Arc<AtomicBool>, signal: i32) -> io::Result<()> {
    if signal != SIGHUP || !is_ignored(signal) {
        signal_hook::flag::register(signal, flag.clone())?;
    }
    Ok(())
}

fn is_ignored(signal: i32) -> bool {
    let mut old = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the kernel only writes the old one, into memory of its size.
    let asked = unsafe { libc::sigaction(signal, ptr::null(), old.as_mut_ptr()) };
    // SAFETY: it is written where the call succeeded.
    asked == 0 && unsafe { old.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// A file that is not whole, known to the handlers. Records are linked into a list, and stay in memory for good: a handler
/// may look at one at any moment. One takes some hundred bytes.
struct Unfinished {
    name: CString,
    directory: RawFd,
    is_there: AtomicBool,
    next: AtomicPtr<Unfinished>,
}

static FIRST: AtomicPtr<Unfinished> = AtomicPtr::new(ptr::null_mut());

/// Keeps a name among those that a signal removes, until it is dropped.
pub(crate) struct RemovedAtTheEnd {
    record: &'static Unfinished,
    directory: OwnedFd,
}

impl RemovedAtTheEnd {
    /// A name in a directory. Of a file that is still to be made, so that no signal comes in between: the name must be one
    /// that no other file has.
    pub(crate) fn new(directory: OwnedFd, name: CString) -> RemovedAtTheEnd {
        let record = Box::leak(Box::new(Unfinished {
            name,
            directory: directory.as_raw_fd(),
            is_there: AtomicBool::new(true),
            next: AtomicPtr::default(),
        }));
        let mut next = FIRST.load(Ordering::SeqCst);
        loop {
            *record.next.get_mut() = next;
            match FIRST.compare_exchange(next, record, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return RemovedAtTheEnd { record, directory },
                Err(other) => next = other,
            }
        }
    }

    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    pub(crate) fn name(&self) -> &CStr {
        &self.record.name
    }
}

impl fmt::Debug for RemovedAtTheEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemovedAtTheEnd")
            .field(&self.name())
            .finish()
    }
}

impl Drop for RemovedAtTheEnd {
    fn drop(&mut self) {
        // Before the directory is closed and its number goes to another file. A handler that is at work in another thread
        // just now looks for a name there that no file has.
        self.record.is_there.store(false, Ordering::SeqCst);
    }
}

/// Removes all unfinished files. Called by handlers.
fn remove_all() {
    let mut next = FIRST.load(Ordering::SeqCst);
    // SAFETY: each record was leaked before it came into the list, and is not changed after.
    while let Some(record) = unsafe { next.as_ref() } {
        if record.is_there.load(Ordering::SeqCst) {
            // SAFETY: the directory is open while `is_there`: RemovedAtTheEnd closes it later.
            let directory = unsafe { BorrowedFd::borrow_raw(record.directory) };
            // It may not be made yet, or have its final name already.
            let _ = unlinkat(directory, &*record.name, AtFlags::empty());
        }
        next = record.next.load(Ordering::SeqCst);
    }
}
