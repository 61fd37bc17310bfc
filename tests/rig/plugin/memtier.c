/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU TCG plugin of the rig. For every user access of the guest it asks a small cache, and on a miss
 *   - adds the node's latency (model.h, queueing included) to the virtual CPU's modelled memory time,
 *   - waits until that much time has passed since the previous miss, so that wall time follows the model,
 * and it tags every Nth access while the guest module has sampling enabled on that CPU, as AMD's IBS does.
 *
 * Accesses by the guest's kernel are not looked at: not modelled, not sampled.
 * Arguments: shared=FILE (ivshmem memory), vcpus=N, dram_mib=M (each of nodes 0 and 1), spin=on|off.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "cache.h"
#include "model.h"
#include "node_queue.h"
#include "plugin_api.h"
#include "shared.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API;

enum { kUserAddressBits = 47 };
/* q35 puts RAM beyond this at 4 GiB: the hole below is for devices. */
static const uint64_t kLowRamBytes = 2ull << 30;
static const double kRateLifeSeconds = 0.02;

struct vcpu {
	struct rig_block *block;
	struct cache cache;
	unsigned index;
	unsigned node;
	uint64_t random;
	double wait_ns[RIG_NODES];
	uint32_t window_lines[RIG_NODES];
	uint32_t window_total;
	double window_from_ns;
	uint64_t paced_until; /* host ticks: when the previous miss was over */
} __attribute__((aligned(64)));

static struct vcpu *vcpus;
static unsigned vcpu_count = 2;
static uint64_t dram_bytes;
static double ticks_per_ns;
static bool spin = true;
static struct node_queue queues[RIG_NODES];

/* Bytes from the start of the guest's RAM, over all nodes. What QEMU calls the physical address differs: 7.2 gives the
 * offset of the node's memory object among all objects plus its offset in RAM plus the offset within it, so node k's
 * part begins at 2 * k * dram_bytes; later versions give the guest's physical address. */
static uint64_t ram_offset_of(const struct qemu_plugin_hwaddr *hwaddr)
{
	const uint64_t address = qemu_plugin_hwaddr_phys_addr(hwaddr);
#if PLUGIN_API == 1
	const uint64_t node = address / (2 * dram_bytes);
	return address - (node < RIG_CXL_NODE ? node : RIG_CXL_NODE) * dram_bytes;
#else
	return address < kLowRamBytes ? address : address - (4ull << 30) + kLowRamBytes;
#endif
}

static unsigned node_of(uint64_t ram_offset)
{
	const uint64_t node = ram_offset / dram_bytes;
	return node < RIG_CXL_NODE ? (unsigned)node : RIG_CXL_NODE;
}

static uint64_t physical_address(uint64_t ram_offset)
{
	return ram_offset < kLowRamBytes ? ram_offset : ram_offset - kLowRamBytes + (4ull << 30);
}

static double base_latency_ns(const struct vcpu *vcpu, unsigned node)
{
	if (node == RIG_CXL_NODE)
		return RIG_CXL_NS;
	return node == vcpu->node ? RIG_LOCAL_DRAM_NS : RIG_REMOTE_DRAM_NS;
}

static double modelled_ns(const struct rig_counters *counters)
{
	return (double)counters->instructions / RIG_INSTRUCTIONS_PER_NS + (double)counters->memory_ps / 1000;
}

/* After a window of misses: tell the nodes' queues this CPU's rate, and learn how long a line waits now. */
static void close_window(struct vcpu *vcpu)
{
	const double now_ns = modelled_ns(&vcpu->block->counters);
	const double span_ns = now_ns - vcpu->window_from_ns;
	const uint64_t now = __rdtsc();
	const uint64_t life = (uint64_t)(kRateLifeSeconds * 1e9 * ticks_per_ns);
	for (unsigned node = 0; node < RIG_NODES; node++) {
		node_queue_publish(&queues[node], vcpu->index, vcpu->window_lines[node] / span_ns, now);
		vcpu->wait_ns[node] = node_queue_wait_ns(&queues[node], now, life);
		vcpu->window_lines[node] = 0;
	}
	vcpu->window_total = 0;
	vcpu->window_from_ns = now_ns;
}

/* Counts the miss and returns its latency. */
static double serve_miss(struct vcpu *vcpu, unsigned node)
{
	struct rig_counters *counters = &vcpu->block->counters;
	const double latency_ns = base_latency_ns(vcpu, node) + vcpu->wait_ns[node];
	counters->misses[node]++;
	counters->memory_ps += (uint64_t)(latency_ns * 1000);
	counters->queue_ps += (uint64_t)(vcpu->wait_ns[node] * 1000);
	vcpu->window_lines[node]++;
	if (++vcpu->window_total == kWindowLines)
		close_window(vcpu);
	return latency_ns;
}

/* The host time that emulation took since the previous miss counts towards the latency: emulating an access costs some
 * 230 ns, which would otherwise come on top. Where the latency is longer than that (CXL), wall time then follows
 * modelled time, and so do kernel and library timers against the program's progress. Never repays more than one miss.
 */
static void pace(struct vcpu *vcpu, double latency_ns)
{
	const uint64_t end = vcpu->paced_until + (uint64_t)(latency_ns * ticks_per_ns);
	uint64_t now = __rdtsc();
	while (now < end)
		now = __rdtsc();
	vcpu->paced_until = now;
}

static uint64_t next_random(struct vcpu *vcpu)
{
	vcpu->random ^= vcpu->random << 13;
	vcpu->random ^= vcpu->random >> 7;
	vcpu->random ^= vcpu->random << 17;
	return vcpu->random;
}

/* Counts one access down; true when it is the tagged one, and then starts the next count. */
static bool is_tagged(struct vcpu *vcpu)
{
	struct rig_sampler *sampler = &vcpu->block->sampler;
	if (!sampler->enabled)
		return false;
	const int64_t left = sampler->left - 1;
	sampler->left = left;
	if (left > 0)
		return false;
	sampler->tagged += sampler->length;
	uint64_t length = sampler->period;
	/* CurCnt starts with 7 random low bits, so the period ends that much sooner. */
	if (sampler->randomise && length > 128)
		length -= next_random(vcpu) & 127;
	sampler->length = length;
	sampler->left = (int64_t)length;
	return true;
}

static bool passes_filter(const struct rig_sampler *sampler, const struct rig_sample *sample)
{
	if (sampler->l3_miss_only && sample->level != RIG_MEMORY)
		return false;
	if (sampler->min_latency_cycles)
		return !sample->is_store && sample->level != RIG_L1 &&
		       sample->latency_cycles > sampler->min_latency_cycles;
	return true;
}

static void record(struct vcpu *vcpu, const struct rig_sample *sample)
{
	struct rig_block *block = vcpu->block;
	struct rig_sampler *sampler = &block->sampler;
	if (!passes_filter(sampler, sample)) {
		block->counters.filtered++;
		return;
	}
	if (sampler->head - sampler->tail >= RIG_RING_ENTRIES) {
		sampler->lost_ring_full++;
		block->counters.lost++;
		return;
	}
	block->ring[sampler->head % RIG_RING_ENTRIES] = *sample;
	sampler->head++;
	block->counters.samples++;
}

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *ip)
{
	if (address >> kUserAddressBits || cpu >= vcpu_count)
		return;
	struct vcpu *vcpu = &vcpus[cpu];
	struct rig_counters *counters = &vcpu->block->counters;
	counters->accesses++;
	const bool tagged = is_tagged(vcpu);
	const enum rig_level level = cache_access(&vcpu->cache, address / RIG_LINE_BYTES);
	if (level == RIG_L1 && !tagged)
		return;

	struct rig_sample sample = { .ip = (uintptr_t)ip, .linear_address = address, .level = level };
	double latency_ns = 0;
	if (level == RIG_L2) {
		counters->l2_hits++; /* its 14 cycles are part of the CPI */
		sample.latency_cycles = RIG_L2_HIT_CYCLES;
	} else if (level == RIG_L3) {
		counters->l3_hits++;
		counters->memory_ps += RIG_L3_HIT_CYCLES * 1000000ull / RIG_CYCLES_PER_US;
		sample.latency_cycles = RIG_L3_HIT_CYCLES;
	}
	if (level != RIG_MEMORY && !tagged)
		return;

	struct qemu_plugin_hwaddr *hwaddr = qemu_plugin_get_hwaddr(info, address);
	if (!hwaddr || qemu_plugin_hwaddr_is_io(hwaddr))
		return;
	const uint64_t ram_offset = ram_offset_of(hwaddr);
	const unsigned node = node_of(ram_offset);
	if (level == RIG_MEMORY) {
		latency_ns = serve_miss(vcpu, node);
		sample.latency_cycles = (uint32_t)(latency_ns * RIG_CYCLES_PER_US / 1000);
		if (spin)
			pace(vcpu, latency_ns);
	}
	if (!tagged)
		return;
	sample.physical_address = physical_address(ram_offset);
	sample.node = node;
	sample.is_store = qemu_plugin_mem_is_store(info);
	record(vcpu, &sample);
}

/* A block left early by a fault counts whole: the excess is a few instructions a fault. */
static void on_block(unsigned cpu, void *instructions)
{
	if (cpu < vcpu_count)
		vcpus[cpu].block->counters.instructions += (uintptr_t)instructions;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	const size_t count = qemu_plugin_tb_n_insns(tb);
	if (!count || qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0)) >> kUserAddressBits)
		return; /* kernel code */
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)count);
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
		void *ip = (void *)(uintptr_t)qemu_plugin_insn_vaddr(instruction);
		qemu_plugin_register_vcpu_mem_cb(instruction, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
						 ip);
	}
}

static double measure_ticks_per_ns(void)
{
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	const uint64_t ticks = __rdtsc();
	usleep(20000);
	clock_gettime(CLOCK_MONOTONIC, &to);
	const double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
	return (double)(__rdtsc() - ticks) / ns;
}

static char *map_shared(const char *path)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	char *memory = mmap(NULL, RIG_SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

static bool set_up_vcpus(char *shared)
{
	if (posix_memalign((void **)&vcpus, 64, vcpu_count * sizeof *vcpus))
		return false;
	memset(vcpus, 0, vcpu_count * sizeof *vcpus);
	for (unsigned i = 0; i < vcpu_count; i++) {
		vcpus[i].block = (struct rig_block *)(shared + (size_t)i * RIG_BLOCK_BYTES);
		vcpus[i].index = i;
		vcpus[i].node = i < vcpu_count / 2 ? 0 : 1;
		vcpus[i].random = 88172645463325252ull + i;
		cache_clear(&vcpus[i].cache);
	}
	return true;
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	(void)info;
	const char *shared_path = NULL;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "shared=", 7))
			shared_path = argv[i] + 7;
		else if (!strncmp(argv[i], "vcpus=", 6))
			vcpu_count = (unsigned)atoi(argv[i] + 6);
		else if (!strncmp(argv[i], "dram_mib=", 9))
			dram_bytes = strtoull(argv[i] + 9, NULL, 10) << 20;
		else if (!strncmp(argv[i], "spin=", 5))
			spin = strcmp(argv[i] + 5, "off") != 0;
	}
	char *shared = shared_path ? map_shared(shared_path) : NULL;
	if (!shared || !dram_bytes || !vcpu_count || vcpu_count > RIG_MAX_VCPUS || !set_up_vcpus(shared)) {
		fprintf(stderr, "memtier: needs shared=FILE, dram_mib=M and vcpus=1..%d\n", RIG_MAX_VCPUS);
		return 1;
	}
	ticks_per_ns = measure_ticks_per_ns();
	const double threads_per_vcpu = 2.0 * RIG_THREADS_PER_NODE / vcpu_count;
	for (unsigned node = 0; node < RIG_NODES; node++) {
		const unsigned mb_per_s = node == RIG_CXL_NODE ? RIG_CXL_MB_PER_S : RIG_DRAM_MB_PER_S;
		queues[node].service_ns = service_ns(mb_per_s, threads_per_vcpu);
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
