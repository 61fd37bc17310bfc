/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cache of one virtual CPU: three direct-mapped tag arrays (L1, L2, share of L3), sizes from model.h.
 *
 * Tags are virtual line numbers, because asking QEMU for the physical address costs more than the rest of a hit. Two
 * processes on one CPU may so hit each other's lines, and a page that moved keeps its cached lines; both are bounded by
 * the cache's size (4 MiB of a 128 MiB working set).
 */
#pragma once
#include <stdint.h>
#include <string.h>

#include "model.h"
#include "shared.h"

struct cache {
	uint32_t l1[RIG_L1_LINES];
	uint32_t l2[RIG_L2_LINES];
	uint32_t l3[RIG_L3_LINES];
};

static inline void cache_clear(struct cache *cache)
{
	memset(cache, 0xff, sizeof *cache); /* no user line has this tag: user lines have 41 bits, of which 32 remain */
}

/* Where the line is found; the line is in all three levels afterwards. */
static inline enum rig_level cache_access(struct cache *cache, uint64_t line)
{
	uint32_t *l1 = &cache->l1[line % RIG_L1_LINES];
	uint32_t *l2 = &cache->l2[line % RIG_L2_LINES];
	uint32_t *l3 = &cache->l3[line % RIG_L3_LINES];
	const uint32_t tag1 = (uint32_t)(line / RIG_L1_LINES);
	const uint32_t tag2 = (uint32_t)(line / RIG_L2_LINES);
	const uint32_t tag3 = (uint32_t)(line / RIG_L3_LINES);

	if (*l1 == tag1)
		return RIG_L1;
	*l1 = tag1;
	if (*l2 == tag2)
		return RIG_L2;
	*l2 = tag2;
	if (*l3 == tag3)
		return RIG_L3;
	*l3 = tag3;
	return RIG_MEMORY;
}
