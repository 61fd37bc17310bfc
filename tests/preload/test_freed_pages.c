// SPDX-License-Identifier: Apache-2.0
// Large temporaries take their pages again without faults, and what a program frees for good goes back at once.
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>

#include "tests/preload/cases.h"

#define MIB ((size_t)1 << 20)

static char* touched(size_t bytes) {
    char* block = malloc(bytes);
    REQUIRE(block != NULL);
    for (size_t at = 0; at < bytes; at += 4096) block[at] = 1;
    return block;
}

static size_t resident_mib(void) {
    FILE* statm = fopen("/proc/self/statm", "r");
    size_t pages = 0;
    REQUIRE(statm != NULL && fscanf(statm, "%*u %zu", &pages) == 1);
    fclose(statm);
    return pages / 256;
}

static size_t faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_minflt;
}

// Twenty buffers of 5 to 25 MiB, as array codes free and allocate them. Plain jemalloc faults every page in anew.
static void temporaries_take_their_pages_again(void) {
    enum { BUFFERS = 20, WARM = 200, ROUNDS = 600 };
    static char* buffers[BUFFERS];
    uint64_t random = 12345;
    size_t pages = 0, before = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        if (round == WARM) before = faults();
        random = random * 6364136223846793005u + 1442695040888963407u;
        const size_t bytes = 5 * MIB + (random >> 20) % (20 * MIB);
        char** buffer = &buffers[(random >> 33) % BUFFERS];
        free(*buffer);
        *buffer = touched(bytes);
        if (round >= WARM) pages += bytes / 4096;
    }
    REQUIRE(faults() - before < pages / 5);
    for (int i = 0; i < BUFFERS; ++i) free(buffers[i]);
    REQUIRE(resident_mib() < 64 + 24);
}

// A thread allocates, another one frees; at most SLOTS blocks of 144 KiB on average live at a time.
enum { SLOTS = 1024, HANDED = 100000 };
static char* slots[SLOTS];
static size_t put, taken;

static void* free_what_comes(void* unused) {
    for (size_t i = 0; i < HANDED; ++i) {
        while (__atomic_load_n(&put, __ATOMIC_ACQUIRE) == i) sched_yield();
        free(slots[i % SLOTS]);
        __atomic_store_n(&taken, i + 1, __ATOMIC_RELEASE);
    }
    return unused;
}

static void blocks_that_another_thread_frees_are_taken_again(void) {
    const pthread_t consumer = start_thread(free_what_comes, NULL);
    uint64_t random = 3;
    for (size_t i = 0; i < HANDED; ++i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const size_t bytes = 32768 + (random >> 33) % (224 * 1024);
        while (i - __atomic_load_n(&taken, __ATOMIC_ACQUIRE) >= SLOTS) sched_yield();
        char* block = malloc(bytes);
        block[0] = block[bytes - 1] = 1;
        slots[i % SLOTS] = block;
        __atomic_store_n(&put, i + 1, __ATOMIC_RELEASE);
    }
    pthread_join(consumer, NULL);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    REQUIRE(usage.ru_maxrss / 1024 < 400);    // twice what lives, at most; 586 with extents that are never taken again
}

static void what_is_freed_goes_back(size_t block_bytes) {
    const size_t count = 480 * MIB / block_bytes;
    char** blocks = malloc(count * sizeof *blocks);
    for (size_t i = 0; i < count; ++i) blocks[i] = touched(block_bytes);
    REQUIRE(resident_mib() >= 480);
    for (size_t i = 0; i < count; ++i) free(blocks[i]);
    free(blocks);
    REQUIRE(resident_mib() < 64 + 24);
}
static void large_blocks_go_back(void) { what_is_freed_goes_back(20 * MIB); }
static void blocks_of_a_mebibyte_go_back(void) { what_is_freed_goes_back(MIB); }
static void blocks_of_pages_go_back(void) { what_is_freed_goes_back(5000); }

int main(int count, char** arguments) {
    const struct Case cases[] = {
        {"TemporariesTakeTheirPagesAgain", temporaries_take_their_pages_again},
        {"BlocksThatAnotherThreadFreesAreTakenAgain", blocks_that_another_thread_frees_are_taken_again},
        {"LargeBlocksGoBack", large_blocks_go_back},
        {"BlocksOfAMebibyteGoBack", blocks_of_a_mebibyte_go_back},
        {"BlocksOfPagesGoBack", blocks_of_pages_go_back},
    };
    return RUN_CASE(count, arguments, cases);
}
