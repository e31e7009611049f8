//! What Linux tools print, against what they were told: labels, volumes and file systems made here by the real tools; the
//! machine that the test runs on; recorded prints of other machines; and a guest's, where `PLUMB_CHECK_OUT` names what
//! `lab/check-guest` wrote.

mod filesystems;
mod guest;
mod host;
mod labels;
mod recorded;
mod shapes;
mod support;
mod volumes;
