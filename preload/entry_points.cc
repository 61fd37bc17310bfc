// SPDX-License-Identifier: Apache-2.0
// The C functions of the malloc family that jemalloc's archive does not bring. Names that mean another one of the
// family go through the visible symbol, as in the GNU C library: a program that replaces malloc and free gets all of
// them. The __libc_ names never do: a program's own malloc may be written on top of them.

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "allocator/extent_registry.h"
#include "allocator/freed_memory.h"
#include "allocator/jemalloc_api.h"
#include "include/pghot/pghot.h"
#include "preload/own_functions.h"
#include "preload/visibility.h"
#include "runtime/base/units.h"

namespace {

using namespace pghot;

// As the GNU C library (from 2.38 on its aligned_alloc alone refuses): an alignment that is no power of two is rounded
// up to one; 0 means any.
size_t usable_alignment(size_t alignment) {
    constexpr size_t kLargest = SIZE_MAX / 2 + 1;
    return alignment > kLargest ? 0 : std::bit_ceil(alignment);
}

template <typename Allocate>
void* aligned_block(size_t alignment, size_t bytes, Allocate allocate) {
    const size_t power = usable_alignment(alignment);
    if (power != 0) return allocate(power, bytes);
    errno = EINVAL;
    return nullptr;
}

// Whole pages, or false for a size that none can hold.
bool round_up_to_page(size_t& bytes) {
    if (bytes > SIZE_MAX - kPageBytes) {
        errno = ENOMEM;
        return false;
    }
    bytes = page_of(bytes + kPageBytes - 1);
    return true;
}

// The product, or false for one that overflows.
bool multiply(size_t count, size_t bytes, size_t& total) {
    if (!__builtin_mul_overflow(count, bytes, &total)) return true;
    errno = ENOMEM;
    return false;
}

// --- each function on jemalloc itself, whoever replaced the visible ones ---

void* own_realloc(void* block, size_t bytes) noexcept {
    void* moved = jemalloc::jemalloc_realloc(block, bytes);
    if (moved == nullptr && bytes != 0) errno = ENOMEM;    // of 0 bytes: freed, which is no failure
    return moved;
}
void* own_reallocarray(void* block, size_t count, size_t bytes) noexcept {
    size_t total = 0;
    return multiply(count, bytes, total) ? own_realloc(block, total) : nullptr;
}
void* own_memalign(size_t alignment, size_t bytes) noexcept {
    return aligned_block(alignment, bytes, jemalloc::jemalloc_aligned_alloc);
}
void* own_valloc(size_t bytes) noexcept { return jemalloc::jemalloc_aligned_alloc(kPageBytes, bytes); }
void* own_pvalloc(size_t bytes) noexcept {
    return round_up_to_page(bytes) ? jemalloc::jemalloc_aligned_alloc(kPageBytes, bytes) : nullptr;
}

// --- statistics ---

size_t statistic(const char* name) {
    size_t value = 0, value_bytes = sizeof value;
    return jemalloc::mallctl(name, &value, &value_bytes, nullptr, 0) == 0 ? value : 0;
}

struct HeapSizes {
    size_t mapped = 0;       // bytes taken from the kernel and not purged
    size_t allocated = 0;    // bytes in blocks of the program
};

HeapSizes heap_sizes() {
    uint64_t epoch = 1;
    size_t epoch_bytes = sizeof epoch;
    jemalloc::mallctl("epoch", &epoch, &epoch_bytes, &epoch, sizeof epoch);    // take fresh numbers
    HeapSizes sizes;
    sizes.allocated = statistic("stats.allocated");
    sizes.mapped = std::max(statistic("stats.mapped"), sizes.allocated);
    return sizes;
}

int clamp_to_int(size_t value) { return static_cast<int>(std::min<size_t>(value, INT_MAX)); }

}    // namespace

namespace pghot {

void* own_function(std::string_view name) {
    constexpr std::string_view kPrefix = "__libc_";
    if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
    const struct {
        std::string_view name;
        void* function;
    } functions[] = {
        {"malloc", reinterpret_cast<void*>(jemalloc::jemalloc_malloc)},
        {"calloc", reinterpret_cast<void*>(jemalloc::jemalloc_calloc)},
        {"realloc", reinterpret_cast<void*>(own_realloc)},
        {"reallocarray", reinterpret_cast<void*>(own_reallocarray)},
        {"free", reinterpret_cast<void*>(jemalloc::jemalloc_free)},
        {"cfree", reinterpret_cast<void*>(jemalloc::jemalloc_free)},
        {"memalign", reinterpret_cast<void*>(own_memalign)},
        {"aligned_alloc", reinterpret_cast<void*>(own_memalign)},
        {"posix_memalign", reinterpret_cast<void*>(jemalloc::jemalloc_posix_memalign)},
        {"valloc", reinterpret_cast<void*>(own_valloc)},
        {"pvalloc", reinterpret_cast<void*>(own_pvalloc)},
        {"malloc_usable_size", reinterpret_cast<void*>(jemalloc::jemalloc_malloc_usable_size)},
    };
    for (const auto& own : functions)
        if (own.name == name) return own.function;
    return nullptr;
}

}    // namespace pghot

extern "C" {

PGHOT_VISIBLE void* realloc(void* block, size_t bytes) noexcept { return own_realloc(block, bytes); }
PGHOT_VISIBLE void* reallocarray(void* block, size_t count, size_t bytes) noexcept {
    size_t total = 0;
    return multiply(count, bytes, total) ? realloc(block, total) : nullptr;
}

PGHOT_VISIBLE void cfree(void* block) noexcept { free(block); }
PGHOT_VISIBLE void free_sized(void* block, size_t) noexcept { free(block); }
PGHOT_VISIBLE void free_aligned_sized(void* block, size_t, size_t) noexcept { free(block); }

PGHOT_VISIBLE void* aligned_alloc(size_t alignment, size_t bytes) noexcept { return own_memalign(alignment, bytes); }
PGHOT_VISIBLE void* memalign(size_t alignment, size_t bytes) noexcept {
    return aligned_block(alignment, bytes, [](size_t power, size_t size) { return aligned_alloc(power, size); });
}
PGHOT_VISIBLE void* valloc(size_t bytes) noexcept { return aligned_alloc(kPageBytes, bytes); }
PGHOT_VISIBLE void* pvalloc(size_t bytes) noexcept {
    return round_up_to_page(bytes) ? aligned_alloc(kPageBytes, bytes) : nullptr;
}

PGHOT_VISIBLE void* __libc_malloc(size_t bytes) noexcept { return jemalloc::jemalloc_malloc(bytes); }
PGHOT_VISIBLE void* __libc_calloc(size_t count, size_t bytes) noexcept {
    return jemalloc::jemalloc_calloc(count, bytes);
}
PGHOT_VISIBLE void* __libc_realloc(void* block, size_t bytes) noexcept { return own_realloc(block, bytes); }
PGHOT_VISIBLE void __libc_free(void* block) noexcept { jemalloc::jemalloc_free(block); }
PGHOT_VISIBLE void* __libc_memalign(size_t alignment, size_t bytes) noexcept { return own_memalign(alignment, bytes); }
PGHOT_VISIBLE void* __libc_valloc(size_t bytes) noexcept { return own_valloc(bytes); }
PGHOT_VISIBLE void* __libc_pvalloc(size_t bytes) noexcept { return own_pvalloc(bytes); }

PGHOT_VISIBLE struct mallinfo2 mallinfo2() noexcept {
    const HeapSizes sizes = heap_sizes();
    struct mallinfo2 info {};
    info.arena = sizes.mapped;
    info.uordblks = sizes.allocated;
    info.fordblks = sizes.mapped - sizes.allocated;
    return info;
}

PGHOT_VISIBLE struct mallinfo mallinfo() noexcept {
    const HeapSizes sizes = heap_sizes();
    struct mallinfo info {};
    info.arena = clamp_to_int(sizes.mapped);
    info.uordblks = clamp_to_int(sizes.allocated);
    info.fordblks = clamp_to_int(sizes.mapped - sizes.allocated);
    return info;
}
PGHOT_VISIBLE struct mallinfo __libc_mallinfo() noexcept { return mallinfo(); }

// Gives freed pages of all arenas back; `pad` has no meaning in jemalloc.
PGHOT_VISIBLE int malloc_trim(size_t) noexcept {
    release_freed_memory();
    return 1;
}

PGHOT_VISIBLE int malloc_info(int options, FILE* stream) noexcept {
    if (options != 0) return EINVAL;
    const HeapSizes sizes = heap_sizes();
    fprintf(stream,
            "<malloc version=\"1\">\n<system type=\"current\" size=\"%zu\"/>\n<aspace type=\"total\" size=\"%zu\"/>\n"
            "</malloc>\n",
            sizes.mapped, sizes.mapped);
    return 0;
}

PGHOT_VISIBLE void malloc_stats() noexcept {
    const HeapSizes sizes = heap_sizes();
    fprintf(stderr, "Total (incl. mmap):\nsystem bytes     = %10zu\nin use bytes     = %10zu\n", sizes.mapped,
            sizes.allocated);
}

// The parameters tune another allocator; they are taken and mean nothing here.
PGHOT_VISIBLE int mallopt(int, int) noexcept { return 1; }
PGHOT_VISIBLE int __libc_mallopt(int, int) noexcept { return 1; }

PGHOT_VISIBLE int pghot_placement_of(const void* address) {
    const HeapExtent extent = extent_registry.find(reinterpret_cast<uintptr_t>(address));
    return extent.ours ? extent.placement : -1;
}

}    // extern "C"
