//! The parameters of a target, word by word.

use plumb_geometry::Sectors;

use super::{At, DeviceName, TableError};

/// Most members that a target may name; the kernel's own limit for stripes is far lower.
const COUNT_MAX: usize = 1 << 16;

/// The remaining parameters.
pub(super) struct Words<'a> {
    kind: &'a str,
    left: &'a str,
}

impl<'a> Words<'a> {
    pub(super) fn new(kind: &'a str, text: &'a str) -> Words<'a> {
        Words {
            kind,
            left: text.trim(),
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.left
    }

    pub(super) fn next(&mut self) -> Option<&'a str> {
        let end = self
            .left
            .find(char::is_whitespace)
            .unwrap_or(self.left.len());
        let (word, left) = self.left.split_at(end);
        self.left = left.trim_start();
        (!word.is_empty()).then_some(word)
    }

    pub(super) fn word(&mut self, expected: &'static str) -> Result<&'a str, TableError> {
        self.next().ok_or_else(|| TableError::Ends {
            kind: self.kind.to_owned(),
            expected,
        })
    }

    pub(super) fn found(&self, found: &str, expected: &'static str) -> TableError {
        TableError::Found {
            kind: self.kind.to_owned(),
            found: found.to_owned(),
            expected,
        }
    }

    pub(super) fn number(&mut self, expected: &'static str) -> Result<u64, TableError> {
        let word = self.word(expected)?;
        word.parse().map_err(|_| self.found(word, expected))
    }

    /// A number of sectors that bytes can be counted of.
    pub(super) fn sectors(&mut self, expected: &'static str) -> Result<Sectors, TableError> {
        let sectors = Sectors(self.number(expected)?);
        match sectors.to_bytes() {
            Some(_) => Ok(sectors),
            None => Err(self.found(&sectors.0.to_string(), expected)),
        }
    }

    /// As [`Words::sectors`], and not 0.
    pub(super) fn some_sectors(&mut self, expected: &'static str) -> Result<Sectors, TableError> {
        match self.sectors(expected)? {
            Sectors(0) => Err(self.found("0", expected)),
            sectors => Ok(sectors),
        }
    }

    /// A count of the following items; no more than the remaining bytes, so that a wrong count allocates nothing.
    pub(super) fn count(&mut self, expected: &'static str) -> Result<usize, TableError> {
        let count = self.number(expected)?;
        let fits = usize::try_from(count)
            .ok()
            .filter(|count| *count <= self.left.len().min(COUNT_MAX));
        fits.ok_or_else(|| self.found(&count.to_string(), expected))
    }

    pub(super) fn skip(&mut self, count: usize, expected: &'static str) -> Result<(), TableError> {
        for _ in 0..count {
            self.word(expected)?;
        }
        Ok(())
    }

    pub(super) fn device(&mut self, expected: &'static str) -> Result<DeviceName, TableError> {
        self.word(expected).map(str::to_owned)
    }

    pub(super) fn at(&mut self) -> Result<At, TableError> {
        Ok(At {
            device: self.device("a device")?,
            start: self.sectors("its first sector")?,
        })
    }

    /// The number after the option of this name, at any position.
    pub(super) fn option(&self, name: &str) -> Option<u64> {
        self.left
            .split_whitespace()
            .find_map(|word| word.strip_prefix(name)?.parse().ok())
            .filter(|it| *it > 0)
    }

    /// All parameters like `253:4`, each once.
    pub(super) fn device_numbers(&self) -> Vec<DeviceName> {
        let mut found: Vec<DeviceName> = Vec::new();
        for word in self
            .left
            .split_whitespace()
            .filter(|word| super::place::number_of(word).is_some())
        {
            if !found.iter().any(|known| known == word) {
                found.push(word.to_owned());
            }
        }
        found
    }
}
