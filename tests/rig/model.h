/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The modelled machine: every constant that turns counted events into modelled time, in one place. Used by the QEMU plugin
 * (C), the guest module (kernel C) and tests/bench (C++), hence plain integer macros; the unit is the end of each name.
 *
 * The machine modelled is the one of the published runs: two DRAM nodes with 64 hardware threads each and one CXL node.
 * The virtual CPUs of a node stand for its 64 threads (with --vcpus 2 one CPU stands for all of them), so a line takes a
 * node's queue as long as that many lines would: the virtual CPUs load a node as far as 64 threads load the real one.
 */
#pragma once

/* Load-to-use latency of a line from each node, seen from node 0. DRAM 100 ns and remote DRAM 120 ns keep the ratio of the
 * published distances (10:12); 500 ns keeps 10:50. Published CXL expander latencies are 200-400 ns idle; the distances of
 * the published machine say 5x, and that is what is modelled. */
#define RIG_LOCAL_DRAM_NS 100
#define RIG_REMOTE_DRAM_NS 120
#define RIG_CXL_NS 500

/* L2 and L3 hit: 14 and 50 cycles at 4 GHz, the figures AMD gives for Zen 4. L1 and L2 hits are part of the CPI. */
#define RIG_L3_HIT_CYCLES 50
#define RIG_L2_HIT_CYCLES 14
#define RIG_CYCLES_PER_US 4000 /* 4 GHz, a round figure for current server parts */

/* 4 GHz x 2 operations a cycle: 8 instructions a nanosecond; CPI 0.5. */
#define RIG_INSTRUCTIONS_PER_NS 8

/* Cache of one thread: L1 32 KiB, L2 1 MiB, and its 4 MiB share of a 32 MiB L3 that 8 cores use (Zen 4). */
#define RIG_LINE_BYTES 64
#define RIG_L1_LINES 512
#define RIG_L2_LINES 16384
#define RIG_L3_LINES 65536

/* Node bandwidth: 6 channels of DDR5-4800 a node (NPS2 of a 12-channel socket): 6 x 38.4 GB/s; CXL: the 30 GB/s of an
 * x8 PCIe 5 link, which is also the figure of the QEMU HMAT recipe. */
#define RIG_DRAM_MB_PER_S 230400
#define RIG_CXL_MB_PER_S 30000
#define RIG_THREADS_PER_NODE 64

/* Costs that happen in the kernel, where the plugin does not look. Charged in full to the completion time, both for the
 * kernel's own promotion and for libpghot.
 *
 * page move: 1-3 us a 4 KiB page is what migration costs on current machines, by move_pages and on a fault (2009: 5.5-6.8 us, published).
 * moving call: lru_cache_disable() = an expedited RCU grace period plus a work item on every CPU. No figure for 128 CPUs
 *   is published, so this one is an assumption: expedited grace periods are given as tens of microseconds, and waking every
 *   CPU's worker costs as much again. (A move_pages call of one page that is there already: 10-30 us on a busy two-CPU
 *   host, the floor.) Only move_pages, mbind and migrate_pages pay it; a promotion on a hint fault does not.
 * hint fault: 1.4 us, the measured cost of a minor fault. PTE update: 76 ns a page, the measured cost of re-arming by
 *   mprotect, which walks and flushes as task_numa_work does.
 * sample: 1-3 us an IBS interrupt. */
#define RIG_PAGE_MOVE_NS 2000
#define RIG_MOVING_CALL_NS 100000
#define RIG_HINT_FAULT_NS 1400
#define RIG_PTE_UPDATE_NS 76
#define RIG_SAMPLE_NS 2000
