//! Memory of a map that the kernel writes and this process reads.

use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::{ops, slice};

use aya::maps::MapData;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::abi;
use crate::error::CaptureError;

/// Structures of nothing but atomics and padding, for which every bit pattern is a value.
///
/// # Safety
/// The structure has the layout of the map's value, holds atomic integers only, and is nowhere written but atomically.
pub(crate) unsafe trait Words {}

// SAFETY: `repr(C)` of atomics, sizes are asserted against the header.
unsafe impl Words for abi::KernelRow {}
// SAFETY: as above.
unsafe impl Words for abi::KernelDevice {}
// SAFETY: as above.
unsafe impl Words for abi::KernelPlace {}
// SAFETY: as above.
unsafe impl Words for abi::Process {}
// SAFETY: as above.
unsafe impl Words for abi::Thread {}
// SAFETY: as above.
unsafe impl Words for abi::Sent {}
// SAFETY: as above.
unsafe impl Words for abi::Asker {}
// SAFETY: as above.
unsafe impl Words for abi::Flight {}
// SAFETY: as above.
unsafe impl Words for abi::Kept {}
// SAFETY: as above.
unsafe impl Words for abi::Totals {}
// SAFETY: as above.
unsafe impl Words for crate::record::abi::Open {}
// SAFETY: as above.
unsafe impl Words for crate::record::abi::KernelTally {}
// SAFETY: one atomic integer.
unsafe impl Words for std::sync::atomic::AtomicU64 {}

/// The entries of an array map.
pub(crate) struct Shared<T> {
    memory: NonNull<std::ffi::c_void>,
    bytes: usize,
    entries: usize,
    of: PhantomData<T>,
}

// SAFETY: the memory belongs to the map and is read and written atomically alone, from any thread.
unsafe impl<T: Words> Send for Shared<T> {}

impl<T: Words> Shared<T> {
    /// Maps it for reading, or for reading and writing.
    pub(crate) fn map(
        name: &'static str,
        map: &MapData,
        access: ProtFlags,
    ) -> Result<Shared<T>, CaptureError> {
        let failed = |reason: String| CaptureError::Map { map: name, reason };
        let info = map.info().map_err(|error| failed(error.to_string()))?;
        if info.value_size() as usize != size_of::<T>() {
            let (found, expected) = (info.value_size(), size_of::<T>());
            return Err(failed(format!(
                "found entries of {found} bytes, expected {expected}"
            )));
        }
        let entries = info.max_entries() as usize;
        // The kernel rounds up to whole pages of any size.
        let bytes = entries * size_of::<T>();
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that is there.
        let memory = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                MapFlags::SHARED,
                map.fd().as_fd(),
                0,
            )
        };
        let memory = memory.map_err(|errno| failed(errno.to_string()))?;
        let memory =
            NonNull::new(memory).ok_or_else(|| failed("mapped at address 0".to_owned()))?;
        Ok(Shared {
            memory,
            bytes,
            entries,
            of: PhantomData,
        })
    }
}

impl<T: Words> ops::Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the mapping has this length and lives as long as `self`; a page is aligned for every `T`, and `Words`
        // promises that the kernel's data there are values of `T`.
        unsafe { slice::from_raw_parts(self.memory.cast().as_ptr(), self.entries) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length; no borrow of it outlives `self`.
        // An error would leave it mapped until the process ends, and nothing can be done about it.
        let _ = unsafe { munmap(self.memory.as_ptr(), self.bytes) };
    }
}
