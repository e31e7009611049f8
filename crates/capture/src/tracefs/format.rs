//! The positions of an event's fields: the text of its `format` file.
//!
//! Nothing is known in advance but the names of fields: types, lengths and places differ from kernel to kernel.

use std::collections::HashMap;

/// Of one kind of event.
#[derive(Debug)]
pub(super) struct EventFormat {
    pub(super) id: u64,
    fields: HashMap<String, Field>,
}

/// The position of a field in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) at: usize,
    pub(super) bytes: usize,
}

impl EventFormat {
    /// `None` when the text has no number, or a field without a place.
    pub(super) fn parse(text: &str) -> Option<EventFormat> {
        let id = text
            .lines()
            .find_map(|line| line.strip_prefix("ID:"))?
            .trim()
            .parse()
            .ok()?;
        let fields = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("field:"))
            .map(field);
        Some(EventFormat {
            id,
            fields: fields.collect::<Option<_>>()?,
        })
    }

    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }
}

/// Name and place of `TYPE NAME[LENGTH];\toffset:N;\tsize:N;…`.
pub(super) fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.split(';').map(str::trim);
    let name = parts.next()?.rsplit(' ').next()?;
    let name = name.split('[').next()?.to_owned();
    let (mut at, mut bytes) = (None, None);
    for (key, value) in parts.filter_map(|part| part.split_once(':')) {
        match key {
            "offset" => at = Some(value.parse().ok()?),
            "size" => bytes = Some(value.parse().ok()?),
            _ => {}
        }
    }
    Some((
        name,
        Field {
            at: at?,
            bytes: bytes?,
        },
    ))
}

impl Field {
    /// The field of an event, `None` when the event is shorter.
    pub(super) fn bytes_in<'a>(&self, event: &'a [u8]) -> Option<&'a [u8]> {
        event.get(self.at..self.at.checked_add(self.bytes)?)
    }

    /// A number without sign, in the order of bytes of this machine.
    pub(super) fn number(&self, event: &[u8]) -> Option<u64> {
        let bytes = self.bytes_in(event)?;
        Some(match bytes.len() {
            1 => u64::from(bytes[0]),
            2 => u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            4 => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// The letters up to the first that is 0.
    pub(super) fn text<'a>(&self, event: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = self.bytes_in(event)?;
        Some(bytes.split(|&letter| letter == 0).next().unwrap_or(bytes))
    }

    /// The text of a field whose position is in the event: length and position in halves of a word.
    pub(super) fn text_elsewhere<'a>(&self, event: &'a [u8]) -> Option<&'a [u8]> {
        let told = self.number(event)?;
        Field {
            at: (told & 0xffff) as usize,
            bytes: (told >> 16 & 0xffff) as usize,
        }
        .text(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char rwbs[10];\toffset:8;\tsize:10;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:20;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"%d\", REC->rwbs\n";

    #[test]
    fn fields_are_found_by_name() {
        let format = EventFormat::parse(TEXT).expect("a format");
        assert_eq!(format.id, 2104);
        assert_eq!(format.field("common_pid"), Some(Field { at: 4, bytes: 4 }));
        assert_eq!(format.field("dev"), None);
        let mut event = [0; 27];
        event[4..8].copy_from_slice(&4711u32.to_ne_bytes());
        event[8..10].copy_from_slice(b"WS");
        event[20..24].copy_from_slice(&(3u32 << 16 | 24).to_ne_bytes());
        event[24..].copy_from_slice(b"2a\0");
        let of = |name: &str| format.field(name).expect("a field");
        assert_eq!(of("common_pid").number(&event), Some(4711));
        assert_eq!(of("rwbs").text(&event), Some(&b"WS"[..]));
        assert_eq!(of("cmd").text_elsewhere(&event), Some(&b"2a"[..]));
        assert_eq!(of("cmd").text_elsewhere(&event[..26]), None);
    }

    #[test]
    fn malformed_formats_are_rejected() {
        for text in [
            "",
            "ID: x",
            "ID: 1\n\tfield:int a;\tsize:4;",
            "ID: 1\n\tfield:int a;\toffset:-4;\tsize:4;",
        ] {
            assert!(EventFormat::parse(text).is_none(), "{text}");
        }
    }
}
