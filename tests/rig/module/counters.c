// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/rig_counters: the plugin's counters as text, readable by anyone. First lines "name value", then one line a CPU,
 * "cpu N" followed by pairs "name value". All only grow; they count since the machine started.
 */
#include <linux/math64.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "rig.h"

static int show(struct seq_file *out, void *unused)
{
	int cpu;

	seq_printf(out, "moving_calls %lld\n", (long long)atomic64_read(&rig.moving_calls));
	for_each_online_cpu(cpu) {
		const struct rig_counters *c;

		if (cpu >= RIG_MAX_VCPUS)
			break;
		c = &rig_block(cpu)->counters;
		seq_printf(out, "cpu %d node %d instructions %llu accesses %llu l2_hits %llu l3_hits %llu", cpu,
			   cpu_to_node(cpu), c->instructions, c->accesses, c->l2_hits, c->l3_hits);
		seq_printf(out, " misses_node0 %llu misses_node1 %llu misses_node2 %llu", c->misses[0], c->misses[1],
			   c->misses[2]);
		seq_printf(out, " memory_ns %llu queue_ns %llu samples %llu filtered %llu lost %llu\n",
			   div_u64(c->memory_ps, 1000), div_u64(c->queue_ps, 1000), c->samples, c->filtered, c->lost);
	}
	return 0;
}

int counters_register(void)
{
	return proc_create_single("rig_counters", 0444, NULL, show) ? 0 : -ENOMEM;
}

void counters_unregister(void)
{
	remove_proc_entry("rig_counters", NULL);
}
