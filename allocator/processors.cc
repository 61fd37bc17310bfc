// SPDX-License-Identifier: Apache-2.0
#include "allocator/processors.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/kernel/answer.h"

namespace pghot {

unsigned allowed_processors() {
    unsigned long mask[128];
    const long bytes = answer(KernelCall::sched_getaffinity, syscall(SYS_sched_getaffinity, 0, sizeof mask, mask));
    unsigned processors = 0;
    for (long word = 0; word < bytes / static_cast<long>(sizeof mask[0]); ++word)
        processors += static_cast<unsigned>(__builtin_popcountl(mask[word]));
    return processors > 0 ? processors : 1;
}

}    // namespace pghot
