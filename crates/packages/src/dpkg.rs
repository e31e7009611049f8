//! The list of dpkg: paragraphs of lines `Field: value`, one for each package.

use std::collections::BTreeMap;
use std::io::BufRead;

use crate::PACKAGES_MAX;

/// Versions of the installed packages by name. A package that may be there for several processors has the processor behind its name,
/// as dpkg prints it. Packages after the first [`PACKAGES_MAX`] are left out.
///
/// # Errors
/// If the list cannot be read. Any bytes are a list.
pub fn installed(list: &mut dyn BufRead) -> std::io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut package = Paragraph::default();
    for line in list.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        match line.split_once(": ") {
            _ if line.trim().is_empty() => std::mem::take(&mut package).note(&mut found),
            // A line that begins with a space continues a field.
            _ if line.starts_with([' ', '\t']) => {}
            Some(("Package", name)) => package.name = Some(name.trim().to_owned()),
            Some(("Version", version)) => package.version = Some(version.trim().to_owned()),
            Some(("Architecture", processor)) => package.processor = processor.trim().to_owned(),
            Some(("Multi-Arch", word)) => package.is_one_of_several = word.trim() == "same",
            // Wanted state, error flag, state.
            Some(("Status", words)) => {
                package.is_installed = words.split_whitespace().nth(2) == Some("installed");
            }
            _ => {}
        }
    }
    package.note(&mut found);
    Ok(found)
}

/// A package in the list.
#[derive(Default)]
struct Paragraph {
    name: Option<String>,
    version: Option<String>,
    processor: String,
    is_one_of_several: bool,
    is_installed: bool,
}

impl Paragraph {
    fn note(self, found: &mut BTreeMap<String, String>) {
        let (Some(mut name), Some(version), true) = (self.name, self.version, self.is_installed)
        else {
            return;
        };
        if self.is_one_of_several {
            name = format!("{name}:{}", self.processor);
        }
        if found.len() < PACKAGES_MAX {
            found.insert(name, version);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
Package: bash
Essential: yes
Status: install ok installed
Architecture: amd64
Multi-Arch: foreign
Version: 5.2.15-2+b2
Description: GNU Bourne Again SHell
 Version: none of the package
 Bash is a shell.

Package: libc6
Status: hold ok installed
Architecture: amd64
Multi-Arch: same
Version: 2.36-9+deb12u4

Package: vim
Status: deinstall ok config-files
Architecture: amd64
Version: 2:9.0.1378-2

Package: broken
Status: install ok installed

Package: dash
Status: install reinstreq half-installed
Version: 0.5.12-2

Package: zstd
Version: 1.5.4+dfsg2-5
Status: install ok installed";

    #[test]
    fn installed_packages_have_their_versions() {
        let expected = [
            ("bash", "5.2.15-2+b2"),
            ("libc6:amd64", "2.36-9+deb12u4"),
            ("zstd", "1.5.4+dfsg2-5"),
        ];
        let expected = expected.map(|(name, version)| (name.to_owned(), version.to_owned()));
        let found = installed(&mut LIST.as_bytes()).expect("a list");
        assert_eq!(found, BTreeMap::from(expected));
        // Any bytes are a list.
        for cut in 0..LIST.len() {
            installed(&mut &LIST.as_bytes()[..cut]).expect("a list");
        }
        installed(&mut &[0xff, 0xfe, b':', b' ', 0, b'\n'][..]).expect("a list");
    }
}
