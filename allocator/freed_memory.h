// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pghot {

// Gives back what lies freed in all arenas: mappings where they are limited, pages elsewhere. Takes jemalloc's locks.
// Only when asked, and on the way to failing: a limit that one thread's freed memory fills must not refuse another
// thread. Needs little stack.
void release_freed_memory();

}    // namespace pghot
