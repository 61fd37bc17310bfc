/* SPDX-License-Identifier: GPL-2.0 */
/* What the module's files share. main.c owns everything here and sets it before the PMU is registered. */
#pragma once
#include <linux/perf_event.h>
#include <linux/topology.h>
#include <linux/types.h>

#include "shared.h"

/* A kernel version as one number: 6.14 is 614. */
enum {
	RULES_TASK_EVENTS = 602,
	RULES_FULL_SOURCE = 606, /* lvl_num and hops; two IBS events in a group refused */
	RULES_SWFILT = 614,
	RULES_MIN_PERIOD = 615, /* minimum 144, low bits masked, PERIOD ioctl checked, ldlat */
};

/* CPUID 0x8000001B EAX, the bits that something here looks at. */
#define IBSCAP_OPCNT BIT(4)
#define IBSCAP_BRNTRGT BIT(5)
#define IBSCAP_OPCNTEXT BIT(6)
#define IBSCAP_ZEN4 BIT(11)
#define IBSCAP_OPLDLAT BIT(12)
#define IBSCAP_OPDTLBPGSIZE BIT(19)

struct rig {
	void *shared;
	u32 rules;
	u32 caps;
	int (*overflow)(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs);
	const int *paranoid; /* the kernel's perf_event_paranoid */
	atomic64_t moving_calls; /* calls of lru_cache_disable(): move_pages, migrate_pages, mbind that moves */
};
extern struct rig rig;

static inline struct rig_block *rig_block(int cpu)
{
	return rig.shared + (size_t)cpu * RIG_BLOCK_BYTES;
}

/* ibs_rules.c: what one event asks of the hardware, after the driver's checks. */
struct ibs_request {
	u64 period;
	u64 config; /* without count bits */
	u32 min_latency_cycles;
	bool l3_miss_only;
	bool count_ops;
};
int ibs_check_event(struct perf_event *event, struct ibs_request *request);
int ibs_check_period(struct perf_event *event, u64 period);
u64 ibs_min_period(void);

int ibs_pmu_register(void);
void ibs_pmu_unregister(void);
/* Hands the CPU's finished samples to perf; called where the task is about to change. */
void ibs_drain_this_cpu(void);

int counters_register(void);
void counters_unregister(void);
