/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Memory shared by the QEMU plugin (host) and the guest module: one block a virtual CPU.
 *
 * Everything in a block is touched by one host thread only: the plugin runs in the thread of the virtual CPU, and so
 * does the guest code that runs on that CPU. The module therefore must touch a block on its own CPU; then no atomics
 * are needed, only that the compiler keeps the order (volatile fields). The counters may be read from any CPU.
 */
#pragma once

#ifdef __KERNEL__
#include <linux/types.h>
typedef u32 rig_u32;
typedef u64 rig_u64;
typedef s64 rig_i64;
#else
#include <stdint.h>
typedef uint32_t rig_u32;
typedef uint64_t rig_u64;
typedef int64_t rig_i64;
#endif

#define RIG_MAX_VCPUS 16
#define RIG_BLOCK_BYTES 65536
#define RIG_SHARED_BYTES (RIG_MAX_VCPUS * RIG_BLOCK_BYTES)
#define RIG_NODES 3
#define RIG_CXL_NODE 2
#define RIG_RING_ENTRIES 1024

enum rig_level { RIG_L1 = 1, RIG_L2 = 2, RIG_L3 = 3, RIG_MEMORY = 4 };

/* What the hardware would know about one tagged access. */
struct rig_sample {
	rig_u64 ip;
	rig_u64 linear_address;
	rig_u64 physical_address;
	rig_u32 latency_cycles; /* of the data cache miss; 0 for an L1 hit */
	rig_u32 level; /* enum rig_level */
	rig_u32 node; /* that served it, when level is RIG_MEMORY */
	rig_u32 is_store;
};

/* Sampling set-up, written by the module, and the running count, which the plugin decrements. */
struct rig_sampler {
	volatile rig_u32 enabled;
	volatile rig_u32 randomise; /* cnt_ctl=1: the low 7 bits of each count start at random */
	volatile rig_u32 l3_miss_only; /* a tagged access that does not miss is dropped and the count restarts */
	volatile rig_u32 min_latency_cycles; /* ldlat: keep only loads that missed with more than this; 0 = all */
	volatile rig_u64 period; /* user accesses from one tag to the next */
	volatile rig_i64 left; /* until the next tag */
	volatile rig_u64 tagged; /* accesses counted by finished periods */
	volatile rig_u64 length; /* of the running period */
	volatile rig_u32 head; /* next entry the plugin writes */
	volatile rig_u32 tail; /* next entry the module reads */
	volatile rig_u64 lost_ring_full;
};

/* Counted since the machine started (the first boot code runs at low addresses and counts as user): use differences. */
struct rig_counters {
	rig_u64 instructions; /* user half only */
	rig_u64 accesses;
	rig_u64 l2_hits;
	rig_u64 l3_hits;
	rig_u64 misses[RIG_NODES];
	rig_u64 memory_ps; /* modelled time of L3 hits and misses, queueing included */
	rig_u64 queue_ps; /* the queueing part of it */
	rig_u64 samples; /* written to the ring */
	rig_u64 filtered; /* tagged, then dropped by l3missonly or ldlat */
	rig_u64 lost; /* ring full */
};

struct rig_block {
	struct rig_sampler sampler;
	rig_u64 pad_[4];
	struct rig_counters counters;
	rig_u64 pad2_[8];
	struct rig_sample ring[RIG_RING_ENTRIES];
};

#ifdef __cplusplus
#define RIG_STATIC_ASSERT static_assert
#else
#define RIG_STATIC_ASSERT _Static_assert
#endif
RIG_STATIC_ASSERT(sizeof(struct rig_block) <= RIG_BLOCK_BYTES, "a CPU's block fits its slot");
