//! The integration tests of `plumb-stack`, in one program: linking costs more than compiling them.

mod hostile;
mod linux;
mod linux_dumps;
mod linux_live;
mod linux_volumes;
mod ondisk;
mod solaris;
