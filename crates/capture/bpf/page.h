/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The pages that a bio moves, and their places in the cache.
 *
 * - The head of a large folio is found by `compound_head` of its pages, a pointer with bit 0 set. Since 8c846c879e22 ("mm: rename
 *   the 'compound_head' field in the 'struct page' to 'compound_info'") it has another name, and may be a mask of the address.
 * - In every kernel the index follows the mapping, of a page as well as of a folio; its name in a page has changed.
 */
#ifndef PLUMB_PAGE_H
#define PLUMB_PAGE_H

#include "kernel.h"

/* Low bits of a page's mapping that say that it is in no cache of a file or a disk. */
#define NO_CACHE 3

/* The place of a page: a cache of a file or a disk, and the page's number there. */
struct page_place {
	u64 mapping;
	u64 index;
	u64 flags;
};

/* The first page of the folio that a page belongs to. */
INLINE u64 head_of(u64 page)
{
	u64 info = 0;

	if (HAS_FIELD(struct page, compound_head))
		info = COPY((struct page *)page, compound_head);
	else if (HAS_FIELD(struct page___info, compound_info))
		info = COPY((struct page___info *)page, compound_info);
	if (!(info & 1))
		return page;
	/* A mask has ones in all its high bits, which no address of a page has. */
	return info >> 32 == 0xffffffff ? page & info : info - 1;
}

INLINE struct page_place place_of_page(u64 page)
{
	struct page_place place = { 0, 0, 0 };

	if (HAS_FIELD(struct folio, mapping))
		bpf_probe_read_kernel(&place, 2 * sizeof(u64),
				      __builtin_preserve_access_index(&((struct folio *)page)->mapping));
	else if (HAS_FIELD(struct page, mapping))
		bpf_probe_read_kernel(&place, 2 * sizeof(u64),
				      __builtin_preserve_access_index(&((struct page *)page)->mapping));
	/* The flags are the first word. */
	bpf_probe_read_kernel(&place.flags, sizeof(u64), (void *)page);
	return place;
}

/* The place of a vector of a bio, by its first page; the mapping is 0 where the page is in no cache. */
INLINE struct page_place place_of_bio(u64 bio, u32 vector)
{
	struct bio_vec *vectors = COPY((struct bio *)bio, bi_io_vec);
	struct page_place place = place_of_page(head_of((u64)COPY(vectors + vector, bv_page)));

	if (place.mapping & NO_CACHE)
		place.mapping = 0;
	return place;
}

#endif
