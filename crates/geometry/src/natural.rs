//! The order in which people list names with numbers: `sda2` before `sda10`.

/// Orders `sda2` before `sda10`.
#[must_use]
pub fn natural(a: &str, b: &str) -> std::cmp::Ordering {
    let (mut left, mut right) = (a, b);
    while !left.is_empty() && !right.is_empty() {
        let (head, rest) = piece(left);
        let (other, other_rest) = piece(right);
        let numbers = head.parse::<u128>().ok().zip(other.parse::<u128>().ok());
        let order = numbers.map_or_else(|| head.cmp(other), |(head, other)| head.cmp(&other));
        if order.is_ne() {
            return order;
        }
        (left, right) = (rest, other_rest);
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// Splits a name behind its leading digits, or behind the characters before its first digit.
fn piece(name: &str) -> (&str, &str) {
    let is_number = name.starts_with(|c: char| c.is_ascii_digit());
    name.split_at(
        name.find(|c: char| c.is_ascii_digit() != is_number)
            .unwrap_or(name.len()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_as_people_do() {
        let mut names = [
            "d10",
            "sda10",
            "d9",
            "sda2",
            "sda",
            "d009",
            "c1t10d0s0",
            "c1t9d0s0",
        ];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            [
                "c1t9d0s0",
                "c1t10d0s0",
                "d009",
                "d9",
                "d10",
                "sda",
                "sda2",
                "sda10"
            ]
        );
    }
}
