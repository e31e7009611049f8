//! Pages of the kernel's ring buffer, from `trace_pipe_raw`: a time, the filled length of the page, and events, each
//! with the time since the one before it. `events/header_page` and `events/header_event` describe the layout.

use super::format::{Field, field};

/// Bits beside the length in the commit word, see <linux/ring_buffer.h>: events before this page were overwritten, and
/// their number follows the last one of the page.
const MISSED_EVENTS: u64 = 1 << 31;
const LENGTH: u64 = (1 << 27) - 1;
/// A time that is no difference lacks its upper bits.
const STAMP_BITS: u32 = 59;

/// The layout of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageLayout {
    timestamp: Field,
    commit: Field,
    data: Field,
    event: EventLayout,
}

/// The first word of an event.
#[derive(Clone, Copy, Debug)]
struct EventLayout {
    type_bits: u32,
    delta_bits: u32,
    padding: u32,
    time_extend: u32,
    time_stamp: u32,
    data_max: u32,
}

impl PageLayout {
    /// Of the text of `header_page` and `header_event`.
    pub(super) fn parse(page: &str, event: &str) -> Option<PageLayout> {
        let fields = page
            .lines()
            .filter_map(|line| line.trim().strip_prefix("field:"))
            .filter_map(field);
        let fields: Vec<(String, Field)> = fields.collect();
        let of = |wanted: &str| {
            fields
                .iter()
                .find(|(name, _)| name == wanted)
                .map(|(_, field)| *field)
        };
        let layout = PageLayout {
            timestamp: of("timestamp")?,
            commit: of("commit")?,
            data: of("data")?,
            event: EventLayout::parse(event)?,
        };
        (layout.page_bytes() <= 1 << 24).then_some(layout)
    }

    pub(super) fn page_bytes(&self) -> usize {
        self.data.at.saturating_add(self.data.bytes)
    }

    /// `None` when there is not even a head.
    pub(super) fn page<'a>(&self, bytes: &'a [u8]) -> Option<Page<'a>> {
        let (time_ns, commit) = (self.timestamp.number(bytes)?, self.commit.number(bytes)?);
        let data = bytes.get(self.data.at..)?;
        let len = ((commit & LENGTH) as usize).min(data.len());
        Some(Page {
            missed: commit & MISSED_EVENTS != 0,
            layout: self.event,
            time_ns,
            rest: &data[..len],
        })
    }
}

impl EventLayout {
    fn parse(text: &str) -> Option<EventLayout> {
        let number = |name: &str| {
            let line = text
                .lines()
                .find_map(|line| line.trim().strip_prefix(name))?;
            line.split(|letter: char| !letter.is_ascii_digit())
                .find(|digits| !digits.is_empty())?
                .parse()
                .ok()
        };
        let layout = EventLayout {
            type_bits: number("type_len")?,
            delta_bits: number("time_delta")?,
            padding: number("padding")?,
            time_extend: number("time_extend")?,
            time_stamp: number("time_stamp")?,
            data_max: number("data max")?,
        };
        (layout.type_bits > 0
            && layout.delta_bits > 0
            && layout.type_bits + layout.delta_bits == 32)
            .then_some(layout)
    }

    /// Bit fields are laid out from the end that the machine begins with.
    fn split(self, word: u32) -> (u32, u64) {
        let (type_len, delta) = if cfg!(target_endian = "big") {
            (word >> self.delta_bits, word & (u32::MAX >> self.type_bits))
        } else {
            (word & (u32::MAX >> self.delta_bits), word >> self.type_bits)
        };
        (type_len, u64::from(delta))
    }
}

/// The events of a page with their times. A truncated one ends it.
pub(super) struct Page<'a> {
    /// Whether events before this page were lost.
    pub(super) missed: bool,
    layout: EventLayout,
    time_ns: u64,
    rest: &'a [u8],
}

impl<'a> Page<'a> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.rest.split_first_chunk::<4>()?;
        self.rest = rest;
        Some(u32::from_ne_bytes(*word))
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<(u64, &'a [u8])> {
        loop {
            let word = self.word()?;
            let (type_len, delta) = self.layout.split(word);
            if type_len == self.layout.time_extend {
                let high = u64::from(self.word()?) << self.layout.delta_bits;
                self.time_ns = self.time_ns.wrapping_add(high | delta);
            } else if type_len == self.layout.time_stamp {
                let stamp = u64::from(self.word()?) << self.layout.delta_bits | delta;
                self.time_ns = self.time_ns >> STAMP_BITS << STAMP_BITS | stamp;
            } else if type_len == self.layout.padding {
                // Without a time it is the end of the page, else an event that was taken back.
                if delta == 0 {
                    self.rest = &[];
                    return None;
                }
                let len = (self.word()? as usize).checked_sub(4)?;
                self.take(len)?;
                self.time_ns = self.time_ns.wrapping_add(delta);
            } else {
                // A length that fits no type is a word of its own, which counts itself.
                let len = match type_len {
                    0 => (self.word()? as usize).checked_sub(4)?,
                    words if words <= self.layout.data_max => words as usize * 4,
                    _ => return None,
                };
                self.time_ns = self.time_ns.wrapping_add(delta);
                return Some((self.time_ns, self.take(len)?));
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
    const EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\
        \tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n\
        \ttime_stamp : type == 31\n\tdata max type_len  == 28\n";

    fn layout() -> PageLayout {
        PageLayout::parse(PAGE, EVENT).expect("a layout")
    }

    fn head(type_len: u32, delta: u32) -> [u8; 4] {
        (if cfg!(target_endian = "big") {
            type_len << 27 | delta
        } else {
            delta << 5 | type_len
        })
        .to_ne_bytes()
    }

    /// All kinds of entries, by the kernel's description in <linux/ring_buffer.h>.
    fn page(flags: u64) -> Vec<u8> {
        let mut data = Vec::new();
        data.extend(head(2, 5));
        data.extend(*b"abcdefgh");
        data.extend(head(30, 1));
        data.extend(2u32.to_ne_bytes());
        data.extend(head(0, 3));
        data.extend(12u32.to_ne_bytes());
        data.extend(*b"ijklmnop");
        data.extend(head(29, 1));
        data.extend(8u32.to_ne_bytes());
        data.extend(*b"gone");
        data.extend(head(31, 7));
        data.extend(1u32.to_ne_bytes());
        data.extend(head(1, 0));
        data.extend(*b"qrst");
        data.extend(head(29, 0));
        data.extend([0; 8]);
        let mut page = 1000u64.to_ne_bytes().to_vec();
        page.extend((data.len() as u64 | flags).to_ne_bytes());
        page.extend(data);
        page.resize(4096, 0xff);
        page
    }

    #[test]
    fn events_have_their_times() {
        let bytes = page(0);
        let page = layout().page(&bytes).expect("a page");
        assert!(!page.missed);
        let extended = 1005 + (2 << 27) + 1 + 3;
        let expected: [(u64, &[u8]); 3] = [
            (1005, b"abcdefgh"),
            (extended, b"ijklmnop"),
            ((1 << 27) + 7, b"qrst"),
        ];
        assert_eq!(page.collect::<Vec<_>>(), expected);
        assert_eq!(layout().page_bytes(), 4096);
    }

    #[test]
    fn losses_are_reported() {
        let bytes = page(1 << 31 | 1 << 30);
        let page = layout().page(&bytes).expect("a page");
        assert!(page.missed);
        assert_eq!(page.count(), 3);
    }

    /// Cut anywhere, or with any byte changed, it is no panic, and never more than the page holds.
    #[test]
    fn malformed_pages() {
        let whole = page(0);
        for end in 0..=100 {
            let events = layout().page(&whole[..end]).map(Iterator::count);
            assert_eq!(events.is_some(), end >= 16, "{end}");
            assert!(events.unwrap_or(0) <= 3);
        }
        assert_eq!(
            layout().page(&whole[..16 + 12]).map(Iterator::count),
            Some(1)
        );
        for at in 0..100 {
            for byte in [0, 0x1d, 0x1e, 0x1f, 0x80, 0xff] {
                let mut page = whole.clone();
                page[at] = byte;
                let bytes = layout()
                    .page(&page)
                    .map_or(0, |page| page.map(|(_, event)| event.len()).sum());
                assert!(bytes < 4096, "{at} {byte}");
            }
        }
    }

    #[test]
    fn malformed_layouts_are_rejected() {
        assert!(PageLayout::parse("", EVENT).is_none());
        assert!(PageLayout::parse(PAGE, "").is_none());
        assert!(PageLayout::parse(PAGE, &EVENT.replace("27 bits", "28 bits")).is_none());
        assert!(PageLayout::parse(&PAGE.replace("4080", "99999999999"), EVENT).is_none());
    }
}
