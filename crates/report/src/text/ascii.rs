//! Text for terminals that show ASCII alone. Numbers and words stay as they are; signs become the ones that people type.

/// The same text in ASCII. Lines keep their lengths, except those with a sign that needs several letters.
#[must_use]
pub fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            letter if letter.is_ascii() => plain.push(letter),
            '─' | '━' | '–' | '—' | '−' | '‐' => plain.push('-'),
            '│' | '├' | '┤' | '┃' => plain.push('|'),
            '└' | '┌' | '┐' | '┘' | '┬' | '┴' | '┼' => plain.push('+'),
            '█' | '▉' | '▊' | '▋' | '▓' => plain.push('#'),
            '▌' | '▒' | '▆' | '▇' => plain.push('*'),
            '▁' | '▂' | '▃' | '░' | '·' => plain.push('.'),
            '▄' | '▅' => plain.push('='),
            'µ' | 'μ' => plain.push('u'),
            '×' => plain.push('x'),
            '÷' => plain.push('/'),
            '“' | '”' => plain.push('"'),
            '‘' | '’' => plain.push('\''),
            '↑' => plain.push('^'),
            '↓' => plain.push('v'),
            '←' => plain.push('<'),
            '→' | '▸' => plain.push('>'),
            '\u{a0}' => plain.push(' '),
            '…' => plain.push_str("..."),
            '≤' => plain.push_str("<="),
            '≥' => plain.push_str(">="),
            '±' => plain.push_str("+-"),
            'ⁿ' => plain.push_str("^n"),
            _ => plain.push('?'),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::ascii;

    #[test]
    fn signs_become_letters() {
        assert_eq!(
            ascii("└─ vda1 │ ≤ 64 µs ███ 16 × 4 KiB …"),
            "+- vda1 | <= 64 us ### 16 x 4 KiB ..."
        );
        assert_eq!(ascii("dose 中"), "dose ?");
        assert!(ascii("±1 s, 3 – 4, “a”").is_ascii());
    }
}
