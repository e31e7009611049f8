//! The features of this kernel, by its own type information.

use std::fs;

use crate::error::CaptureError;
use crate::layer::Attachment;

/// The kernel's type file.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Kinds of types that matter here; numbers of <linux/btf.h>.
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const PTR: u32 = 2;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const FUNC_PROTO: u32 = 13;
    pub(super) const VAR: u32 = 14;
    pub(super) const DATASEC: u32 = 15;
    pub(super) const DECL_TAG: u32 = 17;
    pub(super) const ENUM64: u32 = 19;
}

/// The kernel's types as in the file.
pub(crate) struct Types {
    bytes: Vec<u8>,
    types_at: usize,
    strings_at: usize,
    /// The start of each type; type 0 is void and has no entry.
    begins: Vec<u32>,
}

impl Types {
    pub(crate) fn of_kernel() -> Result<Types, CaptureError> {
        let bytes = fs::read(TYPES).map_err(CaptureError::NoTypes)?;
        Types::parse(bytes).ok_or_else(|| {
            CaptureError::Types("found something else than BTF version 1".to_owned())
        })
    }

    fn parse(bytes: Vec<u8>) -> Option<Types> {
        let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let word =
            |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        if half(0)? != 0xeb9f || *bytes.get(2)? != 1 {
            return None;
        }
        let head = word(4)?;
        let (types_at, types_len) = (head.checked_add(word(8)?)?, word(12)?);
        let strings_at = head.checked_add(word(16)?)?;
        let (mut at, end) = (types_at, types_at.checked_add(types_len)?);
        let mut begins = vec![0];
        while at < end {
            begins.push(at as u32);
            let info = word(at + 4)? as u32;
            at += 12 + extra_bytes(info)?;
        }
        Some(Types {
            bytes,
            types_at,
            strings_at,
            begins,
        })
    }

    fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(
            self.bytes.get(at..at + 4)?.try_into().ok()?,
        ))
    }

    /// Name, info and type (or size) of a type.
    fn head(&self, id: u32) -> Option<(u32, u32, u32)> {
        let at = *self.begins.get(id as usize).filter(|_| id > 0)? as usize;
        debug_assert!(at >= self.types_at);
        Some((self.word(at)?, self.word(at + 4)?, self.word(at + 8)?))
    }

    fn is_named(&self, offset: u32, name: &str) -> bool {
        let at = self.strings_at + offset as usize;
        let text = self.bytes.get(at..at + name.len() + 1);
        text.is_some_and(|text| text.strip_suffix(&[0]) == Some(name.as_bytes()))
    }

    /// Whether the tracepoints of bios, and of their ends, have the arguments that the programs take.
    pub(crate) fn check_bio_tracepoints(&self, with_ends: bool) -> Result<(), CaptureError> {
        let mut expected = vec![("block_bio_queue", 1), ("block_split", 2)];
        expected.extend(with_ends.then_some(("block_bio_complete", 2)));
        for (tracepoint, expected) in expected {
            let found = self.tracepoint_arguments(tracepoint);
            if found != Some(expected) {
                let found = found.map_or("none".to_owned(), |found| found.to_string());
                let what = format!(
                    "arguments of tracepoint {tracepoint}: found {found}, expected {expected}"
                );
                return Err(CaptureError::Types(what));
            }
        }
        Ok(())
    }

    /// The program at block_rq_issue that fits this kernel.
    pub(crate) fn issue_program(&self) -> Result<&'static str, CaptureError> {
        match self.tracepoint_arguments("block_rq_issue") {
            Some(1) => Ok("issue_request"),
            Some(2) => Ok("issue_queue_request"),
            found => {
                let what =
                    format!("tracepoint block_rq_issue with {found:?} arguments, expected 1 or 2");
                Err(CaptureError::Types(what))
            }
        }
    }

    /// The program that sees pages become dirty, and its tracepoint; `None` if the kernel has no such tracepoint.
    pub(crate) fn dirty_program(&self) -> Option<Attachment> {
        let programs = [
            ("dirty_folio", "writeback_dirty_folio"),
            ("dirty_page", "writeback_dirty_page"),
        ];
        programs
            .into_iter()
            .find(|(_, tracepoint)| self.tracepoint_arguments(tracepoint) == Some(2))
    }

    /// How many arguments a tracepoint hands to a program; `None` when the kernel has no such tracepoint.
    pub(crate) fn tracepoint_arguments(&self, tracepoint: &str) -> Option<usize> {
        let name = format!("btf_trace_{tracepoint}");
        let typedef = (1..self.begins.len() as u32).find_map(|id| {
            let (offset, info, to) = self.head(id)?;
            (kind_of(info) == kind::TYPEDEF && self.is_named(offset, &name)).then_some(to)
        })?;
        let (_, info, prototype) = self.head(typedef)?;
        if kind_of(info) != kind::PTR {
            return None;
        }
        let (_, info, _) = self.head(prototype)?;
        // The first parameter is the listener's data.
        (kind_of(info) == kind::FUNC_PROTO).then(|| count_of(info).saturating_sub(1))
    }
}

fn kind_of(info: u32) -> u32 {
    info >> 24 & 0x1f
}

fn count_of(info: u32) -> usize {
    (info & 0xffff) as usize
}

/// The bytes after the three words of a type. `None` for an unknown kind, after which nothing can be found.
fn extra_bytes(info: u32) -> Option<usize> {
    let count = count_of(info);
    Some(match kind_of(info) {
        kind::INT | kind::VAR | kind::DECL_TAG => 4,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => count * 12,
        kind::ENUM | kind::FUNC_PROTO => count * 8,
        // Pointer, forward, typedef, volatile, const, restrict, function, float, type tag.
        2 | 7 | 8 | 9 | 10 | 11 | 12 | 16 | 18 => 0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types in the file's form: a prototype of `parameters`, a pointer to it, and a typedef of that pointer.
    fn types(parameters: u32, name: &str) -> Vec<u8> {
        let mut words: Vec<u32> = vec![0, kind::FUNC_PROTO << 24 | parameters, 0];
        words.extend((0..parameters).flat_map(|_| [0, 0]));
        words.extend([0, kind::PTR << 24, 1]);
        words.extend([1, kind::TYPEDEF << 24, 2]);
        let types: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let strings = [b"\0", name.as_bytes(), b"\0"].concat();
        let mut bytes = Vec::new();
        bytes.extend(0xeb9fu16.to_ne_bytes());
        bytes.extend([1, 0]);
        for word in [
            24,
            0,
            types.len() as u32,
            types.len() as u32,
            strings.len() as u32,
        ] {
            bytes.extend(word.to_ne_bytes());
        }
        [bytes, types, strings].concat()
    }

    #[test]
    fn arguments_are_counted_without_that_of_the_listener() {
        for (parameters, arguments) in [(2, 1), (3, 2)] {
            let types = Types::parse(types(parameters, "btf_trace_block_rq_issue")).expect("types");
            assert_eq!(
                types.tracepoint_arguments("block_rq_issue"),
                Some(arguments)
            );
            assert_eq!(types.tracepoint_arguments("block_rq_iss"), None);
        }
    }

    #[test]
    fn damaged_type_information_causes_no_panic() {
        let whole = types(3, "btf_trace_block_rq_issue");
        for end in 0..whole.len() {
            if let Some(types) = Types::parse(whole[..end].to_vec()) {
                types.tracepoint_arguments("block_rq_issue");
            }
        }
        assert!(Types::parse(vec![0; 100]).is_none());
    }
}
