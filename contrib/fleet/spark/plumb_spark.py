#!/usr/bin/env python3
"""Profiles the recordings of a fleet on Spark 3.5 or later, or on Sail, into one fleet file.

    spark-submit --master spark://HOST:7077 --files plumb-x86_64,plumb-aarch64 plumb_spark.py -o all.fleet /srv/recordings
    python3 plumb_spark.py --remote sc://HOST:50051 --plumb '/srv/plumb-{machine}' -o all.fleet /srv/recordings

A task runs `plumb fleet profile --shard I/N`, which reads SOURCE at the same path on each host. `plumb fleet merge` then joins the shards of each
group, and last the groups. A file passes between tasks as rows with pieces of it. Equal inputs give equal bytes: so a task may run twice, and
retries and speculation are those of the engine. The submitting host needs no plumb; it writes FILE, which gets its name when it is whole.

Messages go to the standard error, which spark-submit passes on to its standard output.

Exit status: 0 written, 2 usage, 3 written and inputs were read only in part, 5 failed.
"""

import argparse
import itertools
import math
import os
import re
import subprocess
import sys
import tempfile

# Rows stay small, whatever the size of a file: a batch of Arrow and a row of Spark have less than 2 GiB.
PIECE_BYTES = 1 << 20
# Spark counts the rows of a batch and not their bytes. Its default of 10,000 rows would need 10 GB.
ROWS_OF_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
ROWS_MAX = "16"
# The result arrives in that many answers, because `spark.driver.maxResultSize` bounds each of them.
ANSWERS = 16
SHARDS_MAX = 1_000_000
# Messages of tasks that are passed on. More of them would hide the rest.
NOTES_MAX = 1000
SCHEMA = "part long, piece long, content binary, status int, notes string"
# The lines around a reason, because an engine puts its own traces before and behind it.
FAILED, END = "plumb-spark: begin of the reason: ", "plumb-spark: end of the reason"


def scratch_folder():
    """The engine's folder for temporary files: YARN, a standalone executor and a pod name theirs. `None` is the default of Python."""
    for name in ("LOCAL_DIRS", "SPARK_EXECUTOR_DIRS", "SPARK_LOCAL_DIRS"):
        for folder in re.split("[,:]", os.environ.get(name, "")):
            if os.path.isdir(folder) and os.access(folder, os.W_OK):
                return folder
    return None


def failure(reason):
    return RuntimeError(f"{FAILED}{os.uname().nodename}: {reason}\n{END}")


def program(plumb):
    """The program for this host's processor: `plumb` if it is given, else a file of the job, else one in PATH."""
    machine = os.uname().machine
    if plumb:
        return plumb.replace("{machine}", machine)
    from pyspark import SparkFiles

    shipped = SparkFiles.get(f"plumb-{machine}")
    return shipped if os.path.exists(shipped) else "plumb"


def run_plumb(plumb, words):
    """Runs `plumb fleet`. Returns its status (0, or 3 for inputs that were read only in part) and its messages."""
    name = program(plumb)
    try:
        done = subprocess.run([name, "fleet", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except OSError as error:
        machine = os.uname().machine
        raise failure(f"cannot run {name}: {error.strerror}; pass a program for {machine}: --files plumb-{machine}, or --plumb PATH") from None
    lines = done.stderr.decode(errors="replace").splitlines()
    if done.returncode not in (0, 3):
        raise failure("\n".join([f"plumb fleet {words[0]} ended with status {done.returncode}", *lines[-20:]]))
    # A count is that of a shard, and the report has the one of all.
    return done.returncode, {line for line in lines if not re.fullmatch("plumb: [0-9]+ inputs? could not be read", line)}


def rows_of(path, part, status, notes):
    """The pieces of a file as batches of one row; the first one has the notes."""
    import pyarrow

    types = [("part", pyarrow.int64()), ("piece", pyarrow.int64()), ("content", pyarrow.binary())]
    schema = pyarrow.schema(types + [("status", pyarrow.int32()), ("notes", pyarrow.string())])
    text = "\n".join(sorted(notes)[:NOTES_MAX])
    with open(path, "rb") as file:
        for piece in itertools.count():
            content = file.read(PIECE_BYTES)
            if not content:
                return
            row = {"part": part, "piece": piece, "content": content, "status": status, "notes": "" if piece else text}
            yield pyarrow.RecordBatch.from_pylist([row], schema=schema)


def profiler(plumb, sources, options, shards):
    """The work of a task of the first step: the file of each of its shards."""

    def profile(batches):
        for batch in batches:
            for shard in batch.column(0).to_pylist():
                with tempfile.TemporaryDirectory(prefix="plumb-spark-", dir=scratch_folder()) as folder:
                    out = os.path.join(folder, "shard")
                    words = ["profile", "--shard", f"{shard}/{shards}", *options, "-o", out, "--", *sources]
                    yield from rows_of(out, shard, *run_plumb(plumb, words))

    return profile


def merger(plumb):
    """The work of a task of the later steps: the merge of all files whose pieces it gets."""

    def merge(batches):
        with tempfile.TemporaryDirectory(prefix="plumb-spark-", dir=scratch_folder()) as folder:
            inputs, out = os.path.join(folder, "parts"), os.path.join(folder, "merged")
            os.mkdir(inputs)
            parts, notes = set(), set()
            for batch in batches:
                for row in batch.to_pylist():
                    parts.add(row["part"])
                    notes.update(row["notes"].splitlines())
                    # Pieces come in any order.
                    write_piece(os.path.join(inputs, str(row["part"])), row)
            if parts:
                status, _ = run_plumb(plumb, ["merge", "-o", out, "--", inputs])
                yield from rows_of(out, min(parts), status, notes)

    return merge


def write_piece(path, row):
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o666)
    with open(descriptor, "wb") as file:
        file.seek(row["piece"] * PIECE_BYTES)
        file.write(row["content"])


def profile_fleet(spark, sources, out, shards=64, grids=(), skip_bad=False, plumb=None):
    """Profiles `sources` with a session of Spark into the file `out`.

    `sources` are paths that each host has, `grids` texts such as `8k@512`, `plumb` the path of the program on each host with `{machine}` for the
    name of its processor (`uname -m`). Without `plumb` it is a file `plumb-x86_64` or `plumb-aarch64` of the job, else a program in PATH.
    Returns the status of plumb (0, or 3 if inputs were read only in part) and its messages. Raises an exception of the engine, or `OSError`.
    """
    if __name__ != "__main__":
        # Workers do not have this module.
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(sys.modules[__name__])
    options = [word for grid in grids for word in ("--grid", grid)] + ["--skip-bad"] * skip_bad
    merge, groups = merger(plumb), math.isqrt(shards)
    work = profiler(plumb, [os.path.abspath(path) for path in sources], options, shards)
    profiled = spark.range(0, shards, 1, shards).mapInArrow(work, SCHEMA)
    grouped = profiled.repartition(groups, profiled["part"] % groups).mapInArrow(merge, SCHEMA)
    whole = grouped.repartition(1).mapInArrow(merge, SCHEMA).repartition(ANSWERS, "piece")
    before = spark.conf.get(ROWS_OF_BATCH, "10000")
    spark.conf.set(ROWS_OF_BATCH, ROWS_MAX)
    try:
        return receive(whole.toLocalIterator(), os.path.abspath(out))
    finally:
        spark.conf.set(ROWS_OF_BATCH, before)


def receive(rows, out):
    """Writes the pieces of a file. It has its name only when it is whole, and on the disk."""
    unfinished = os.path.join(os.path.dirname(out), f".{os.path.basename(out)}.{os.getpid()}")
    pieces, status, notes = set(), 0, []
    try:
        for row in rows:
            pieces.add(row["piece"])
            status = row["status"]
            notes += row["notes"].splitlines()
            write_piece(unfinished, row)
        if not pieces or pieces != set(range(len(pieces))):
            raise failure(f"found pieces {sorted(pieces)[:100]} of the result, expected all from 0")
        descriptor = os.open(unfinished, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        os.rename(unfinished, out)
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
    return status, notes


def shards_of(text):
    if text.isdecimal() and 1 <= int(text) <= SHARDS_MAX:
        return int(text)
    raise argparse.ArgumentTypeError(f"found `{text}`, expected a number from 1 to {SHARDS_MAX}")


def parsed(words):
    parser = argparse.ArgumentParser(prog="plumb-spark", description="Profile the recordings of a fleet on Spark or Sail into one fleet file")
    parser.add_argument("sources", metavar="SOURCE", nargs="+", help="folder or file with recordings, at the same path on each host")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="fleet file, on the submitting host")
    parser.add_argument("--shards", metavar="N", type=shards_of, default=64, help="tasks of the first step (default: 64); the result is the same")
    parser.add_argument("--grid", metavar="G[@O]", action="append", default=[], help="grid to judge by; may be given several times")
    parser.add_argument("--skip-bad", action="store_true", help="name and count the files that cannot be read, and go on without them")
    parser.add_argument("--plumb", metavar="PATH", help="program on each host, with {machine} for `uname -m` (default: a file of the job, or PATH)")
    parser.add_argument("--remote", metavar="sc://HOST:PORT", help="use this server of Spark Connect, such as Sail, without spark-submit")
    return parser.parse_args(words)


def reason_of(error):
    """The lines of the reason in the report of an engine, or the first lines of the report."""
    text = str(error)
    found = re.search(f"{re.escape(FAILED)}(.*?)\\n{re.escape(END)}", text, re.DOTALL)
    lines = (f"a task failed on {found[1]}" if found else f"{type(error).__name__}: {text}").splitlines()
    return [line for line in lines if not line.startswith("\tat ")][:20]


def main():
    args = parsed(sys.argv[1:])
    try:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName("plumb fleet")
        spark = (builder.remote(args.remote) if args.remote else builder).getOrCreate()
        try:
            status, notes = profile_fleet(spark, args.sources, args.output, args.shards, args.grid, args.skip_bad, args.plumb)
        finally:
            spark.stop()
    except Exception as error:  # Engines have errors of their own.
        for line in reason_of(error):
            print(f"plumb-spark: {line}", file=sys.stderr)
        sys.exit(5)
    for note in notes:
        print(note, file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
