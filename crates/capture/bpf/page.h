/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The pages that a bio moves, and their places in the cache. */
#ifndef PLUMB_PAGE_H
#define PLUMB_PAGE_H

#include "kernel.h"

/* Low bits of a page's mapping that say that it is in no cache of a file or a disk. */
#define NO_CACHE 3

/* The place of a page: a cache of a file or a disk, and the page's number there. */
struct page_place {
	u64 mapping;
	u64 index;
};

/* In every kernel the index follows the mapping, of a page as well as of a folio; its name in a page has changed. */
INLINE struct page_place place_of_page(u64 page)
{
	struct page_place place = { 0, 0 };

	bpf_probe_read_kernel(&place, sizeof(place), __builtin_preserve_access_index(&((struct page *)page)->mapping));
	return place;
}

/* The place of a vector of a bio, by its first page; the mapping is 0 where the page is in no cache. */
INLINE struct page_place place_of_bio(u64 bio, u32 vector)
{
	struct bio_vec *vectors = COPY((struct bio *)bio, bi_io_vec);
	u64 page = (u64)COPY(vectors + vector, bv_page), head = COPY((struct page *)page, compound_head);
	/* The pages of a large folio name their first one. */
	struct page_place place = place_of_page(head & 1 ? head - 1 : page);

	if (place.mapping & NO_CACHE)
		place.mapping = 0;
	return place;
}

#endif
