#!/usr/sbin/dtrace -qs
/*
 * Counts what device nodes are given, by device, operation, start modulo 1 MiB and length.
 *
 *   dtrace -qs residue.d > host.residue     end it with Ctrl-C
 *   plumb analyze host.residue
 *
 * NOT RUN: written from the documentation of DTrace's io provider; no Solaris host was at hand.
 *
 * The header says unit and modulus; without it the numbers mean nothing.
 * b_blkno may count from the start of the slice and not of the disk, depending on who issues the I/O.
 * Layer: bio (io:::start).
 */

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
