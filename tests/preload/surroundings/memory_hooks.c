/* SPDX-License-Identifier: Apache-2.0 */
/* usage: memory_hooks ucx | ucx_all_events | open_mpi
 * Communication libraries keep buffers registered and must hear of every page that goes back to the kernel, so they hook
 * themselves into the C library. Says which of the hooks work by the library's own test, and whether memory that is
 * freed is heard of. Status 77 where the library is missing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kMissing = 77, kBytes = 64 << 20 };

static uintptr_t watched_begin, watched_end;
static size_t heard_bytes;

static void hear(uintptr_t begin, size_t bytes)
{
    const uintptr_t end = begin + bytes;
    const uintptr_t first = begin > watched_begin ? begin : watched_begin;
    const uintptr_t last = end < watched_end ? end : watched_end;
    if (last > first) heard_bytes += last - first;
}

static void watch(void *at, size_t bytes)
{
    watched_begin = (uintptr_t)at;
    watched_end = watched_begin + bytes;
    heard_bytes = 0;
}

static void say_whether_heard(const char *what)
{
    printf("%s: %s\n", what, heard_bytes >= kBytes / 10 * 9 ? "heard" : "missed");
}

/* What a program does with pages; then what the allocator does when the program frees them. */
static void give_pages_back(void)
{
    char *mapping = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mapping, 1, kBytes);
    watch(mapping, kBytes);
    madvise(mapping, kBytes, MADV_DONTNEED);
    say_whether_heard("madvise");
    watch(mapping, kBytes);
    munmap(mapping, kBytes);
    say_whether_heard("munmap");

    char *block = malloc(kBytes);
    memset(block, 1, kBytes);
    watch(block, kBytes);
    free(block);
    malloc_trim(0);
    say_whether_heard("free");
}

/* From ucm/api/ucm.h, which Debian does not ship: the event bits, and the start of the event of unmapped memory. */
static const struct {
    const char *name;
    int bit;
} ucm_events[] = {{"mmap", 0},  {"munmap", 1},  {"mremap", 2},     {"shmat", 3},       {"shmdt", 4},
                  {"sbrk", 5},  {"madvise", 6}, {"vm mapped", 16}, {"vm unmapped", 17}};
enum { kUcmVmUnmapped = 1 << 17, kUcmAllEvents = 0x3007f };
struct ucm_unmapped {
    void *address;
    size_t bytes;
};

static void ucm_heard(int type, void *event, void *argument)
{
    const struct ucm_unmapped *unmapped = event;
    (void)argument;
    if (type & kUcmVmUnmapped) hear((uintptr_t)unmapped->address, unmapped->bytes);
}

static int ucx(int wanted_events)
{
    void *library = dlopen("libucs.so.0", RTLD_NOW | RTLD_GLOBAL);    /* brings libucm */
    if (!library) {
        puts("libucs.so.0 is missing: install libucx0");
        return kMissing;
    }
    int (*set_handler)(int, int, void (*)(int, void *, void *), void *) = dlsym(library, "ucm_set_event_handler");
    int (*test_events)(int) = dlsym(library, "ucm_test_events");
    if (!set_handler || !test_events) return 1;
    printf("handler: %d\n", set_handler(wanted_events, 1000, ucm_heard, NULL));
    for (size_t i = 0; i < sizeof ucm_events / sizeof *ucm_events; i++)
        printf("%s: %d\n", ucm_events[i].name, test_events(1 << ucm_events[i].bit));
    give_pages_back();
    return 0;
}

static void open_mpi_heard(void *address, size_t bytes, void *argument, int from_allocator)
{
    (void)argument, (void)from_allocator;
    hear((uintptr_t)address, bytes);
}

static int open_mpi(void)
{
    void *library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        puts("libmpi.so.40 is missing: install openmpi-bin");
        return kMissing;
    }
    int (*initialize)(int *, char ***) = dlsym(library, "MPI_Init");
    int (*finalize)(void) = dlsym(library, "MPI_Finalize");
    int (*open_framework)(void *, int) = dlsym(library, "mca_base_framework_open");
    int (*level)(void) = dlsym(library, "opal_mem_hooks_support_level");
    int (*on_release)(void (*)(void *, size_t, void *, int), void *) = dlsym(library, "opal_mem_hooks_register_release");
    void *hooks = dlsym(library, "opal_memory_base_framework");
    if (!initialize || !finalize || !open_framework || !level || !on_release || !hooks) return 1;
    if (initialize(NULL, NULL) || open_framework(hooks, 0)) return 1;
    printf("handler: %d\nsupport level: %d\n", on_release(open_mpi_heard, NULL), level());
    give_pages_back();
    return finalize();
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "ucx")) return ucx(kUcmVmUnmapped);
    if (argc > 1 && !strcmp(argv[1], "ucx_all_events")) return ucx(kUcmAllEvents);
    if (argc > 1 && !strcmp(argv[1], "open_mpi")) return open_mpi();
    return 2;
}
