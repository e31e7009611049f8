//! Reads bytes as a header in the database of RPM.

use plumb_packages::rpm;

/// One header.
pub fn header(data: &[u8]) -> bool {
    match rpm::decode(data) {
        Ok(package) => {
            if let Some(package) = package {
                assert!(package.name.contains('.') && package.version.contains('-'));
                assert!(![package.name, package.version].concat().contains('\0'));
            }
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}
