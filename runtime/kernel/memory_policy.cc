// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/memory_policy.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/refused_calls.h"

namespace pghot::sys {
namespace {

// linux/mempolicy.h of build hosts before 5.15 lacks it; the value is ABI.
constexpr int kPreferredMany = 5;

// The kernel reads maxnode - 1 bits.
constexpr unsigned long kMaskBits = 64 + 1;

long bind(uintptr_t address, size_t bytes, int mode, uint64_t nodes, unsigned flags) {
    const int kept = errno;
    const unsigned long mask[2] = {nodes, 0};
    long result = syscall(SYS_mbind, address, bytes, mode, mask, kMaskBits, flags);
    if (result != 0) result = -errno;
    errno = kept;
    return result;
}

long noted(long result) {
    if (result != 0) refused_calls.note(KernelCall::mbind, static_cast<int>(-result));
    return result;
}

}    // namespace

long set_memory_preference(uintptr_t address, size_t bytes, MemoryPreference preference, uint64_t nodes,
                           bool move_present) {
    const unsigned flags = move_present ? MPOL_MF_MOVE : 0;
    if (preference == MemoryPreference::kInterleaved) return noted(bind(address, bytes, MPOL_INTERLEAVE, nodes, flags));
    const long result = bind(address, bytes, kPreferredMany, nodes, flags);
    if (result != -EINVAL) return noted(result);
    const uint64_t lowest = nodes & (~nodes + 1);
    return noted(bind(address, bytes, MPOL_PREFERRED, lowest, flags));
}

}    // namespace pghot::sys
