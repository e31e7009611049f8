#!/usr/sbin/dtrace -qs
/*
 * Counts what device nodes are given, by device, operation, start modulo 1 MiB and length.
 *
 *   dtrace -qs residue.d > host.residue     end it with Ctrl-C
 *   plumb analyze host.residue
 *
 * Tested: Linux 6.12 (Debian's) with DTrace 2.0.7, which wants debugfs under /sys/kernel/debug: counts were those sent.
 * On Linux 6.18 that DTrace does not compile it (its own io.d asks for `major_names`): use residue.bt there.
 * NOT RUN on Solaris and illumos: written from the documentation of the io provider; no such host was at hand.
 *
 * Layer: bio (io:::start).
 * The header says unit and modulus; without it the numbers mean nothing.
 * Where an I/O is issued to a slice, b_blkno counts from the start of the slice and the device is named as the
 * slice (sd0,a): what a slice at sector 34 does to it shows with `plumb analyze --grid 4k@3k`, since the slice's
 * first multiple of 4 KiB lies 6 sectors in.
 */

#pragma D option aggsize=16m

BEGIN
{
	printf("# plumb-residue 1 unit=512 modulus=2048 layer=bio\n");
}

io:::start
{
	@[args[1]->dev_statname, args[0]->b_flags & B_READ ? "R" : "W",
	    args[0]->b_blkno & 2047, args[0]->b_bcount / 512] = count();
}

END
{
	printa("%s %s %d %d %@d\n", @);
}
