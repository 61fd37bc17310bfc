/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * IBS op registers, and the two halves that meet in them: what the hardware would have written for a sample of the
 * plugin, and how the driver turns that into perf's data source. Plain C on purpose: tests/rig/check compiles it too.
 */
#pragma once
#include "model.h"
#include "shared.h"

#define OPCTL_L3MISSONLY (1ULL << 16)
#define OPCTL_ENABLE (1ULL << 17)
#define OPCTL_VAL (1ULL << 18)
#define OPCTL_CNT_CTL (1ULL << 19)
#define OPCTL_MAX_CNT 0xffffULL
#define OPCTL_MAX_CNT_EXT (0x7fULL << 20)

#define IBS_DATA2_SRC_LO(source) ((source)&7)
#define IBS_DATA2_SRC_HI(source) (((source) >> 3) << 6)
#define IBS_DATA2_REMOTE_NODE (1ULL << 4)
#define IBS_DATA2_HIT_OWNED (1ULL << 5)

#define IBS_DATA3_LOAD (1ULL << 0)
#define IBS_DATA3_STORE (1ULL << 1)
#define IBS_DATA3_L1_TLB_MISS (1ULL << 2)
#define IBS_DATA3_L2_TLB_MISS (1ULL << 3)
#define IBS_DATA3_DC_MISS (1ULL << 7)
#define IBS_DATA3_UNCACHED (1ULL << 14)
#define IBS_DATA3_LOCKED (1ULL << 15)
#define IBS_DATA3_NO_MAB (1ULL << 16)
#define IBS_DATA3_LINEAR_VALID (1ULL << 17)
#define IBS_DATA3_PHYSICAL_VALID (1ULL << 18)
#define IBS_DATA3_L2_MISS (1ULL << 20)
#define IBS_DATA3_WIDTH_8 (4ULL << 22)
#define IBS_DATA3_MISS_LATENCY_SHIFT 32

enum ibs_data_source {
	IBS_SOURCE_NONE = 0,
	IBS_SOURCE_LOCAL_CACHE = 1,
	IBS_SOURCE_NEAR_CCX = 2,
	IBS_SOURCE_DRAM = 3,
	IBS_SOURCE_FAR_CCX = 5,
	IBS_SOURCE_PMEM = 6,
	IBS_SOURCE_IO = 7,
	IBS_SOURCE_EXTENSION_MEMORY = 8,
	IBS_SOURCE_PEER_AGENT = 12,
};

/* In the order of the RAW payload. */
struct ibs_registers {
	rig_u64 op_ctl, op_rip, op_data, op_data2, op_data3, linear_address, physical_address, branch_target;
};

/* Retirement follows the miss by some twenty cycles; loads that hit retire in about as many. */
#define IBS_RETIRE_CYCLES 20

static inline rig_u64 ibs_op_data2(const struct rig_sample *sample, unsigned cpu_node)
{
	rig_u64 source = IBS_SOURCE_NONE, flags = 0;

	if (sample->is_store || sample->level == RIG_L1 || sample->level == RIG_L2)
		return 0; /* the source is reported for loads that left the core only */
	if (sample->level == RIG_L3) {
		source = IBS_SOURCE_LOCAL_CACHE;
		flags = IBS_DATA2_HIT_OWNED; /* 0 would say that another core had modified the line */
	} else if (sample->node == RIG_CXL_NODE) {
		source = IBS_SOURCE_EXTENSION_MEMORY;
		flags = cpu_node ? IBS_DATA2_REMOTE_NODE : 0; /* the expander hangs on node 0's socket half */
	} else {
		source = IBS_SOURCE_DRAM;
		flags = sample->node != cpu_node ? IBS_DATA2_REMOTE_NODE : 0;
	}
	return IBS_DATA2_SRC_LO(source) | IBS_DATA2_SRC_HI(source) | flags;
}

static inline rig_u64 ibs_op_data3(const struct rig_sample *sample)
{
	rig_u64 value = IBS_DATA3_LINEAR_VALID | IBS_DATA3_PHYSICAL_VALID | IBS_DATA3_WIDTH_8;

	value |= sample->is_store ? IBS_DATA3_STORE : IBS_DATA3_LOAD;
	if (sample->level != RIG_L1)
		value |= IBS_DATA3_DC_MISS;
	if (sample->level == RIG_L3 || sample->level == RIG_MEMORY)
		value |= IBS_DATA3_L2_MISS;
	if (!sample->is_store) {
		rig_u64 latency = sample->latency_cycles < 0xffff ? sample->latency_cycles : 0xffff;
		value |= latency << IBS_DATA3_MISS_LATENCY_SHIFT;
	}
	return value;
}

static inline rig_u64 ibs_op_data(const struct rig_sample *sample)
{
	rig_u64 tag_to_retire = sample->latency_cycles + IBS_RETIRE_CYCLES;

	if (tag_to_retire > 0xffff)
		tag_to_retire = 0xffff;
	return IBS_RETIRE_CYCLES / 2 | tag_to_retire << 16;
}

static inline void ibs_fill_registers(struct ibs_registers *registers, const struct rig_sample *sample,
				      unsigned cpu_node, rig_u64 op_ctl)
{
	registers->op_ctl = op_ctl;
	registers->op_rip = sample->ip;
	registers->op_data = ibs_op_data(sample);
	registers->op_data2 = ibs_op_data2(sample, cpu_node);
	registers->op_data3 = ibs_op_data3(sample);
	registers->linear_address = sample->linear_address;
	registers->physical_address = sample->physical_address;
	registers->branch_target = 0;
}

/* perf's data source, field by field; the positions are ABI. */
#define SRC_OP(value) ((rig_u64)(value))
#define SRC_LEVEL(value) ((rig_u64)(value) << 5)
#define SRC_SNOOP(value) ((rig_u64)(value) << 19)
#define SRC_LOCK(value) ((rig_u64)(value) << 24)
#define SRC_TLB(value) ((rig_u64)(value) << 26)
#define SRC_LEVEL_NUMBER(value) ((rig_u64)(value) << 33)
#define SRC_REMOTE ((rig_u64)1 << 37)
#define SRC_HOPS(value) ((rig_u64)(value) << 43)

enum { OP_NA = 1, OP_LOAD = 2, OP_STORE = 4 };
enum {
	LEVEL_NA = 1,
	LEVEL_HIT = 2,
	LEVEL_L1 = 8,
	LEVEL_LFB = 0x10,
	LEVEL_L2 = 0x20,
	LEVEL_L3 = 0x40,
	LEVEL_LOCAL_RAM = 0x80,
	LEVEL_REMOTE_RAM = 0x100,
	LEVEL_REMOTE_CACHE1 = 0x400,
	LEVEL_REMOTE_CACHE2 = 0x800,
	LEVEL_IO = 0x1000,
	LEVEL_UNCACHED = 0x2000
};
enum {
	NUMBER_L1 = 1,
	NUMBER_L2 = 2,
	NUMBER_L3 = 3,
	NUMBER_UNCACHED = 8,
	NUMBER_CXL = 9,
	NUMBER_IO = 0xa,
	NUMBER_ANY_CACHE = 0xb,
	NUMBER_LFB = 0xc,
	NUMBER_RAM = 0xd,
	NUMBER_PMEM = 0xe,
	NUMBER_NA = 0xf
};
enum { HOPS_SAME_NODE = 1, HOPS_OTHER_NODE = 2 };
enum { SNOOP_NA = 1, SNOOP_HITM = 0x10, LOCK_NA = 1, LOCK_LOCKED = 2 };
enum { TLB_NA = 1, TLB_HIT = 2, TLB_MISS = 4, TLB_L1 = 8, TLB_L2 = 0x10 };

static inline unsigned ibs_data_source_of(rig_u64 op_data2)
{
	return (unsigned)((op_data2 & 7) | ((op_data2 >> 6) & 3) << 3);
}

/* Level, level number and hops. full: kernels from 6.6 fill all of them; before, only what had no level bit. */
static inline rig_u64 ibs_source_level(rig_u64 op_data2, rig_u64 op_data3, int full)
{
	const unsigned source = ibs_data_source_of(op_data2);
	const int remote = !!(op_data2 & IBS_DATA2_REMOTE_NODE);
	const rig_u64 other_node = SRC_REMOTE | SRC_HOPS(HOPS_OTHER_NODE);

#define HIT(level, extra) (SRC_LEVEL(LEVEL_HIT | (level)) | (full ? (extra) : 0))
	if ((op_data3 & IBS_DATA3_UNCACHED) && source != IBS_SOURCE_IO)
		return HIT(LEVEL_UNCACHED, SRC_LEVEL_NUMBER(NUMBER_UNCACHED));
	if (!(op_data3 & IBS_DATA3_DC_MISS))
		return HIT(LEVEL_L1, SRC_LEVEL_NUMBER(NUMBER_L1));
	if (!(op_data3 & IBS_DATA3_L2_MISS))
		return HIT(LEVEL_L2, SRC_LEVEL_NUMBER(NUMBER_L2));
	if (op_data3 & IBS_DATA3_LOAD) {
		switch (source) {
		case IBS_SOURCE_LOCAL_CACHE:
			return HIT(LEVEL_L3, SRC_LEVEL_NUMBER(NUMBER_L3));
		case IBS_SOURCE_NEAR_CCX:
			return HIT(LEVEL_REMOTE_CACHE1,
				   SRC_LEVEL_NUMBER(NUMBER_ANY_CACHE) | SRC_REMOTE | SRC_HOPS(HOPS_SAME_NODE));
		case IBS_SOURCE_FAR_CCX:
			return HIT(LEVEL_REMOTE_CACHE2, SRC_LEVEL_NUMBER(NUMBER_ANY_CACHE) | other_node);
		case IBS_SOURCE_DRAM:
			if (remote)
				return HIT(LEVEL_REMOTE_RAM, SRC_LEVEL_NUMBER(NUMBER_RAM) | other_node);
			return HIT(LEVEL_LOCAL_RAM, SRC_LEVEL_NUMBER(NUMBER_RAM));
		case IBS_SOURCE_PMEM:
			return SRC_LEVEL_NUMBER(NUMBER_PMEM) | (remote ? other_node : 0);
		case IBS_SOURCE_EXTENSION_MEMORY:
			return SRC_LEVEL_NUMBER(NUMBER_CXL) | (remote ? other_node : 0);
		case IBS_SOURCE_IO:
			return HIT(LEVEL_IO, SRC_LEVEL_NUMBER(NUMBER_IO));
		}
	}
	if (op_data3 & IBS_DATA3_NO_MAB)
		return HIT(LEVEL_LFB, SRC_LEVEL_NUMBER(NUMBER_LFB));
	return SRC_LEVEL(LEVEL_NA) | (full ? SRC_LEVEL_NUMBER(NUMBER_NA) : 0);
#undef HIT
}

static inline rig_u64 ibs_source_snoop(rig_u64 op_data2, rig_u64 op_data3)
{
	const unsigned source = ibs_data_source_of(op_data2);
	const int cache =
		source == IBS_SOURCE_LOCAL_CACHE || source == IBS_SOURCE_NEAR_CCX || source == IBS_SOURCE_FAR_CCX;
	const int left_core = (op_data3 & IBS_DATA3_LOAD) && (op_data3 & IBS_DATA3_L2_MISS);

	return SRC_SNOOP(left_core && cache && !(op_data2 & IBS_DATA2_HIT_OWNED) ? SNOOP_HITM : SNOOP_NA);
}

static inline rig_u64 ibs_source_tlb(rig_u64 op_data3)
{
	if (!(op_data3 & IBS_DATA3_LINEAR_VALID))
		return SRC_TLB(TLB_NA);
	if (!(op_data3 & IBS_DATA3_L1_TLB_MISS))
		return SRC_TLB(TLB_L1 | TLB_HIT);
	if (!(op_data3 & IBS_DATA3_L2_TLB_MISS))
		return SRC_TLB(TLB_L2 | TLB_HIT);
	return SRC_TLB(TLB_L2 | TLB_MISS);
}

static inline rig_u64 ibs_data_src(rig_u64 op_data2, rig_u64 op_data3, int full)
{
	const rig_u64 lock = SRC_LOCK(op_data3 & IBS_DATA3_LOCKED ? LOCK_LOCKED : LOCK_NA);
	const rig_u64 op = op_data3 & IBS_DATA3_LOAD ? OP_LOAD : op_data3 & IBS_DATA3_STORE ? OP_STORE : OP_NA;

	return SRC_OP(op) | ibs_source_level(op_data2, op_data3, full) | ibs_source_snoop(op_data2, op_data3) | lock |
	       ibs_source_tlb(op_data3);
}

/* DcMissLat, which the hardware gives for loads that missed the data cache. */
static inline rig_u32 ibs_miss_latency(rig_u64 op_data3)
{
	if (!(op_data3 & IBS_DATA3_LOAD) || !(op_data3 & IBS_DATA3_DC_MISS))
		return 0;
	return (rig_u32)(op_data3 >> IBS_DATA3_MISS_LATENCY_SHIFT & 0xffff);
}
