#!/usr/sbin/dtrace -qs
/*
 * Counts what device nodes are given, by device, operation, start modulo 1 MiB and length.
 *
 *   dtrace -qs residue.d > host.residue     end it with Ctrl-C
 *   plumb analyze host.residue
 *
 * NOT RUN: written from the documentation of DTrace's io provider; no host of Solaris or illumos was at hand.
 * DTrace for Linux 2.0.7 compiles it where its own io.d knows the kernel; on Linux 6.18 it does not (it asks for
 * `major_names`), and with that name taken out of io.d the script compiles, but that kernel cannot run it. Use
 * residue.bt there.
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
