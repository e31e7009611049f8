#!/usr/sbin/dtrace -qs
/*
 * Every 10 s, for each device: lengths of reads and of writes in powers of two of bytes.
 *
 *   dtrace -qs io-profiler.d > host.lengths    end it with Ctrl-C
 *   plumb analyze host.lengths
 *
 * Tested: Linux 6.12 (Debian's) with DTrace 2.0.7, which wants debugfs under /sys/kernel/debug: counts were those sent.
 * On Linux 6.18 that DTrace does not compile it (its own io.d asks for `major_names`): use io-profiler.bt there.
 * NOT RUN on Solaris and illumos: written from the documentation of the io provider; no such host was at hand.
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
