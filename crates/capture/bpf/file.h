/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The file whose pages an I/O moves. Only pages of the cache tell their file, while the kernel fills or writes them: I/O past the
 * cache comes from the memory of a process, which may be a mapped file, and metadata of a file system from the cache of its disk.
 */
#ifndef PLUMB_FILE_H
#define PLUMB_FILE_H

#include "page.h"

/* Whether the kernel fills a page, which it locks, or writes it back. */
INLINE u32 is_moved(u64 flags, u32 op)
{
	u64 bit = op == PLUMB_OP_READ ? 0 : __builtin_preserve_enum_value(*(enum pageflags *)PG_writeback, 1);

	return flags >> (bit & 63) & 1;
}

/* The inode of the file whose page is the first of a bio; 0 where it is no file's. */
INLINE struct inode *file_of_bio(u64 bio, u32 op)
{
	struct page_place place = place_of_bio(bio, 0);
	struct inode *inode = place.mapping && is_moved(place.flags, op)
				      ? COPY((struct address_space *)place.mapping, host)
				      : 0;

	return inode && (COPY(inode, i_mode) & S_IFMT) == S_IFREG ? inode : 0;
}

/* The first name that the kernel has for a file. */
INLINE void name_of(struct inode *inode, char *name, u32 size)
{
	u64 alias = (u64)COPY(inode, i_dentry.first);

	if (alias && HAS_FIELD(struct dentry, d_u.d_alias)) {
		u64 dentry = alias - __builtin_preserve_field_info(((struct dentry *)0)->d_u.d_alias, 0);

		bpf_probe_read_kernel_str(name, size, COPY((struct dentry *)dentry, d_name.name));
	}
}

#endif
