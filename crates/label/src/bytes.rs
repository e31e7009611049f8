//! Fields of a fixed place in a sector. The caller has the sector whole; a place beyond it is our own mistake.

/// The `N` bytes at `at`, for `from_le_bytes` and `from_be_bytes`.
pub(crate) fn field<const N: usize>(sector: &[u8], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&sector[at..at + N]);
    value
}

/// Writes the bytes of a field.
pub(crate) fn put(sector: &mut [u8], at: usize, value: &[u8]) {
    sector[at..at + value.len()].copy_from_slice(value);
}

/// Text up to the first NUL, without blanks around it; bytes that are no UTF-8 become U+FFFD.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

/// Whether nothing was ever written there.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}
