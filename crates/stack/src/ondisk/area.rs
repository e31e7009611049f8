//! A part of a disk that is read as a device of its own, and fields of its bytes.

use std::cell::{Cell, RefCell};

use plumb_label::Disk;

/// A run of bytes of a disk: the whole of it, or a partition.
pub(crate) struct Area<'a> {
    disk: &'a dyn Disk,
    start: u64,
    len: u64,
    /// The first read that failed: then *nothing found* means nothing.
    failure: RefCell<Option<String>>,
    /// Whether more was asked for than there is.
    was_short: Cell<bool>,
    /// The bytes read that may be kept.
    counted: RefCell<Counted>,
}

impl<'a> Area<'a> {
    pub(crate) fn whole(disk: &'a dyn Disk) -> Self {
        Self::part(disk, 0, disk.size_bytes())
    }

    /// The part of the disk with these bytes.
    pub(crate) fn part(disk: &'a dyn Disk, start: u64, len: u64) -> Self {
        let len = len.min(disk.size_bytes().saturating_sub(start));
        Self {
            disk,
            start,
            len,
            failure: RefCell::default(),
            was_short: Cell::default(),
            counted: RefCell::default(),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes from `at` on, all of them; `None` beyond the end or if the disk does not return them. Callers bound
    /// `len` by the limits of their format. An empty request reads nothing.
    pub(crate) fn read(&self, at: u64, len: usize) -> Option<Block> {
        let block = self.read_secret(at, len)?;
        if len > 0 {
            let run = (self.start.checked_add(at)?, len as u64);
            self.counted.borrow_mut().runs.push(run);
        }
        Some(block)
    }

    /// Like [`Area::read`], for bytes that must stay on their device; [`Area::keep_instead`] sets the bytes to keep
    /// instead.
    pub(crate) fn read_secret(&self, at: u64, len: usize) -> Option<Block> {
        let end = at.checked_add(u64::try_from(len).ok()?)?;
        if end > self.len {
            self.was_short.set(true);
            return None;
        }
        if len == 0 {
            return Some(Block(Vec::new()));
        }
        let mut bytes = vec![0; len];
        let place = self.start.checked_add(at)?;
        match self.disk.read_at(place, &mut bytes) {
            Ok(()) => Some(Block(bytes)),
            Err(error) => {
                let text = format!("byte {at} cannot be read: {error}");
                self.failure.borrow_mut().get_or_insert(text);
                None
            }
        }
    }

    /// Bytes that tell a reader as much as those of the device from `at` on did.
    pub(crate) fn keep_instead(&self, at: u64, bytes: Vec<u8>) {
        let mut counted = self.counted.borrow_mut();
        counted.instead.push((self.start.saturating_add(at), bytes));
    }

    /// The bytes read since the last call.
    pub(crate) fn take_counted(&self) -> Counted {
        self.counted.take()
    }

    /// Whether bytes beyond the end were asked for since this was last asked.
    pub(crate) fn take_short(&self) -> bool {
        self.was_short.take()
    }

    /// The first read that failed.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }
}

/// Bytes of a device that identify its content: with zeros for all others it reads the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Runs, as starts and lengths on the device.
    pub runs: Vec<(u64, u64)>,
    /// Bytes in the place of those of the device, by where they begin: a form without keys, salts and digests.
    pub instead: Vec<(u64, Vec<u8>)>,
}

impl Counted {
    /// Adds the bytes of another part of the device.
    pub(crate) fn extend(&mut self, other: Counted) {
        self.runs.extend(other.runs);
        self.instead.extend(other.instead);
    }
}

/// Bytes that were read. Beyond their end all is zero: no field of hostile input is out of bounds.
pub(crate) struct Block(Vec<u8>);

macro_rules! numbers {
    ($($name:ident $kind:ty, $from:ident;)+) => {
        $(pub(crate) fn $name(&self, at: usize) -> $kind {
            <$kind>::$from(self.field(at))
        })+
    };
}

impl Block {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn has(&self, at: usize, magic: &[u8]) -> bool {
        self.run(at, magic.len()) == magic
    }

    /// The available part of these bytes.
    pub(crate) fn run(&self, at: usize, len: usize) -> &[u8] {
        let end = at.saturating_add(len).min(self.0.len());
        self.0.get(at..end).unwrap_or_default()
    }

    pub(crate) fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut value = [0; N];
        let found = self.run(at, N);
        value[..found.len()].copy_from_slice(found);
        value
    }

    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.field::<1>(at)[0]
    }

    /// Text up to the first NUL; invalid UTF-8 becomes U+FFFD.
    pub(crate) fn text(&self, at: usize, len: usize) -> String {
        let bytes = self.run(at, len);
        let end = bytes
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
    }

    numbers! {
        le16 u16, from_le_bytes;
        le32 u32, from_le_bytes;
        le64 u64, from_le_bytes;
        be16 u16, from_be_bytes;
        be32 u32, from_be_bytes;
        be64 u64, from_be_bytes;
    }
}

/// The written form of a UUID.
pub(crate) fn uuid(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_ends_where_it_ends() {
        let disk: Vec<u8> = (0..16).collect();
        let area = Area::part(&disk, 4, 100);
        assert_eq!(area.len(), 12);
        assert_eq!(area.read(10, 2).expect("within").bytes(), [14, 15]);
        assert!(!area.take_short());
        assert!(area.read(10, 3).is_none() && area.read(u64::MAX, 1).is_none());
        assert!(area.take_short() && !area.take_short());
        assert_eq!(area.failure(), None);
    }

    /// Nothing is always there: a collection holds no reads without bytes.
    #[test]
    fn of_no_bytes_nothing_is_asked() {
        struct Refusing;
        impl Disk for Refusing {
            fn size_bytes(&self) -> u64 {
                16
            }

            fn read_at(&self, _: u64, _: &mut [u8]) -> std::io::Result<()> {
                Err(std::io::ErrorKind::NotFound.into())
            }
        }
        let area = Area::whole(&Refusing);
        assert!(area.read(8, 0).expect("nothing").bytes().is_empty());
        assert_eq!(
            (area.failure(), area.take_counted()),
            (None, Counted::default())
        );
        assert!(area.read(8, 1).is_none() && area.failure().is_some());
    }

    #[test]
    fn fields_beyond_the_end_are_zero() {
        let block = Block(vec![1, 2, 3]);
        assert_eq!(
            (block.le16(1), block.le32(1), block.be32(9)),
            (0x0302, 0x0302, 0)
        );
        assert!(!block.has(2, &[3, 0]));
    }
}
