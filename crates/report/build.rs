//! Packs the pages of the findings: they are text, and a command shows one of them.

use std::path::Path;
use std::{env, fs};

const PAGES: &str = "../../docs/findings";

fn main() {
    println!("cargo::rerun-if-changed={PAGES}");
    let mut pages: Vec<(String, String)> = fs::read_dir(PAGES)
        .expect("the folder of the pages")
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter_map(|path| Some((name_of(&path)?, fs::read_to_string(&path).expect("a page"))))
        .collect();
    pages.sort();
    // Neither a name nor a page has a byte 0.
    let text: String = pages
        .iter()
        .map(|(name, page)| format!("{name}\0{page}\0"))
        .collect();
    let packed = zstd::encode_all(text.as_bytes(), 19).expect("memory for the compression");
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("pages.zst"), packed).expect("a file in OUT_DIR");
}

/// The name of the rule that a page is about; none for the index.
fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_suffix(".md")?;
    (name != "README").then(|| name.to_owned())
}
