// SPDX-License-Identifier: Apache-2.0
// Growing a large array neither copies it nor needs its memory twice, and leaves no trail of mappings behind.
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "tests/preload/cases.h"

#define MIB ((size_t)1 << 20)
enum { ARRAYS = 4 };

static void write_words(uint64_t* words, size_t begin_bytes, size_t end_bytes, uint64_t seed) {
    for (size_t i = begin_bytes / 8; i < end_bytes / 8; ++i) words[i] = i * 31 + seed;
}

static int words_are_right(const uint64_t* words, size_t bytes, uint64_t seed) {
    for (size_t i = 0; i < bytes / 8; ++i)
        if (words[i] != i * 31 + seed) return 0;
    return 1;
}

static size_t mappings(void) {
    FILE* maps = fopen("/proc/self/maps", "r");
    size_t lines = 0;
    for (int c; (c = getc(maps)) != EOF;) lines += c == '\n';
    fclose(maps);
    return lines;
}

static size_t peak_mib(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss / 1024;
}

// Four arrays in turn, so that none can grow where it is.
static void grow_arrays(uint64_t* arrays[ARRAYS], size_t to, uint64_t seed) {
    for (size_t bytes = MIB; bytes <= to; bytes += MIB)
        for (uint64_t k = 0; k < ARRAYS; ++k) {
            arrays[k] = realloc(arrays[k], bytes);
            REQUIRE(arrays[k] != NULL);
            write_words(arrays[k], bytes - MIB, bytes, seed + k);
        }
}

static void growing_needs_no_memory_twice(void) {
    uint64_t* arrays[ARRAYS] = {0};
    const size_t before = mappings();
    grow_arrays(arrays, 128 * MIB, 1);
    REQUIRE(peak_mib() < ARRAYS * 128 + 32);    // the largest copy alone would add 96
    for (uint64_t k = 0; k < ARRAYS; ++k) {
        REQUIRE(words_are_right(arrays[k], 128 * MIB, 1 + k));
        arrays[k] = realloc(arrays[k], 5 * MIB);
        REQUIRE(words_are_right(arrays[k], 5 * MIB, 1 + k));
        free(arrays[k]);
    }
    REQUIRE(mappings() < before + 40);
}

// Each part of a block that is a mapping of its own moves by itself; a block of too many is copied.
static void grow_a_block_of(size_t parts) {
    const size_t old = 24 * MIB;
    uint64_t* block = malloc(old);
    write_words(block, 0, old, parts);
    char* page = (char*)(((uintptr_t)block + 4095) & ~(uintptr_t)4095);
    for (size_t i = 0; i < parts; i += 2) madvise(page + i * 65536, 4096, MADV_DONTDUMP);
    block = realloc(block, 3 * old);
    REQUIRE(block != NULL && words_are_right(block, old, parts));
    write_words(block, old, 3 * old, parts);
    REQUIRE(words_are_right(block, 3 * old, parts));
    free(block);
}

static void blocks_of_many_mappings_keep_their_contents(void) {
    grow_a_block_of(10);
    grow_a_block_of(200);
}

// A few more than may be moved, with one page in use each; those are copied whole. vm.max_map_count is 65530.
static void many_arrays_leave_room_for_other_mappings(void) {
    enum { COUNT = 1056 };
    static uint64_t* blocks[COUNT];
    for (size_t bytes = 16 * MIB; bytes <= 32 * MIB; bytes += 8 * MIB)
        for (size_t k = 0; k < COUNT; ++k) {
            blocks[k] = realloc(blocks[k], bytes);
            REQUIRE(blocks[k] != NULL);
            if (bytes == 16 * MIB) write_words(blocks[k], 0, 4096, k);
            REQUIRE(words_are_right(blocks[k], 4096, k));
        }
    REQUIRE(mappings() < 20000);
    for (size_t k = 0; k < COUNT; ++k) {
        blocks[k] = realloc(blocks[k], 3 * MIB);    // too small to be moved ever again
        REQUIRE(words_are_right(blocks[k], 4096, k));
    }
    for (size_t k = 0; k < COUNT; ++k) free(blocks[k]);
    REQUIRE(mappings() < 200);
}

static void* grow_and_check(void* seed) {
    uint64_t* arrays[ARRAYS] = {0};
    grow_arrays(arrays, 40 * MIB, (uintptr_t)seed);
    for (uint64_t k = 0; k < ARRAYS; ++k) {
        REQUIRE(words_are_right(arrays[k], 40 * MIB, (uintptr_t)seed + k));
        free(arrays[k]);
    }
    return NULL;
}

static void threads_grow_arrays_at_once(void) {
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; ++i) threads[i] = start_thread(grow_and_check, (void*)(i * 100));
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
}

static void a_forked_child_and_its_parent_grow_the_same_array(void) {
    uint64_t* block = malloc(20 * MIB);
    write_words(block, 0, 20 * MIB, 7);
    const pid_t child = fork_child();
    block = realloc(block, 40 * MIB);
    REQUIRE(words_are_right(block, 20 * MIB, 7));
    write_words(block, 0, 40 * MIB, (uint64_t)child);
    REQUIRE(words_are_right(block, 40 * MIB, (uint64_t)child));
    if (child == 0) _exit(0);
    REQUIRE(end_of(child) == 0);
    free(block);
}

int main(int count, char** arguments) {
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);    // huge pages of partly used memory would count in the peak
    const struct Case cases[] = {
        {"GrowingNeedsNoMemoryTwice", growing_needs_no_memory_twice},
        {"BlocksOfManyMappingsKeepTheirContents", blocks_of_many_mappings_keep_their_contents},
        {"ManyArraysLeaveRoomForOtherMappings", many_arrays_leave_room_for_other_mappings},
        {"ThreadsGrowArraysAtOnce", threads_grow_arrays_at_once},
        {"ForkedChildAndParentGrowTheSameArray", a_forked_child_and_its_parent_grow_the_same_array},
    };
    return RUN_CASE(count, arguments, cases);
}
