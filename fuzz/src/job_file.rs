//! Parameter files of Vdbench and fio. A file that is understood has to be runnable: bounded, with a target for every part.

use plumb_load::job_file::JobFileError;
use plumb_load::series::{Series, offsets};
use plumb_load::{fio, vdbench};

/// Reads the bytes as a parameter file of Vdbench, which may include another one, or itself.
pub fn vdbench(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let values = [
        ("lun".to_owned(), "/dev/x".to_owned()),
        ("n".to_owned(), "(1-4,d)".to_owned()),
    ];
    let mut include = |name: &str| {
        let included = if name == "more" {
            "sd=more,lun=$lun\n".into()
        } else {
            text.replace("include=", "sd=")
        };
        Ok((name.to_owned(), included))
    };
    follow(vdbench::parse("input", &text, &values, &mut include))
}

/// Reads the bytes as a job file of fio.
pub fn fio(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    follow(fio::parse("input", &text, &|name| {
        (name.len() < 5).then(|| "4k".to_owned())
    }))
}

fn follow(read: Result<Series, JobFileError>) -> bool {
    match &read {
        Ok(series) => check(series),
        Err(error) => {
            let words = error.to_string();
            assert!(
                words.contains("found") || words.contains("cannot be read"),
                "{words}"
            );
        }
    }
    read.is_ok()
}

fn check(series: &Series) {
    assert!((1..=10_000).contains(&series.runs.len()), "runs");
    for run in &series.runs {
        assert!(
            !run.parts.is_empty() && !run.interval.is_zero(),
            "a run does something, and tells it"
        );
        assert!(run.elapsed.is_some() || run.is_one_pass, "a run ends");
        assert!(
            run.rate.limit(Some(1e6)).is_none_or(|rate| rate > 0.0),
            "a limit is above 0"
        );
        for part in &run.parts {
            assert!(
                !part.lengths.is_empty() && part.depth > 0 && part.streams > 0,
                "a part does something"
            );
            let whole = part
                .lengths
                .iter()
                .all(|(bytes, weight)| bytes % 512 == 0 && *weight > 0.0);
            assert!(whole && part.length_max() > 0, "lengths are of sectors");
            assert!(
                part.read_percent <= 100 && part.random_percent <= 100,
                "percentages"
            );
            let (from, _) = part.area.on(1 << 40, part.length_max());
            assert_eq!(from % part.length_max(), 0, "an area begins with a block");
        }
    }
    let _ = offsets(series);
}
