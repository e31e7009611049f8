//! Runs of parameter files as the engine takes them.

use std::path::Path;
use std::time::Duration;

use plumb_geometry::Bytes;
use plumb_load::series::{Needed, Series, Targets, plan};
use plumb_load::{Arrivals, LoadPlan, Pace, Spread, Starts, Target, fio, vdbench};
use plumb_testkit::temp_dir;

/// Runs one check on a file of 1 MiB that the text names as DISK.
fn on_disk(parse: impl Fn(&str) -> Series, text: &str, check: impl Fn(&Series, &Targets)) {
    let room = temp_dir("series-plan");
    let disk = room.path().join("disk");
    std::fs::write(&disk, vec![0; 1 << 20]).expect("a file");
    let series = parse(&text.replace("DISK", disk.to_str().expect("a plain name")));
    let mut targets = Targets::default();
    for Needed { path, .. } in Targets::needed(&series) {
        let target = Target::open(&path).expect("the file");
        targets.insert(path, target, None);
    }
    check(&series, &targets);
}

fn of_vdbench(text: &str) -> Series {
    let mut include = |name: &str| panic!("{name} is included nowhere");
    vdbench::parse("p", text, &[], &mut include).expect("it is understood")
}

fn of_fio(text: &str) -> Series {
    fio::parse("j", text, &|_| None).expect("it is understood")
}

#[track_caller]
fn planned<'a>(series: &Series, targets: &'a Targets) -> LoadPlan<'a> {
    plan(&series.runs[0], targets, series.runs[0].rate.limit(None), 5).expect("it fits")
}

#[test]
fn a_run_of_vdbench() {
    let text = "sd=s,lun=DISK,th=6,of=1024,hi=64k,ra=(50,100)\nwd=w,sd=s,xf=(4k,25,8k,75),rdp=100,see=40,rh=30\n\
                rd=r,wd=w,iorate=600,el=10,in=2,wa=4,dist=d";
    on_disk(of_vdbench, text, |series, targets| {
        let plan = planned(series, targets);
        let [job] = &plan.jobs[..] else {
            panic!("one job")
        };
        assert_eq!(
            (job.threads, job.depth, job.batch),
            (1, 6, 1),
            "threads are I/O in flight"
        );
        assert_eq!(
            job.pace,
            Pace::Open {
                per_second: 600.0,
                arrivals: Arrivals::Even
            }
        );
        let workload = &job.workload;
        let [(4096, one), (8192, three)] = workload.lengths.weighted()[..] else {
            panic!("two lengths")
        };
        assert_eq!(three, 3 * one);
        assert_eq!(
            workload.starts,
            Starts::Seeks {
                percent: 40,
                spread: Spread::Uniform
            }
        );
        assert_eq!((workload.shift_bytes, workload.align_bytes), (1024, None));
        assert_eq!(workload.range, Some((Bytes(512 << 10), Bytes(1 << 20))));
        let hits = workload.hits.expect("30 of 100 reads");
        assert_eq!(
            (hits.area_bytes, hits.read_percent, hits.write_percent),
            (64 << 10, 30, 0)
        );
        let seconds = Duration::from_secs;
        assert_eq!(
            (plan.duration, plan.interval, plan.warmup),
            (Some(seconds(10)), seconds(2), seconds(4))
        );
        assert_eq!(
            (plan.seed, job.ios_max),
            (5, None),
            "Vdbench draws other I/O each time"
        );
    });
}

#[test]
fn clones_of_a_sequential_job_have_places_of_their_own() {
    let text =
        "[a]\nfilename=DISK\nnumjobs=3\niodepth=2\nioengine=libaio\nsize=512k\nbs=8k\nrate_iops=10";
    on_disk(of_fio, text, |series, targets| {
        let plan = planned(series, targets);
        assert_eq!(plan.jobs.len(), 3);
        for job in &plan.jobs {
            assert_eq!(
                (job.threads, job.depth, &job.workload.starts),
                (
                    1,
                    2,
                    &Starts::Sequential {
                        from_anywhere: false
                    }
                )
            );
            assert_eq!(job.ios_max, Some(64));
            assert_eq!(job.pace, Pace::Closed { per_second: 10.0 });
        }
        assert_eq!((plan.duration, plan.seed), (None, 1));
    });
    let random = text.replace("size=512k", "rw=randread\nruntime=1\ntime_based");
    on_disk(of_fio, &random, |series, targets| {
        let plan = planned(series, targets);
        let [job] = &plan.jobs[..] else {
            panic!("one job with threads")
        };
        assert_eq!(
            (job.threads, job.pace),
            (3, Pace::Closed { per_second: 30.0 })
        );
    });
}

#[test]
fn invalid_series_are_reported_with_their_line() {
    let refused = |parse: fn(&str) -> Series, text: &str, expected: &str| {
        on_disk(parse, text, |series, targets| {
            let run = &series.runs[0];
            let error = plan(run, targets, None, 1)
                .expect_err("it does not fit")
                .to_string();
            assert!(error.contains(expected), "{error}");
        });
    };
    refused(
        of_vdbench,
        "sd=s,lun=DISK\nwd=w,sd=s,xf=2m\nrd=r,wd=w,iorate=max",
        "p:1: ",
    );
    refused(
        of_vdbench,
        "sd=s,lun=DISK\nwd=w,sd=s,xf=2m\nrd=r,wd=w,iorate=max",
        "which is too small",
    );
    let beyond = "sd=s,lun=DISK,ra=(4k,2m)\nwd=w,sd=s\nrd=r,wd=w,iorate=max";
    refused(
        of_vdbench,
        beyond,
        "found a range up to byte 2,097,152, expected an end within its 1,048,576 bytes",
    );
    let hits = "sd=s,lun=DISK\nwd=w,sd=s,rhpct=10\nrd=r,wd=w,iorate=max";
    refused(of_vdbench, hits, "p:1: ");
    refused(
        of_vdbench,
        hits,
        "in the hit area of 1,048,576 bytes and behind it",
    );
}

/// Each ends at its own end; an offset leaves room for one I/O less.
#[test]
fn passes_end_where_their_parts_do() {
    let ios = |parse: fn(&str) -> Series, text: &str, expected: &[u64]| {
        on_disk(parse, text, |series, targets| {
            let plan = planned(series, targets);
            let found: Vec<Option<u64>> = plan.jobs.iter().map(|job| job.ios_max).collect();
            assert_eq!(
                found,
                expected.iter().map(|ios| Some(*ios)).collect::<Vec<_>>(),
                "{text}"
            );
        });
    };
    ios(
        of_fio,
        "[global]\nfilename=DISK\n[a]\nsize=8k\n[b]\nsize=16k",
        &[2, 4],
    );
    let rest = "wd=w,sd=*,see=eof\nrd=r,wd=w,iorate=max";
    ios(
        of_vdbench,
        &format!("sd=s,lun=DISK,size=64k\nsd=t,lun=DISK\n{rest}"),
        &[16, 256],
    );
    ios(
        of_vdbench,
        &format!("sd=s,lun=DISK,size=64k,offset=512\n{rest}"),
        &[15],
    );
    ios(
        of_vdbench,
        &format!("sd=s,lun=DISK,range=(64k,128k)\n{rest}"),
        &[16],
    );
}

#[test]
fn targets_are_opened_once_and_for_writing_where_anybody_writes() {
    let text = "sd=a,lun=/x\nsd=b,lun=/x\nsd=c,lun=/y\nwd=r,sd=(a,c)\nwd=w,sd=b,rdp=0\nrd=1,wd=r,iorate=max\n\
                rd=2,wd=w,iorate=max";
    let needed = Targets::needed(&of_vdbench(text));
    let seen: Vec<(&Path, String, bool)> = needed
        .iter()
        .map(|one| (&*one.path, one.place.to_string(), one.is_written))
        .collect();
    let expected = [
        (Path::new("/x"), "p:2".to_owned(), true),
        (Path::new("/y"), "p:3".to_owned(), false),
    ];
    assert_eq!(seen, expected);
}
