// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void __libc_free(void*);
void* __libc_memalign(size_t, size_t);
void* __libc_valloc(size_t);
void* __libc_pvalloc(size_t);
}

// The compiler must not know sizes and alignments, or it folds calls and warns.
inline volatile size_t opaque_zero = 0;
inline size_t opaque(size_t value) { return value + opaque_zero; }

inline bool is_aligned(const void* block, size_t alignment) {
    return reinterpret_cast<uintptr_t>(block) % alignment == 0;
}

// Every C function that hands out memory, as one of a size.
struct WayToAllocate {
    const char* name;
    size_t alignment;
    void* (*make)(size_t bytes);
};

inline void* make_by_posix_memalign(size_t bytes) {
    void* block = nullptr;
    return posix_memalign(&block, 64, bytes) == 0 ? block : nullptr;
}

inline constexpr WayToAllocate kWaysToAllocate[] = {
    {"malloc", 16, [](size_t bytes) { return malloc(bytes); }},
    {"calloc(1, n)", 16, [](size_t bytes) { return calloc(1, bytes); }},
    {"calloc(n, 1)", 16, [](size_t bytes) { return calloc(bytes, 1); }},
    {"realloc(null, n)", 16, [](size_t bytes) { return realloc(nullptr, bytes); }},
    {"reallocarray(null, n, 1)", 16, [](size_t bytes) { return reallocarray(nullptr, bytes, 1); }},
    {"memalign", 64, [](size_t bytes) { return memalign(64, bytes); }},
    {"aligned_alloc", 64, [](size_t bytes) { return aligned_alloc(64, bytes); }},
    {"posix_memalign", 64, make_by_posix_memalign},
    {"valloc", 4096, [](size_t bytes) { return valloc(bytes); }},
    {"pvalloc", 4096, [](size_t bytes) { return pvalloc(bytes); }},
    {"__libc_malloc", 16, [](size_t bytes) { return __libc_malloc(bytes); }},
    {"__libc_calloc", 16, [](size_t bytes) { return __libc_calloc(1, bytes); }},
    {"__libc_realloc", 16, [](size_t bytes) { return __libc_realloc(nullptr, bytes); }},
    {"__libc_memalign", 64, [](size_t bytes) { return __libc_memalign(64, bytes); }},
    {"__libc_valloc", 4096, [](size_t bytes) { return __libc_valloc(bytes); }},
    {"__libc_pvalloc", 4096, [](size_t bytes) { return __libc_pvalloc(bytes); }},
};
