#!/usr/sbin/dtrace -qs
/*
 * Every 10 s, for each device: lengths of reads and of writes in powers of two of bytes.
 *
 *   dtrace -qs io-profiler.d > host.lengths    end it with Ctrl-C
 *   plumb analyze host.lengths
 *
 * NOT RUN: written from the documentation of DTrace's io provider; no host of Solaris or illumos was at hand.
 * DTrace for Linux 2.0.7 compiles it where its own io.d knows the kernel; on Linux 6.18 it does not (it asks for
 * `major_names`), and with that name taken out of io.d the script compiles, but that kernel cannot run it. Use
 * io-profiler.bt there.
 *
 * Layer: bio (io:::start). plumb adds the intervals up; it takes these histograms for lengths because all values
 * lie between 512 bytes and 64 MiB. residue.d holds the same and the starts as well.
 */

io:::start
/args[0]->b_bcount > 0/
{
	@[args[1]->dev_statname, args[0]->b_flags & B_READ ? "R" : "W"] = quantize(args[0]->b_bcount);
}

tick-10sec, END
{
	printf("%Y\n", walltimestamp);
	printa("%s %s\n%@d\n", @);
	trunc(@);
}
