//! The common parts of the page: the frame of the document, figures, legends, tables, and the words for unknown values.

use super::markup::Markup;

/// Lets a browser use the page's own style and load, run or send nothing, even if markup from outside came into the page.
/// The hash is that of `style.css`; a test computes it with `sha256sum` and prints the new one after a change.
const POLICY: &str = "default-src 'none'; style-src 'sha256-EcyusrAa4vJQejH94a9t0/huiRp36qEgYEmLJvw0KaM='; base-uri 'none'; form-action 'none'";

/// The document around `body`: all in one file, nothing fetched, no script.
#[must_use]
pub fn document(title: &str, body: impl FnOnce(&mut Markup)) -> String {
    let mut m = Markup::default();
    m.raw("<!DOCTYPE html>\n");
    m.el("html", &[("lang", "en")], |m| {
        m.el("head", &[], |m| {
            m.el("meta", &[("charset", "utf-8")], |_| {});
            m.el(
                "meta",
                &[
                    ("http-equiv", "Content-Security-Policy"),
                    ("content", POLICY),
                ],
                |_| {},
            );
            m.el(
                "meta",
                &[
                    ("name", "viewport"),
                    ("content", "width=device-width, initial-scale=1"),
                ],
                |_| {},
            );
            m.leaf("title", &[], title);
            m.el("style", &[], |m| m.raw(include_str!("style.css")));
        });
        m.raw("\n");
        m.el("body", &[], |m| m.el("main", &[], body));
    });
    m.raw("\n");
    m.into_string()
}

/// A picture with its title and a line that says how to read it.
pub fn figure(m: &mut Markup, title: &str, how: &str, picture: impl FnOnce(&mut Markup)) {
    m.raw("\n");
    m.el("figure", &[], |m| {
        m.el("figcaption", &[], |m| {
            m.leaf("b", &[], title);
            m.leaf("span", &[], how);
        });
        picture(m);
    });
}

/// The text in place of a picture that cannot be drawn.
pub fn not_known(m: &mut Markup, title: &str, why: &str) {
    figure(m, title, "", |m| {
        m.leaf(
            "div",
            &[("class", "unknown-box")],
            &format!("Not known: {why}."),
        )
    });
}

/// Names of the fills and lines of a picture: (class, words).
pub fn legend<'a>(m: &mut Markup, entries: impl IntoIterator<Item = (&'a str, String)>) {
    m.class("ul", "legend", |m| {
        for (class, words) in entries {
            m.el("li", &[], |m| {
                m.el(
                    "svg",
                    &[("viewBox", "0 0 12 12"), ("aria-hidden", "true")],
                    |m| {
                        if class.starts_with('l') || class == "chance" || class == "mark" {
                            m.shape("path", &[("class", class), ("d", "M0 6H12")]);
                        } else {
                            m.shape(
                                "rect",
                                &[("class", class), ("width", "12"), ("height", "12")],
                            );
                        }
                    },
                );
                m.text(&words);
            });
        }
    });
}

/// A table: columns whose name begins with `<` hold text. Draws nothing without rows.
pub fn table(m: &mut Markup, caption: &str, columns: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    m.raw("\n");
    m.class("div", "scroll", |m| {
        m.el("table", &[], |m| {
            if !caption.is_empty() {
                // A caption longer than its table would wrap within the width of that.
                let class = if caption.chars().count() <= 72 {
                    "short"
                } else {
                    ""
                };
                m.leaf("caption", &[("class", class)], caption);
            }
            m.el("thead", &[], |m| {
                m.el("tr", &[], |m| {
                    for name in columns {
                        cell(m, "th", name, name.trim_start_matches('<'));
                    }
                });
            });
            m.el("tbody", &[], |m| {
                for row in rows {
                    m.el("tr", &[], |m| {
                        row.iter()
                            .zip(columns)
                            .for_each(|(words, name)| cell(m, "td", name, words))
                    });
                }
            });
        });
    });
}

fn cell(m: &mut Markup, tag: &'static str, column: &str, words: &str) {
    let attributes: &[_] = if column.starts_with('<') {
        &[("class", "text")]
    } else {
        &[]
    };
    m.leaf(tag, attributes, words);
}

/// A dash for an absent value.
pub const NONE: &str = "–";

/// The text of `words` for a value, or a dash.
#[must_use]
pub fn or_dash<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), words)
}

/// `n of m` as a share; a dash of nothing.
#[must_use]
pub fn share_of(part: u64, whole: u64) -> String {
    if whole == 0 {
        NONE.to_owned()
    } else {
        crate::format::percent(part as f64 / whole as f64)
    }
}
