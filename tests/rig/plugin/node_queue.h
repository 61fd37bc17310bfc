/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Latency rises with load: the mean wait of an M/D/1 queue at each node,
 *
 *     wait = service * load / (2 * (1 - load)),   load = service * (lines a ns, all CPUs together)
 *
 * with the service time of a 64-byte line from the node's bandwidth. Rates are taken in modelled time, window by
 * window, so a host that deschedules a CPU does not change them. A CPU that went idle would keep its last rate for
 * ever; rates older than the caller's limit of host time count as nothing.
 */
#pragma once
#include <stdint.h>

#include "model.h"
#include "shared.h"

enum { kWindowLines = 256 };
/* Guards the division; the closed loop (a waiting CPU asks for less) keeps below it. */
static const double kMaxLoad = 0.95;

struct node_queue {
	double service_ns;
	double lines_per_ns[RIG_MAX_VCPUS]; /* written by its CPU, read by all: an old value is harmless */
	uint64_t published_at[RIG_MAX_VCPUS]; /* host ticks */
};

/* One virtual CPU stands for threads_per_vcpu threads, so its line stands for as many lines. */
static inline double service_ns(unsigned mb_per_s, double threads_per_vcpu)
{
	return RIG_LINE_BYTES * 1000.0 * threads_per_vcpu / mb_per_s;
}

static inline void node_queue_publish(struct node_queue *queue, unsigned cpu, double lines_per_ns, uint64_t now)
{
	__atomic_store(&queue->lines_per_ns[cpu], &lines_per_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&queue->published_at[cpu], now, __ATOMIC_RELAXED);
}

static inline double node_queue_wait_ns(const struct node_queue *queue, uint64_t now, uint64_t rate_life_ticks)
{
	double lines_per_ns = 0;
	for (unsigned cpu = 0; cpu < RIG_MAX_VCPUS; cpu++) {
		if (now - __atomic_load_n(&queue->published_at[cpu], __ATOMIC_RELAXED) > rate_life_ticks)
			continue;
		double rate;
		__atomic_load(&queue->lines_per_ns[cpu], &rate, __ATOMIC_RELAXED);
		lines_per_ns += rate;
	}
	double load = lines_per_ns * queue->service_ns;
	if (load > kMaxLoad)
		load = kMaxLoad;
	return queue->service_ns * load / (2 * (1 - load));
}
