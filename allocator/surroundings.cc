// SPDX-License-Identifier: Apache-2.0
// What jemalloc's start would ask its surroundings for, under its start lock. A second preload library may wrap these
// functions, look the real one up and allocate: a deadlock. So they are answered here from system calls alone.

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "allocator/jemalloc_api.h"
#include "allocator/overcommit.h"
#include "allocator/placement.h"
#include "allocator/processors.h"
#include "runtime/kernel/syscalls.h"

namespace {

// CPUs that this process may use, from jemalloc's start on.
constinit unsigned processors = 1;

}    // namespace

extern "C" {

// jemalloc's built-in options.
//   oversize_threshold:0   large blocks stay in their thread's arena; a shared one for them purges at once
//   dirty_decay_ms:10000   freed pages stay mapped in for at most 10 s while the arena is used (jemalloc's default)
//   lg_extent_max_active_fit:8
//                          a freed extent serves blocks down to 1/256 of it. With jemalloc's 1/64 what one thread hands
//                          to another that frees it grew into extents too large for the next block, 586 MiB where 166
//                          do
//   tcache_max:57344       thread caches up to 56 KiB, jemalloc's 32 KiB end where array codes begin; a pair of 48 KiB
//   is
//                          five times as fast. Below the 64 KiB where size rules begin: caches know no placement
//   zero_realloc:free      realloc(p, 0) as in the GNU C library
//   dss:disabled           never the program's brk
//   trust_madvise:true     no trial at every start whether MADV_DONTNEED empties pages (QEMU's user mode did not before
//                          7.1)
const char* malloc_conf =
    "oversize_threshold:0,dirty_decay_ms:10000,muzzy_decay_ms:0,lg_extent_max_active_fit:8,"
    "tcache_max:57344,zero_realloc:free,dss:disabled,trust_madvise:true";

// MALLOC_CONF is the program's, not ours, and stays unread. The call comes once, before jemalloc's first mapping and
// on one thread: the moment to read PGHOT_PLACEMENT. Where mappings are limited, freed ones must go back.
char* jemalloc_getenv(const char*) {
    pghot::load_placement_rules();
    processors = pghot::allowed_processors();
    static char unlimited[] = "";
    static char limited[] = "retain:false";
    return pghot::sys::mapping_limit_bytes() == UINT64_MAX ? unlimited : limited;
}

ssize_t jemalloc_readlink(const char*, char*, size_t) {
    errno = ENOENT;    // jemalloc puts its caller's errno back
    return -1;
}

long jemalloc_sysconf(int what) {
    if (what == _SC_PAGESIZE) return 4096;    // x86-64
    return processors;                        // _SC_NPROCESSORS_ONLN, _SC_NPROCESSORS_CONF: nothing else is asked
}

// Only counted. jemalloc takes an error for an answer, which it would be with more CPUs than the set holds.
int jemalloc_sched_getaffinity(int, size_t bytes, unsigned char* set) {
    memset(set, 0, bytes);
    for (unsigned cpu = 0; cpu < processors && cpu < bytes * 8; ++cpu) set[cpu / 8] |= 1U << cpu % 8;
    return 0;
}

// syscall(2) as jemalloc uses it. Its start reads vm.overcommit_memory, which kernel_overcommits knows, and then
// whether huge pages are the rule, which only options that are off would ask: that open fails. Its messages are
// dropped, as we never print over a program.
long jemalloc_system_call(long number, long first, char* second, size_t third) {
    constexpr long kNoRealDescriptor = 1L << 30;
    switch (number) {
        case SYS_open: {
            static constexpr std::string_view kOvercommit = "/proc/sys/vm/overcommit_memory";
            const bool asks_overcommit = kOvercommit == reinterpret_cast<const char*>(first);
            return asks_overcommit ? kNoRealDescriptor : -1;
        }
        case SYS_read:
            *second = pghot::kernel_overcommits() ? '0' : '2';
            return 1;
        case SYS_write:
            return static_cast<long>(third);
        default:
            return 0;    // SYS_close
    }
}

void __wrap_je_eset_init(pghot::jemalloc::ExtentSet* set, uint32_t state) {
    memcpy(reinterpret_cast<char*>(set) + pghot::jemalloc::kExtentSetStateAt, &state, sizeof state);
}

// The profiler's: never reached, as no option turns it on.
double jemalloc_exp(double x) { return x; }
double jemalloc_log(double x) { return x; }
double jemalloc_round(double x) { return x; }
int jemalloc_backtrace(void*, void*) { return 5; }    // _URC_END_OF_STACK
unsigned long jemalloc_backtrace_address(void*) { return 0; }

}    // extern "C"
