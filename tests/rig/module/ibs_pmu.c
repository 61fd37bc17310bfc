// SPDX-License-Identifier: GPL-2.0
/*
 * The PMU "ibs_op": schedules one event a CPU onto the plugin's sampler and hands the samples to the perf core.
 *
 * The hardware interrupts for every sample; a plugin of interface 1 cannot, so samples wait in the CPU's ring until a 1
 * ms timer, the next task switch or the end of the event takes them. They are always taken before the task changes, so
 * each belongs to the task that ran; their time stamp is late by up to 1 ms. A consequence: the period of freq=1
 * events, which the core tunes from the distance of interrupts, is not modelled well.
 */
#include <linux/hrtimer.h>
#include <linux/percpu.h>
#include <linux/version.h>
#include <asm/ptrace.h>

#include "rig.h"
#include "ibs_registers.h"

#define DRAIN_MS 1
#define UNPRIVILEGED 1 /* in hw.flags: whoever opened it may not see kernel data */

struct cpu_ibs {
	struct perf_event *event;
	struct hrtimer timer;
};
static DEFINE_PER_CPU(struct cpu_ibs, cpu_ibs);

/* Which request an event made; kept in the event itself, as a driver keeps its configuration. */
static bool wants_l3_miss_only(const struct perf_event *event)
{
	return event->hw.config & OPCTL_L3MISSONLY;
}

static u64 counted(const struct rig_sampler *sampler)
{
	return sampler->tagged + (u64)((s64)sampler->length - sampler->left);
}

static void update_count(struct perf_event *event, struct rig_sampler *sampler)
{
	const u64 now = counted(sampler);
	const u64 before = local64_xchg(&event->hw.prev_count, now);

	local64_add(now - before, &event->count);
}

/* Registers as the interrupt would have found them: the task's, at the tagged instruction, in user mode. */
static void sample_regs(struct pt_regs *regs, u64 ip)
{
	if (current->mm)
		*regs = *task_pt_regs(current);
	else
		memset(regs, 0, sizeof(*regs));
	regs->ip = ip;
	regs->cs = __USER_CS;
	regs->flags |= PERF_EFLAGS_EXACT;
}

/* 6.14 and later hide the physical address in RAW from whoever may not see kernel data. */
static bool hides_physical_address(const struct perf_event *event)
{
	return rig.rules >= RULES_SWFILT && event->hw.flags & UNPRIVILEGED;
}

struct raw_payload {
	u32 caps;
	struct ibs_registers registers;
} __packed;

static void attach_raw(struct perf_event *event, struct perf_sample_data *data, struct perf_raw_record *raw,
		       struct raw_payload *payload)
{
	if (!(event->attr.sample_type & PERF_SAMPLE_RAW))
		return;
	if (hides_physical_address(event))
		payload->registers.physical_address = 0;
	payload->caps = rig.caps;
	*raw = (struct perf_raw_record){ .frag = { .size = sizeof(*payload), .data = payload } };
	if (!(rig.caps & IBSCAP_BRNTRGT))
		raw->frag.size -= sizeof(payload->registers.branch_target);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	{
		/* perf_sample_save_raw_data(), whose parameters differ between kernels: padded so that size and its
		 * own u32 are a multiple of 8. */
		const u32 size = round_up(raw->frag.size + sizeof(u32), sizeof(u64));

		raw->size = size - sizeof(u32);
		raw->frag.pad = raw->size - raw->frag.size;
		data->dyn_size += size;
	}
#endif
	data->raw = raw;
	data->sample_flags |= PERF_SAMPLE_RAW;
}

static void fill_weight(struct perf_event *event, struct perf_sample_data *data, const struct ibs_registers *registers)
{
	const u32 latency = ibs_miss_latency(registers->op_data3);

	if (!(event->attr.sample_type & PERF_SAMPLE_WEIGHT_TYPE) || !latency)
		return;
	data->weight.full = 0;
	if (event->attr.sample_type & PERF_SAMPLE_WEIGHT) {
		data->weight.full = latency;
	} else {
		data->weight.var1_dw = latency;
		data->weight.var2_w = registers->op_data >> 16 & 0xffff;
	}
	data->sample_flags |= event->attr.sample_type & PERF_SAMPLE_WEIGHT_TYPE;
}

/* One sample as the driver's interrupt handler reports it. Returns what perf_event_overflow says: nonzero throttles. */
static int report(struct perf_event *event, const struct rig_sample *sample)
{
	struct perf_sample_data data;
	struct perf_raw_record raw;
	struct raw_payload payload;
	struct ibs_registers *registers = &payload.registers;
	struct pt_regs regs;
	const u64 op_ctl = event->hw.config | OPCTL_ENABLE | OPCTL_VAL |
			   (event->hw.sample_period >> 4 & OPCTL_MAX_CNT) |
			   (event->hw.sample_period >> 4 & (OPCTL_MAX_CNT_EXT >> 4)) << 4;

	ibs_fill_registers(registers, sample, cpu_to_node(smp_processor_id()), op_ctl);
	sample_regs(&regs, sample->ip);
	perf_sample_data_init(&data, sample->linear_address, event->hw.last_period);
	data.ip = sample->ip;
	data.data_src.val = ibs_data_src(registers->op_data2, registers->op_data3, rig.rules >= RULES_FULL_SOURCE);
	data.phys_addr = sample->physical_address;
	data.sample_flags |= event->attr.sample_type & (PERF_SAMPLE_IP | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR);
	fill_weight(event, &data, registers);
	attach_raw(event, &data, &raw, &payload);
	return rig.overflow(event, &data, &regs);
}

/* exclude_user with swfilt drops everything we have: only user accesses are sampled, so it must do that here. */
static bool drops(const struct perf_event *event)
{
	return event->attr.exclude_user;
}

static void drain(struct perf_event *event)
{
	struct rig_block *block = rig_block(smp_processor_id());
	struct rig_sampler *sampler = &block->sampler;

	update_count(event, sampler);
	while (sampler->head != sampler->tail) {
		const struct rig_sample sample = block->ring[sampler->tail % RIG_RING_ENTRIES];

		sampler->tail++;
		event->hw.last_period = event->hw.sample_period;
		if (drops(event) || !report(event, &sample))
			continue;
		/* Throttled: the hardware would have stopped here, so what the plugin tagged since was never tagged.
		 * The core's tick starts the event again. */
		sampler->enabled = 0;
		sampler->tail = sampler->head;
		event->hw.state |= PERF_HES_STOPPED;
		return;
	}
}

void ibs_drain_this_cpu(void)
{
	struct cpu_ibs *cpu = this_cpu_ptr(&cpu_ibs);
	const struct rig_sampler *sampler = &rig_block(smp_processor_id())->sampler;

	if (cpu->event && !(cpu->event->hw.state & PERF_HES_STOPPED) && sampler->head != sampler->tail)
		drain(cpu->event);
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	if (!this_cpu_read(cpu_ibs.event))
		return HRTIMER_NORESTART;
	ibs_drain_this_cpu();
	hrtimer_forward_now(timer, ms_to_ktime(DRAIN_MS));
	return HRTIMER_RESTART;
}

static int event_init(struct perf_event *event)
{
	struct ibs_request request = {};
	int error;

	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	error = ibs_check_event(event, &request);
	if (error)
		return error;
	event->hw.config = request.config | (request.l3_miss_only ? OPCTL_L3MISSONLY : 0);
	event->hw.config_base = request.min_latency_cycles;
	event->hw.sample_period = request.period;
	event->hw.last_period = request.period;
	/* MaxCnt in config: the driver makes it the event's period. */
	if (!event->attr.sample_period)
		event->attr.sample_period = request.period;
	event->hw.flags = *rig.paranoid > 1 && !perfmon_capable() ? UNPRIVILEGED : 0;
	local64_set(&event->hw.period_left, 0);
	return 0;
}

static void event_start(struct perf_event *event, int flags)
{
	struct rig_sampler *sampler = &rig_block(smp_processor_id())->sampler;
	const s64 left = local64_read(&event->hw.period_left);
	const u64 period = max(event->hw.sample_period & ~0xfULL, ibs_min_period());

	event->hw.state = 0;
	sampler->tail = sampler->head;
	sampler->period = period;
	sampler->randomise = !!(event->hw.config & OPCTL_CNT_CTL);
	sampler->l3_miss_only = wants_l3_miss_only(event);
	sampler->min_latency_cycles = event->hw.config_base;
	sampler->left = left > 0 && left <= period ? left : period;
	sampler->length = sampler->left;
	local64_set(&event->hw.prev_count, counted(sampler));
	event->hw.last_period = period;
	barrier();
	sampler->enabled = 1;
}

static void event_stop(struct perf_event *event, int flags)
{
	struct rig_sampler *sampler = &rig_block(smp_processor_id())->sampler;

	if (event->hw.state & PERF_HES_STOPPED)
		return;
	sampler->enabled = 0;
	barrier();
	drain(event);
	/* The count goes on where it stood when the task runs again. */
	local64_set(&event->hw.period_left, sampler->left);
	event->hw.state |= PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int event_add(struct perf_event *event, int flags)
{
	struct cpu_ibs *cpu = this_cpu_ptr(&cpu_ibs);

	if (cpu->event)
		return -ENOSPC; /* one counter a CPU: the core rotates the events */
	if (smp_processor_id() >= RIG_MAX_VCPUS)
		return -EINVAL;
	cpu->event = event;
	event->hw.state = PERF_HES_UPTODATE | PERF_HES_STOPPED;
	if (flags & PERF_EF_START)
		event_start(event, PERF_EF_RELOAD);
	/* Left running over task switches (it ends itself when no event came back): cheaper than a cancel at each. */
	if (!hrtimer_active(&cpu->timer))
		hrtimer_start(&cpu->timer, ms_to_ktime(DRAIN_MS), HRTIMER_MODE_REL_PINNED_HARD);
	perf_event_update_userpage(event);
	return 0;
}

static void event_del(struct perf_event *event, int flags)
{
	event_stop(event, PERF_EF_UPDATE);
	this_cpu_write(cpu_ibs.event, NULL);
	perf_event_update_userpage(event);
}

static void event_read(struct perf_event *event)
{
	if (!(event->hw.state & PERF_HES_STOPPED))
		update_count(event, &rig_block(smp_processor_id())->sampler);
}

PMU_FORMAT_ATTR(cnt_ctl, "config:19");
PMU_FORMAT_ATTR(l3missonly, "config:16");
PMU_FORMAT_ATTR(swfilt, "config2:0");
PMU_FORMAT_ATTR(ldlat, "config1:0-11");
static struct attribute *format_attrs[] = {
	&format_attr_cnt_ctl.attr,
	&format_attr_l3missonly.attr,
	&format_attr_swfilt.attr,
	&format_attr_ldlat.attr,
	NULL,
};

static ssize_t one_show(struct device *device, struct device_attribute *attr, char *page)
{
	return sysfs_emit(page, "1\n");
}
static struct device_attribute cap_zen4 = __ATTR(zen4_ibs_extensions, 0444, one_show, NULL);
static struct device_attribute cap_ldlat = __ATTR(ldlat, 0444, one_show, NULL);
static struct device_attribute cap_dtlb = __ATTR(dtlb_pgsize, 0444, one_show, NULL);
static struct attribute *caps_attrs[] = { &cap_zen4.attr, &cap_ldlat.attr, &cap_dtlb.attr, NULL };

static bool has_ldlat(void)
{
	return rig.rules >= RULES_MIN_PERIOD && rig.caps & IBSCAP_OPLDLAT;
}

static umode_t visible(struct kobject *kobj, struct attribute *attr, int index)
{
	bool shown = true;

	if (attr == &format_attr_cnt_ctl.attr)
		shown = rig.caps & IBSCAP_OPCNT;
	else if (attr == &format_attr_l3missonly.attr || attr == &cap_zen4.attr)
		shown = rig.caps & IBSCAP_ZEN4;
	else if (attr == &format_attr_swfilt.attr)
		shown = rig.rules >= RULES_SWFILT;
	else if (attr == &format_attr_ldlat.attr || attr == &cap_ldlat.attr)
		shown = has_ldlat();
	else if (attr == &cap_dtlb.attr)
		shown = rig.rules >= RULES_MIN_PERIOD && rig.caps & IBSCAP_OPDTLBPGSIZE;
	return shown ? attr->mode : 0;
}
static const struct attribute_group format_group = { .name = "format", .attrs = format_attrs, .is_visible = visible };
static const struct attribute_group caps_group = { .name = "caps", .attrs = caps_attrs, .is_visible = visible };
static const struct attribute_group *groups[] = { &format_group, &caps_group, NULL };

static struct pmu pmu = {
	.module = THIS_MODULE,
	.attr_groups = groups,
	.event_init = event_init,
	.add = event_add,
	.del = event_del,
	.start = event_start,
	.stop = event_stop,
	.read = event_read,
	.check_period = ibs_check_period,
};

int ibs_pmu_register(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct hrtimer *timer = &per_cpu_ptr(&cpu_ibs, cpu)->timer;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
		hrtimer_setup(timer, on_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
		hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		timer->function = on_timer;
#endif
	}
	pmu.task_ctx_nr = rig.rules >= RULES_TASK_EVENTS ? perf_hw_context : perf_invalid_context;
	pmu.capabilities = rig.rules < RULES_SWFILT ? PERF_PMU_CAP_NO_EXCLUDE : 0;
	return perf_pmu_register(&pmu, "ibs_op", -1);
}

void ibs_pmu_unregister(void)
{
	int cpu;

	perf_pmu_unregister(&pmu);
	for_each_possible_cpu(cpu)
		hrtimer_cancel(&per_cpu_ptr(&cpu_ibs, cpu)->timer);
}
