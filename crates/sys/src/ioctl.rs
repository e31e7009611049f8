//! The one unsafe call: an ioctl with a structure that the kernel reads and fills.

use std::ffi::c_void;
use std::os::fd::AsFd;

use rustix::io::Result;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};

/// Memory that an ioctl may be given: any bytes are a valid value of it, and the kernel writes no further than its end.
///
/// # Safety
/// The type is plain data without padding that matters and without references, and for every opcode that this crate pairs
/// with it the kernel stays inside it, or inside a buffer whose length a field of it states truly.
pub(crate) unsafe trait Argument {
    /// Its address for the kernel.
    fn address(&mut self) -> *mut c_void;
}

/// Numbers as the simple questions of `BLK*` return them.
macro_rules! plain {
    ($($name:ty),+) => {
        $(
            // SAFETY: an integer; the kernel writes exactly its size, which the opcode names or <linux/fs.h> states.
            unsafe impl Argument for $name {
                fn address(&mut self) -> *mut c_void {
                    std::ptr::from_mut(self).cast()
                }
            }
        )+
    };
}

plain!(i32, u32, u64);

struct Call<'a, T: Argument> {
    opcode: Opcode,
    argument: &'a mut T,
}

// SAFETY: the pointer is that of a live exclusive borrow, `Argument` bounds the kernel's access to it, and IS_MUTATING
// is true, so the compiler does not assume it unchanged.
unsafe impl<T: Argument> Ioctl for Call<'_, T> {
    type Output = i32;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument.address()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> Result<i32> {
        Ok(out)
    }
}

/// Calls, and returns the result of the ioctl itself.
pub(crate) fn ioctl<T: Argument>(fd: impl AsFd, opcode: Opcode, argument: &mut T) -> Result<i32> {
    // SAFETY: see `Call` and `Argument`; each opcode of this crate is paired with its argument where it is defined.
    unsafe { rustix::ioctl::ioctl(fd, Call { opcode, argument }) }
}
