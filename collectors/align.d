#!/usr/sbin/dtrace -qs
/*
 * Every 5 s, for each disk of the driver sd: I/O issued, those that start off a unit and by how much on average,
 * those whose length is no multiple of it, and how many started so many sectors off. At the end the exact count
 * of each length.
 *
 *   dtrace -qs align.d          units of 4 KiB: 8 sectors of 512 bytes; end it with Ctrl-C
 *
 * NOT RUN: written from the source of illumos' driver sd; no host of Solaris or illumos was at hand. Its
 * syntax was checked by DTrace for Linux 2.0.7, with the driver's structures declared by hand. There is no such
 * driver under Linux: use align.bt there.
 *
 * Layer: request. At sd_core_iostart the block counts from the start of the disk and not of the slice, so that
 * a slice off its unit shows. It is a block of the disk: on one with blocks of 4,096 bytes nothing is off.
 * %@d of an aggregation that holds nothing for a disk prints 0.
 */

inline int UNIT = 8;

BEGIN
{
	began = timestamp;
}

fbt:sd:sd_core_iostart:entry
{
	this->bp = (struct buf *)arg2;
	this->un = (struct sd_lun *)arg1;
	this->disk = ((struct dev_info *)this->un->un_sd->sd_dev)->devi_instance;
	this->off = ((struct sd_xbuf *)this->bp->b_private)->xb_blkno % UNIT;
	@issued[this->disk] = count();
	@misaligned[this->disk] = sum(this->off ? 1 : 0);
	@blocks[this->disk] = avg(this->off);
	@bytes[this->disk] = avg(this->off * 512);
	@odd[this->disk] = sum(this->bp->b_bcount % (UNIT * 512) ? 1 : 0);
	@off[this->disk] = lquantize(this->off, 0, UNIT, 1);
	@lengths[this->disk, this->bp->b_bcount] = count();
}

tick-5sec, END
{
	printf("%d ms elapsed, units of %d sectors\n\n", (timestamp - began) / 1000000, UNIT);
	printa("sd%d\n%@8d I/O issued\n%@8d I/O misaligned, %@d block offset, %@d byte offset\n%@8d I/O of odd length\n%@d\n",
	    @issued, @misaligned, @blocks, @bytes, @odd, @off);
	trunc(@issued); trunc(@misaligned); trunc(@blocks); trunc(@bytes); trunc(@odd); trunc(@off);
	began = timestamp;
}

END
{
	printf("IO size Count\n\n");
	printa("sd%d %8d %@8d\n", @lengths);
}
