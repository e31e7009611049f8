//! A file layer of SQLite (VFS) that lets one write fail, or every write from one on.
//!
//! The VFS of SQLite for Unix is below it. It counts each call that changes a file, and returns an error in place of the
//! chosen one. A test counts the calls of a script first, and then repeats the script with a fault at each of them. Calls that change a
//! file are the creation of a file, a write, a truncation, a sync, a deletion, and the growth of the index of a write-ahead log.
//!
//! Left out: locks, reads, and the loss of power. A sync that does not fail does nothing, because a killed process loses no data that the
//! kernel has.
//!
//! Source of the interface: <https://www.sqlite.org/vfs.html> and `sqlite3.h`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::ffi::{
    self, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find,
    sqlite3_vfs_register,
};

/// A call that changes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileCall {
    /// A file is opened, and created if it is absent.
    Create,
    /// Bytes are written.
    Write,
    /// A file is cut to a length.
    Truncate,
    /// A file is synced.
    Sync,
    /// A file is deleted.
    Delete,
    /// The index of a write-ahead log is mapped, and grows if it is shorter.
    GrowIndex,
}

/// The result of a call that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An I/O error; nothing is done.
    Error,
    /// No room; nothing is done.
    Full,
    /// An I/O error after the first half of the bytes of a write.
    Torn,
    /// The call never returns: the test kills the process.
    Hold,
}

/// The calls that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// Number of the first call that fails, from 0.
    pub at: u64,
    /// Whether all later calls fail, too. A torn write is followed by plain errors.
    pub lasts: bool,
    /// The result of the call.
    pub fault: Fault,
    /// Only calls on files with this in their name count; with an empty text all do.
    pub file: &'static str,
}

#[derive(Debug, Default)]
struct State {
    plan: Option<FaultPlan>,
    /// Calls since the plan was set.
    calls: Vec<FileCall>,
    failed: u64,
    is_held: bool,
}

/// A registered VFS. SQLite keeps a pointer to it, so it stays until the process ends: register one for each test.
#[derive(Debug)]
pub struct FaultyVfs {
    name: &'static CStr,
    state: &'static Mutex<State>,
}

impl FaultyVfs {
    /// Registers a VFS under a name that no other one has.
    ///
    /// # Panics
    /// If SQLite has no VFS of its own, or refuses this one.
    #[must_use]
    pub fn register(name: &str) -> FaultyVfs {
        let name: &'static CStr =
            Box::leak(CString::new(name).expect("no zero byte").into_boxed_c_str());
        let state: &'static Mutex<State> = Box::leak(Box::default());
        // SAFETY: a null name asks for the default VFS, which SQLite never frees.
        let real = unsafe { sqlite3_vfs_find(std::ptr::null()) };
        assert!(!real.is_null(), "SQLite has no VFS");
        let shared: &'static Shared = Box::leak(Box::new(Shared { real, state }));
        // SAFETY: `real` is a VFS that SQLite keeps; its functions but for those below take no field from the copy that differs.
        let mut ours = unsafe { *real };
        let head = c_int::try_from(size_of::<FaultyFile>()).expect("a small header");
        ours.szOsFile += head;
        ours.pNext = std::ptr::null_mut();
        ours.zName = name.as_ptr();
        ours.pAppData = std::ptr::from_ref(shared).cast_mut().cast();
        ours.xOpen = Some(open);
        ours.xDelete = Some(delete);
        // SAFETY: the VFS, its name and its data are leaked, so they outlive every connection.
        let done = unsafe { sqlite3_vfs_register(Box::leak(Box::new(ours)), 0) };
        assert_eq!(done, ffi::SQLITE_OK, "SQLite refuses the VFS");
        FaultyVfs { name, state }
    }

    /// The name by which a connection asks for it.
    ///
    /// # Panics
    /// Never: it is the text that was registered.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.to_str().expect("UTF-8").to_owned()
    }

    /// Sets the calls that fail, and counts from 0 again. `None`: no call fails.
    pub fn set(&self, plan: Option<FaultPlan>) {
        let mut state = lock(self.state);
        *state = State {
            plan,
            ..State::default()
        };
    }

    /// The calls on counted files since the plan was set.
    #[must_use]
    pub fn calls(&self) -> Vec<FileCall> {
        lock(self.state).calls.clone()
    }

    /// The number of calls that failed since the plan was set.
    #[must_use]
    pub fn failed(&self) -> u64 {
        lock(self.state).failed
    }

    /// Whether a call is held.
    #[must_use]
    pub fn is_held(&self) -> bool {
        lock(self.state).is_held
    }
}

/// A panic elsewhere leaves nothing half done here.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The data of a VFS.
struct Shared {
    real: *mut sqlite3_vfs,
    state: &'static Mutex<State>,
}

impl Shared {
    /// Counts a call on a file, and returns its fault.
    fn meet(&self, call: FileCall, file: &str) -> Option<Fault> {
        let mut state = lock(self.state);
        let counted = state.plan.map_or("", |plan| plan.file);
        if !file.contains(counted) {
            return None;
        }
        let number = state.calls.len() as u64;
        state.calls.push(call);
        let plan = state.plan?;
        let fault = match number.cmp(&plan.at) {
            std::cmp::Ordering::Less => return None,
            std::cmp::Ordering::Equal => plan.fault,
            std::cmp::Ordering::Greater if !plan.lasts => return None,
            // Only the first write is torn.
            std::cmp::Ordering::Greater if plan.fault == Fault::Torn => Fault::Error,
            std::cmp::Ordering::Greater => plan.fault,
        };
        state.failed += 1;
        if fault == Fault::Hold {
            state.is_held = true;
            drop(state);
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        Some(fault)
    }
}

/// An open file. The file of the real VFS follows it in the memory that SQLite allocates.
#[repr(C)]
struct FaultyFile {
    base: sqlite3_file,
    shared: *const Shared,
    /// The path; null for a file without a name.
    name: *mut String,
}

/// The file of the real VFS.
///
/// # Safety
/// `file` was opened by [`open`].
unsafe fn real_of(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: SQLite allocated `szOsFile` bytes, the header and then the file of the real VFS; the length of the header is a multiple of
    // its alignment, which is that of pointers.
    unsafe { file.cast::<FaultyFile>().add(1).cast() }
}

/// The fault of a call on an open file.
///
/// # Safety
/// `file` was opened by [`open`] and is not closed.
unsafe fn met(file: *mut sqlite3_file, call: FileCall) -> Option<Fault> {
    // SAFETY: `open` filled the header, whose data are leaked, and `close` alone frees the name.
    unsafe {
        let head = &*file.cast::<FaultyFile>();
        let name = head.name.as_ref().map_or("", String::as_str);
        (*head.shared).meet(call, name)
    }
}

/// The code of SQLite for a fault.
fn code(fault: Fault, error: c_int) -> c_int {
    match fault {
        Fault::Full => ffi::SQLITE_FULL,
        Fault::Error | Fault::Torn | Fault::Hold => error,
    }
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes this VFS, whose data are leaked, a name that is null or ends with a zero byte, and `szOsFile` bytes for the file.
    unsafe {
        let shared = (*vfs).pAppData.cast_const().cast::<Shared>();
        let text = (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned());
        let head = file.cast::<FaultyFile>();
        // Without methods SQLite does not close the file.
        (*head).base.pMethods = std::ptr::null();
        if flags & ffi::SQLITE_OPEN_CREATE != 0
            && let Some(fault) = (*shared).meet(FileCall::Create, text.as_deref().unwrap_or(""))
        {
            return code(fault, ffi::SQLITE_CANTOPEN);
        }
        let real = (*shared).real;
        let opened = (*real).xOpen.expect("a VFS opens files");
        let done = opened(real, name, real_of(file), flags, out_flags);
        if !(*real_of(file)).pMethods.is_null() {
            (*head).shared = shared;
            (*head).name = text.map_or(std::ptr::null_mut(), |text| Box::into_raw(Box::new(text)));
            (*head).base.pMethods = &METHODS;
        }
        done
    }
}

unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: as in `open`.
    unsafe {
        let shared = (*vfs).pAppData.cast_const().cast::<Shared>();
        let text = CStr::from_ptr(name).to_string_lossy();
        if let Some(fault) = (*shared).meet(FileCall::Delete, &text) {
            return code(fault, ffi::SQLITE_IOERR_DELETE);
        }
        let real = (*shared).real;
        (*real).xDelete.expect("a VFS deletes files")(real, name, sync)
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes an open file once; the name came from a box.
    unsafe {
        let head = file.cast::<FaultyFile>();
        if !(*head).name.is_null() {
            drop(Box::from_raw((*head).name));
            (*head).name = std::ptr::null_mut();
        }
        let real = real_of(file);
        (*(*real).pMethods).xClose.expect("a file closes")(real)
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    len: c_int,
    at: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite passes an open file of this VFS and `len` bytes; half of them are as many or fewer.
    unsafe {
        let real = real_of(file);
        let write = (*(*real).pMethods).xWrite.expect("a file takes writes");
        match met(file, FileCall::Write) {
            None => write(real, bytes, len, at),
            Some(fault) => {
                if fault == Fault::Torn {
                    write(real, bytes, len / 2, at);
                }
                code(fault, ffi::SQLITE_IOERR_WRITE)
            }
        }
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, len: sqlite3_int64) -> c_int {
    // SAFETY: SQLite passes an open file of this VFS.
    unsafe {
        if let Some(fault) = met(file, FileCall::Truncate) {
            return code(fault, ffi::SQLITE_IOERR_TRUNCATE);
        }
        let real = real_of(file);
        (*(*real).pMethods).xTruncate.expect("a file has a length")(real, len)
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: SQLite passes an open file of this VFS.
    match unsafe { met(file, FileCall::Sync) } {
        Some(fault) => code(fault, ffi::SQLITE_IOERR_FSYNC),
        None => ffi::SQLITE_OK,
    }
}

unsafe extern "C" fn map_index(
    file: *mut sqlite3_file,
    region: c_int,
    region_len: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite passes an open file of this VFS, and a place for the address.
    unsafe {
        if extend != 0
            && let Some(fault) = met(file, FileCall::GrowIndex)
        {
            *out = std::ptr::null_mut();
            return code(fault, ffi::SQLITE_IOERR_SHMSIZE);
        }
        let real = real_of(file);
        let map = (*(*real).pMethods)
            .xShmMap
            .expect("a VFS with shared memory");
        map(real, region, region_len, extend, out)
    }
}

/// Functions that pass a call on to the real file.
macro_rules! passed_on {
    ($($name:ident: $method:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(unsafe extern "C" fn $name(file: *mut sqlite3_file, $($arg: $type),*) -> $out {
            // SAFETY: SQLite passes an open file of this VFS, and arguments as the real method expects them.
            unsafe {
                let real = real_of(file);
                (*(*real).pMethods).$method.expect("a method of each VFS")(real, $($arg),*)
            }
        })*
    };
}

passed_on! {
    read: xRead(into: *mut c_void, len: c_int, at: sqlite3_int64) -> c_int;
    file_size: xFileSize(out: *mut sqlite3_int64) -> c_int;
    lock_file: xLock(level: c_int) -> c_int;
    unlock_file: xUnlock(level: c_int) -> c_int;
    is_reserved: xCheckReservedLock(out: *mut c_int) -> c_int;
    control: xFileControl(operation: c_int, argument: *mut c_void) -> c_int;
    sector_size: xSectorSize() -> c_int;
    characteristics: xDeviceCharacteristics() -> c_int;
    lock_index: xShmLock(offset: c_int, count: c_int, flags: c_int) -> c_int;
    index_barrier: xShmBarrier() -> ();
    unmap_index: xShmUnmap(delete: c_int) -> c_int;
}

/// Version 2 has no memory-mapped pages, so that every write passes `write`.
static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock_file),
    xUnlock: Some(unlock_file),
    xCheckReservedLock: Some(is_reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(map_index),
    xShmLock: Some(lock_index),
    xShmBarrier: Some(index_barrier),
    xShmUnmap: Some(unmap_index),
    xFetch: None,
    xUnfetch: None,
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use rusqlite::{Connection, ErrorCode, OpenFlags};

    use super::*;

    fn connect(vfs: &FaultyVfs, file: &Path) -> Connection {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Connection::open_with_flags_and_vfs(file, flags, vfs.name().as_str()).expect("a file")
    }

    fn count(file: &Path) -> i64 {
        let connection = Connection::open(file).expect("a file");
        let count = connection.query_row("SELECT count(*) FROM one", [], |row| row.get(0));
        count.expect("its table")
    }

    const SCRIPT: &str = "PRAGMA journal_mode = WAL;
        CREATE TABLE one (number);
        INSERT INTO one VALUES (1);
        PRAGMA wal_checkpoint(TRUNCATE);";

    #[test]
    fn every_kind_of_call_is_counted() {
        let room = crate::temp_dir("vfs-count");
        let file = room.path().join("file.db");
        let vfs = FaultyVfs::register("count");
        let connection = connect(&vfs, &file);
        connection.execute_batch(SCRIPT).expect("no fault");
        drop(connection);
        let kinds: BTreeSet<FileCall> = vfs.calls().into_iter().collect();
        let all = [
            FileCall::Create,
            FileCall::Write,
            FileCall::Truncate,
            FileCall::Sync,
            FileCall::Delete,
            FileCall::GrowIndex,
        ];
        assert_eq!(kinds, all.into());
        assert_eq!((vfs.failed(), count(&file)), (0, 1));
    }

    /// A fault meets the call of its number, and with `lasts` all later ones; the codes are those of `sqlite3.h`.
    #[test]
    fn the_chosen_calls_fail() {
        let vfs = FaultyVfs::register("chosen");
        for (fault, expected) in [
            (Fault::Error, ErrorCode::SystemIoFailure),
            (Fault::Full, ErrorCode::DiskFull),
            (Fault::Torn, ErrorCode::SystemIoFailure),
        ] {
            for lasts in [false, true] {
                let room = crate::temp_dir("vfs-chosen");
                let file = room.path().join("file.db");
                let connection = connect(&vfs, &file);
                connection.execute_batch(SCRIPT).expect("no fault");
                let plan = FaultPlan {
                    at: 0,
                    lasts,
                    fault,
                    file: "file.db-wal",
                };
                vfs.set(Some(plan));
                let insert = || connection.execute("INSERT INTO one VALUES (2)", []);
                let failed = insert().expect_err("a fault");
                assert_eq!(failed.sqlite_error_code(), Some(expected));
                assert_eq!(insert().is_err(), lasts, "{fault:?}");
                vfs.set(None);
                insert().expect("no fault");
                drop(connection);
                assert_eq!(count(&file), if lasts { 2 } else { 3 }, "{fault:?}");
            }
        }
    }

    /// A torn write leaves the first half of its bytes.
    #[test]
    fn a_torn_write_leaves_a_half() {
        let room = crate::temp_dir("vfs-torn");
        let file = room.path().join("file.db");
        let vfs = FaultyVfs::register("torn");
        let connection = connect(&vfs, &file);
        let begin = "PRAGMA page_size = 4096; PRAGMA journal_mode = OFF;";
        connection.execute_batch(begin).expect("no fault");
        vfs.set(Some(FaultPlan {
            at: 0,
            lasts: true,
            fault: Fault::Torn,
            file: "",
        }));
        let made = connection.execute_batch("CREATE TABLE one (number)");
        assert!(made.is_err());
        drop(connection);
        assert_eq!(std::fs::metadata(&file).expect("its length").len(), 2048);
    }
}
