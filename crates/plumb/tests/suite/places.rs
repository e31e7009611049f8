//! Destinations of files: apart from all inputs, from devices and from standard output.

use std::path::Path;
use std::process::Stdio;

use crate::common::{Folder, analyze, command, copy_program, msr, pages, plumb, recorded};
use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;

/// A file with this content, read again.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    std::fs::read(path).expect("it is there") == bytes
}

#[test]
fn nothing_that_is_read_is_written_over() {
    let folder = Folder::new("outputs");
    let text = msr(pages(1000, 512, 8192));
    let file = folder.file("off.csv", &text);
    let (link, hard) = (folder.path("link"), folder.path("hard"));
    std::os::unix::fs::symlink("off.csv", &link).expect("a link");
    std::fs::hard_link(&file, &hard).expect("a link");
    let mut messages = Vec::new();
    for other in [&file, &link, &hard] {
        for flag in ["--save", "--html"] {
            let ran = analyze(&file, &format!("{flag} {}", other.display()));
            messages.push(ran.ends(2).complaint());
            assert_eq!(ran.out, "");
        }
        messages.push(
            plumb([
                "convert".as_ref(),
                file.as_os_str(),
                other.as_os_str(),
                "--to=parquet".as_ref(),
            ])
            .ends(2)
            .complaint(),
        );
    }
    // On standard input as well.
    let input = std::fs::File::open(&file).expect("opens");
    let saved = command()
        .args(["analyze", "-", "--save"])
        .arg(&file)
        .stdin(input)
        .limited_output();
    assert_eq!(saved.status.code(), Some(2));
    assert!(holds(&file, text.as_bytes()) && link.is_symlink());
    let new = folder.path("new");
    let twice = format!(
        "--save {} --html {}/./new",
        new.display(),
        folder.path("").display()
    );
    messages.push(analyze(&file, &twice).ends(2).complaint());
    // Nor through a link whose end is not there yet.
    let loose = folder.path("loose");
    std::os::unix::fs::symlink("new", &loose).expect("a link");
    let twice = format!("--save {} --html {}", new.display(), loose.display());
    messages.push(analyze(&file, &twice).ends(2).complaint());
    assert!(!new.exists());
    messages.push(analyze(&file, "--save -").ends(2).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// The program's own standard output: a link in a folder stands for `/dev/stdout`.
#[test]
fn standard_output_is_no_place_for_a_profile() {
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    let stdout = folder.path("stdout");
    std::os::unix::fs::symlink("/proc/self/fd/1", &stdout).expect("a link");
    let out = folder.path("out");
    let run = |args: &[&std::ffi::OsStr]| {
        let to = std::fs::File::create(&out).expect("creates");
        command()
            .args(args)
            .stdout(to)
            .stderr(Stdio::null())
            .limited_status()
            .code()
    };
    for flag in ["--save", "--html"] {
        let code = run(&[
            "analyze".as_ref(),
            file.as_os_str(),
            flag.as_ref(),
            stdout.as_os_str(),
        ]);
        assert_eq!(code, Some(2), "{flag}");
        assert!(stdout.is_symlink() && holds(&out, b""));
    }
    let expected = folder.path("expected.iolog");
    plumb(["convert".as_ref(), file.as_os_str(), expected.as_os_str()]).ends(0);
    for name in ["-".as_ref(), "/dev/stdout".as_ref()] {
        let code = run(&[
            "convert".as_ref(),
            file.as_os_str(),
            name,
            "--to=fio-iolog".as_ref(),
        ]);
        assert_eq!(code, Some(0), "{}", name.display());
        assert!(
            holds(&out, &std::fs::read(&expected).expect("written")),
            "{}",
            name.display()
        );
    }
}

#[test]
fn a_link_stays_one_and_permissions_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    let (target, link) = (folder.file("target", "old"), folder.path("link"));
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o600))
        .expect("sets permissions");
    std::os::unix::fs::symlink("target", &link).expect("a link");
    for flag in ["--save", "--html"] {
        std::fs::write(&target, "old").expect("writes");
        analyze(&file, &format!("{flag} {}", link.display())).ends(1);
        assert!(link.is_symlink() && !holds(&target, b"old"), "{flag}");
        assert_eq!(
            std::fs::metadata(&target)
                .expect("there")
                .permissions()
                .mode()
                & 0o7777,
            0o600,
            "{flag}"
        );
    }
}

#[test]
fn a_trace_is_not_written_over_a_disk() {
    require!(Root, Loop);
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    let image = folder.path("image");
    std::fs::File::create(&image)
        .and_then(|image| image.set_len(1 << 20))
        .expect("an image");
    let disk = plumb_testkit::loop_device::LoopDevice::attach(&image, &[]);
    insta::assert_snapshot!(
        plumb([
            "convert".as_ref(),
            file.as_os_str(),
            disk.path().as_os_str(),
            "--to=parquet".as_ref(),
        ])
        .ends(2)
        .complaint()
    );
    drop(disk);
    assert!(
        std::fs::read(&image)
            .expect("reads")
            .iter()
            .all(|&byte| byte == 0)
    );
}

/// Better known before hours of reading than after them; and the results are printed all the same.
#[test]
fn places_that_take_no_file() {
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    let mut messages = Vec::new();
    for flag in ["--save", "--html"] {
        let ran = analyze(&file, &format!("{flag} {}/no/x", folder.path("").display()));
        messages.push(ran.ends(5).complaint());
        assert_eq!(ran.out, "");
    }
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// The answer is printed even if the file could not be written at the end.
#[test]
fn a_file_that_does_not_fit() {
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    for flag in ["--save", "--html"] {
        let to = folder.path("to");
        let script = "trap '' XFSZ; ulimit -f 0; exec \"$@\"";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_plumb"), "analyze"]);
        let done = command.arg(&file).arg(flag).arg(&to).limited_output();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(5), "{flag}: {said}");
        assert!(
            said.contains(&format!("cannot write {}", to.display())),
            "{flag}: {said}"
        );
        assert!(
            String::from_utf8_lossy(&done.stdout).contains("misaligned-io"),
            "{flag}"
        );
        let left = std::fs::read_dir(folder.path(""))
            .expect("a folder")
            .count();
        assert_eq!(left, 1, "{flag}: nothing in part is left");
    }
}

/// A user without the right to write gets a message about writing.
#[test]
fn refused_writes_name_the_missing_permission() {
    require!(Root, Tool("setpriv"));
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    let program = folder.path("plumb");
    copy_program(&program);
    for path in [folder.path(""), file.clone(), program.clone()] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
            .expect("sets permissions");
    }
    let mut messages = Vec::new();
    for args in [
        ["analyze", "--save", "x"],
        ["convert", "x.parquet", "--op=read"],
    ] {
        let mut command = std::process::Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program);
        command
            .current_dir(folder.path(""))
            .arg(args[0])
            .arg("off.csv")
            .args(&args[1..]);
        let done = command.limited_output();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(
            (done.status.code(), done.stdout.len()),
            (Some(4), 0),
            "{said}"
        );
        messages.push(recorded(&said));
    }
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// Profiles and pages take the place of files alone. The link stands for a device, so that none is at stake.
#[test]
fn no_device_is_overwritten() {
    let folder = Folder::new("outputs");
    let file = folder.file("off.csv", msr(pages(1000, 512, 8192)));
    let link = folder.path("device");
    std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
    let mut messages = Vec::new();
    for flag in ["--save", "--html"] {
        messages.push(
            analyze(&file, &format!("{flag} {}", link.display()))
                .ends(2)
                .complaint(),
        );
        assert!(link.is_symlink(), "{flag}");
        let page = folder.file("page", "old");
        analyze(&file, &format!("{flag} {}", page.display())).ends(1);
        assert_ne!(
            std::fs::read(&page).expect("the page"),
            b"old",
            "{flag}: a file is made anew"
        );
    }
    messages.push(
        plumb(["watch".as_ref(), "--save".as_ref(), link.as_os_str()])
            .ends(2)
            .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
    assert!(link.is_symlink());
}
