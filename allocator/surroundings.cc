// SPDX-License-Identifier: Apache-2.0
// What jemalloc's start would ask its surroundings for, under its start lock. A second preload library may wrap these
// functions, look the real one up and allocate: a deadlock. So they are answered here from system calls alone.

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string_view>

#include "allocator/jemalloc_api.h"
#include "allocator/overcommit.h"
#include "allocator/placement.h"
#include "allocator/processors.h"
#include "runtime/kernel/syscalls.h"

extern "C" {

// jemalloc's built-in options.
//   oversize_threshold:0   large blocks stay in their thread's arena; the shared oversize arena purges at once
//   dirty_decay_ms:10000   freed pages stay mapped in for 10 s (jemalloc's default), so that large temporaries are
//   taken
//                          again without faults; 1 s did as well in a loop, -1 saved 10 % more and never gives back
//   zero_realloc:free      realloc(p, 0) as in the GNU C library
//   dss:disabled           never the program's brk
const char* malloc_conf = "oversize_threshold:0,dirty_decay_ms:10000,muzzy_decay_ms:0,zero_realloc:free,dss:disabled";

// MALLOC_CONF is the program's, not ours, and stays unread. The call comes once, before jemalloc's first mapping and
// on one thread: the moment to read PGHOT_PLACEMENT. Where mappings are limited, freed ones must go back.
char* jemalloc_getenv(const char*) {
    pghot::load_placement_rules();
    pghot::jemalloc::je_oversize_threshold = SIZE_MAX;
    static char unlimited[] = "";
    static char limited[] = "retain:false";
    return pghot::sys::mapping_limit_bytes() != UINT64_MAX ? limited : unlimited;
}

ssize_t jemalloc_readlink(const char*, char*, size_t) {
    errno = ENOENT;    // jemalloc puts its caller's errno back
    return -1;
}

long jemalloc_sysconf(int what) {
    if (what == _SC_PAGESIZE) return 4096;    // x86-64
    return pghot::allowed_processors();       // _SC_NPROCESSORS_ONLN, _SC_NPROCESSORS_CONF: nothing else is asked
}

// syscall(2) as jemalloc uses it. Its start reads vm.overcommit_memory, which kernel_overcommits mostly finds out
// without a file, and then whether huge pages are the rule, which only options that are off would ask: that open fails.
// Its messages are dropped, as we never print over a program.
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

// The profiler's: never reached, as no option turns it on.
double jemalloc_exp(double x) { return x; }
double jemalloc_log(double x) { return x; }
double jemalloc_round(double x) { return x; }
int jemalloc_backtrace(void*, void*) { return 5; }    // _URC_END_OF_STACK
unsigned long jemalloc_backtrace_address(void*) { return 0; }

}    // extern "C"
