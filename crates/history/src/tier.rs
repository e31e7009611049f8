//! Tiers, their windows, and spans of time. Times are ns since 1970-01-01 UTC; an end is excluded.

/// The widths of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// 5 minutes, in `recent.db`.
    FiveMinutes,
    /// 1 hour, in `history.db`.
    Hour,
    /// 1 day of UTC, in `history.db`.
    Day,
}

const SECOND_NS: i64 = 1_000_000_000;

impl Tier {
    /// All tiers, the finest first.
    pub const ALL: [Tier; 3] = [Tier::FiveMinutes, Tier::Hour, Tier::Day];

    /// Width of a window, ns.
    #[must_use]
    pub const fn width_ns(self) -> i64 {
        match self {
            Tier::FiveMinutes => 300 * SECOND_NS,
            Tier::Hour => 3600 * SECOND_NS,
            Tier::Day => 86_400 * SECOND_NS,
        }
    }

    /// The suffix of its tables, and its word in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Tier::FiveMinutes => "5m",
            Tier::Hour => "1h",
            Tier::Day => "1d",
        }
    }

    /// The tier of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Tier> {
        Tier::ALL.into_iter().find(|tier| tier.word() == word)
    }

    /// The next finer tier.
    #[must_use]
    pub const fn finer(self) -> Option<Tier> {
        match self {
            Tier::FiveMinutes => None,
            Tier::Hour => Some(Tier::FiveMinutes),
            Tier::Day => Some(Tier::Hour),
        }
    }

    /// The next coarser tier.
    #[must_use]
    pub const fn coarser(self) -> Option<Tier> {
        match self {
            Tier::FiveMinutes => Some(Tier::Hour),
            Tier::Hour => Some(Tier::Day),
            Tier::Day => None,
        }
    }

    /// Whether its records are in `recent.db`.
    #[must_use]
    pub const fn is_recent(self) -> bool {
        matches!(self, Tier::FiveMinutes)
    }
}

/// A window of a tier: window n begins at n times the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// Its tier.
    pub tier: Tier,
    /// Its number since 1970; never negative.
    pub number: i64,
}

impl Window {
    /// The window of a tier at a time. Times before 1970 belong to window 0.
    #[must_use]
    pub const fn at(tier: Tier, time_ns: i64) -> Window {
        let time_ns = if time_ns < 0 { 0 } else { time_ns };
        Window {
            tier,
            number: time_ns / tier.width_ns(),
        }
    }

    /// Its begin and end.
    #[must_use]
    pub const fn span(self) -> Span {
        let from_ns = self.number.saturating_mul(self.tier.width_ns());
        Span {
            from_ns,
            to_ns: from_ns.saturating_add(self.tier.width_ns()),
        }
    }

    /// The window of the next coarser tier that contains it.
    #[must_use]
    pub fn coarser(self) -> Option<Window> {
        let tier = self.tier.coarser()?;
        Some(Window::at(tier, self.span().from_ns))
    }
}

/// A time from a begin to an end, which is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Begin, ns since 1970.
    pub from_ns: i64,
    /// End, excluded.
    pub to_ns: i64,
}

impl Span {
    /// All time.
    pub const EVER: Span = Span {
        from_ns: 0,
        to_ns: i64::MAX,
    };

    /// Whether it contains no time.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.from_ns >= self.to_ns
    }

    /// Whether all of another span is in it.
    #[must_use]
    pub const fn contains(self, other: Span) -> bool {
        self.from_ns <= other.from_ns && other.to_ns <= self.to_ns
    }

    /// The time that two spans share.
    #[must_use]
    pub fn common(self, other: Span) -> Span {
        Span {
            from_ns: self.from_ns.max(other.from_ns),
            to_ns: self.to_ns.min(other.to_ns),
        }
    }

    /// The windows of a tier that share time with it.
    pub fn windows(self, tier: Tier) -> impl Iterator<Item = Window> {
        let first = Window::at(tier, self.from_ns).number;
        let end = if self.is_empty() {
            first
        } else {
            Window::at(tier, self.to_ns.saturating_sub(1)).number + 1
        };
        (first..end).map(move |number| Window { tier, number })
    }
}
