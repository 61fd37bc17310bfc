// SPDX-License-Identifier: GPL-2.0
/*
 * Guest module of the rig: finds the memory shared with the QEMU plugin, then offers the PMU ibs_op and
 * /proc/rig_counters. Test only: it calls perf_event_overflow(), which the kernel does not export, through its address.
 */
#include <linux/io.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sched/task.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

#include "rig.h"

#define IVSHMEM_VENDOR 0x1af4
#define IVSHMEM_DEVICE 0x1110
#define IVSHMEM_MEMORY_BAR 2

struct rig rig;

static char *rules = "6.15";
module_param(rules, charp, 0444);
MODULE_PARM_DESC(rules, "kernel version whose ibs_op rules apply: 6.1, 6.2, 6.6, 6.14, 6.15 or between");

static uint caps;
module_param(caps, uint, 0444);
MODULE_PARM_DESC(caps, "CPUID 0x8000001B EAX; 0 = Zen 5's from 6.15 on, else Zen 4's");

#define CAPS_ZEN4 0xbff
#define CAPS_ZEN5 (CAPS_ZEN4 | IBSCAP_OPLDLAT | IBSCAP_OPDTLBPGSIZE)

static int parse_rules(void)
{
	unsigned int major, minor;

	if (sscanf(rules, "%u.%u", &major, &minor) != 2 || minor > 99 || major * 100 + minor < 601)
		return -EINVAL;
	rig.rules = major * 100 + minor;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	/* Before 6.2 only one PMU may have task events, and that is the CPU's: the reason why IBS was CPU-wide only. */
	if (rig.rules >= RULES_TASK_EVENTS) {
		pr_err("pghot_rig: this kernel can only follow the rules of 6.1\n");
		return -EINVAL;
	}
#endif
	rig.caps = caps ? caps : rig.rules >= RULES_MIN_PERIOD ? CAPS_ZEN5 : CAPS_ZEN4;
	return 0;
}

static void *address_of(const char *symbol)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	unsigned long (*lookup)(const char *name);

	if (register_kprobe(&probe))
		return NULL;
	lookup = (void *)probe.addr;
	unregister_kprobe(&probe);
	return (void *)lookup(symbol);
}

static int count_moving_call(struct kprobe *probe, struct pt_regs *regs)
{
	atomic64_inc(&rig.moving_calls);
	return 0;
}
static struct kprobe moving_call = { .symbol_name = "lru_cache_disable", .pre_handler = count_moving_call };

/* Runs before the task changes (and before perf schedules its events out): the samples still belong to current. */
static void on_task_switch(void *data, bool preempt, struct task_struct *from, struct task_struct *to,
			   unsigned int state)
{
	ibs_drain_this_cpu();
}

static struct tracepoint *task_switch;

static void find_task_switch(struct tracepoint *tracepoint, void *unused)
{
	if (!strcmp(tracepoint->name, "sched_switch"))
		task_switch = tracepoint;
}

/*
 * Keeps the kernel's switch hooks of perf patched in from now on. With the first task event they are patched into
 * running code, with the last one out of it; the emulator's other CPU sometimes still runs the int3 that stood there
 * meanwhile, which the kernel no longer knows and dies of: once in about 100 programs that open and close events.
 */
static struct perf_event *keeper;

static void keep_switch_hooks(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .size = sizeof(attr), .disabled = 1,
	};
	struct task_struct *init = get_pid_task(find_vpid(1), PIDTYPE_PID);

	if (!init)
		return;
	keeper = perf_event_create_kernel_counter(&attr, -1, init, NULL, NULL);
	put_task_struct(init);
	if (IS_ERR(keeper)) {
		pr_warn("pghot_rig: no event on init: %ld\n", PTR_ERR(keeper));
		keeper = NULL;
	}
}

static int map_shared(void)
{
	struct pci_dev *device = pci_get_device(IVSHMEM_VENDOR, IVSHMEM_DEVICE, NULL);

	if (!device)
		return -ENODEV;
	rig.shared = memremap(pci_resource_start(device, IVSHMEM_MEMORY_BAR), RIG_SHARED_BYTES, MEMREMAP_WB);
	pci_dev_put(device);
	return rig.shared ? 0 : -ENOMEM;
}

static int find_symbols(void)
{
	rig.overflow = address_of("perf_event_overflow");
	rig.paranoid = address_of("sysctl_perf_event_paranoid");
	for_each_kernel_tracepoint(find_task_switch, NULL);
	return rig.overflow && rig.paranoid && task_switch ? 0 : -ENOENT;
}

static int __init rig_init(void)
{
	int error = parse_rules();

	if (!error)
		error = find_symbols();
	if (!error)
		error = map_shared();
	if (error)
		return error;
	error = register_kprobe(&moving_call);
	if (error)
		goto unmap;
	error = counters_register();
	if (error)
		goto no_probe;
	error = ibs_pmu_register();
	if (error)
		goto no_counters;
	error = tracepoint_probe_register(task_switch, on_task_switch, NULL);
	if (!error) {
		keep_switch_hooks();
		pr_info("pghot_rig: ibs_op with the rules of kernel %s, caps 0x%x\n", rules, rig.caps);
		return 0;
	}
	ibs_pmu_unregister();
no_counters:
	counters_unregister();
no_probe:
	unregister_kprobe(&moving_call);
unmap:
	memunmap(rig.shared);
	return error;
}

static void __exit rig_exit(void)
{
	if (keeper)
		perf_event_release_kernel(keeper);
	tracepoint_probe_unregister(task_switch, on_task_switch, NULL);
	tracepoint_synchronize_unregister();
	ibs_pmu_unregister();
	counters_unregister();
	unregister_kprobe(&moving_call);
	memunmap(rig.shared);
}

module_init(rig_init);
module_exit(rig_exit);
MODULE_DESCRIPTION("Test PMU named ibs_op, fed by an emulator's plugin");
MODULE_LICENSE("GPL");
