// SPDX-License-Identifier: GPL-2.0
/*
 * What the ibs_op driver accepts, by kernel: attribute checks and error codes of perf_ibs_init() and its neighbours.
 * Checks that the perf core makes from the PMU's capabilities (any exclude_* before 6.14, task events on 6.1) are not
 * here but in ibs_pmu.c's registration.
 */
#include "rig.h"
#include "ibs_registers.h"

enum { LDLAT_MIN = 128, LDLAT_MAX = 2048 };

u64 ibs_min_period(void)
{
	return rig.rules >= RULES_MIN_PERIOD ? 0x90 : 0x10;
}

static u64 count_mask(void)
{
	return OPCTL_MAX_CNT | (rig.caps & IBSCAP_OPCNTEXT ? OPCTL_MAX_CNT_EXT : 0);
}

static u64 config_mask(void)
{
	return count_mask() | (rig.caps & IBSCAP_OPCNT ? OPCTL_CNT_CTL : 0) |
	       (rig.caps & IBSCAP_ZEN4 ? OPCTL_L3MISSONLY : 0);
}

static int check_exclude(const struct perf_event_attr *attr)
{
	const bool by_privilege = attr->exclude_user || attr->exclude_kernel || attr->exclude_hv;

	if (rig.rules < RULES_SWFILT)
		return 0; /* PERF_PMU_CAP_NO_EXCLUDE: the core refused all of them already */
	if (attr->exclude_host || attr->exclude_guest || attr->exclude_idle)
		return -EINVAL;
	return by_privilege && !(attr->config2 & 1) ? -EINVAL : 0;
}

/* The hardware has one counter, so a group of two could never be scheduled. */
static int check_group(struct perf_event *event)
{
	struct perf_event *sibling;

	if (rig.rules < RULES_FULL_SOURCE || event->group_leader == event)
		return 0;
	if (event->group_leader->pmu == event->pmu)
		return -EINVAL;
	for_each_sibling_event(sibling, event->group_leader)
		if (sibling->pmu == event->pmu)
			return -EINVAL;
	return 0;
}

static int request_latency(const struct perf_event_attr *attr, struct ibs_request *request)
{
	const u32 cycles = attr->config1 & 0xfff;

	if (rig.rules < RULES_MIN_PERIOD || !(rig.caps & IBSCAP_OPLDLAT) || !cycles)
		return 0;
	if (cycles < LDLAT_MIN || cycles > LDLAT_MAX)
		return -EINVAL;
	request->min_latency_cycles = cycles;
	request->l3_miss_only = true;
	return 0;
}

static int request_period(struct perf_event *event, struct ibs_request *request)
{
	const struct perf_event_attr *attr = &event->attr;
	u64 period = event->hw.sample_period;

	if (!period) {
		const u64 config = attr->config & count_mask();

		/* The count's high bits continue the low 16: bits 20-26 are 16-22 of the count. */
		period = ((config & OPCTL_MAX_CNT) | (config & OPCTL_MAX_CNT_EXT) >> 4) << 4;
		request->period = period;
		return period ? 0 : -EINVAL;
	}
	if (attr->config & count_mask())
		return -EINVAL;
	if (attr->freq && attr->sample_freq) {
		request->period = ibs_min_period();
		return 0;
	}
	if (rig.rules >= RULES_MIN_PERIOD)
		period &= ~0xfULL;
	else if (period & 0xf)
		return -EINVAL;
	if (period < ibs_min_period())
		return -EINVAL;
	request->period = period;
	return 0;
}

int ibs_check_event(struct perf_event *event, struct ibs_request *request)
{
	const struct perf_event_attr *attr = &event->attr;
	int error;

	if (has_branch_stack(event))
		return -EOPNOTSUPP;
	if (attr->config & ~config_mask())
		return -EINVAL;
	error = check_exclude(attr);
	if (!error)
		error = check_group(event);
	if (error)
		return error;
	request->config = attr->config & ~count_mask();
	request->l3_miss_only = !!(attr->config & OPCTL_L3MISSONLY);
	request->count_ops = !!(attr->config & OPCTL_CNT_CTL);
	error = request_latency(attr, request);
	return error ? error : request_period(event, request);
}

int ibs_check_period(struct perf_event *event, u64 period)
{
	if (rig.rules < RULES_MIN_PERIOD || event->attr.freq)
		return 0;
	return period < ibs_min_period() || period & 0xf ? -EINVAL : 0;
}
