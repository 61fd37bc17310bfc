/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose constructor registers fork handlers before anybody has allocated: it is loaded after the preload
 * library, so its constructor would run first. Its handlers allocate, which dead-locks unless the allocator locks
 * itself up after them and opens itself before them. */
#include <pthread.h>
#include <stdlib.h>

int early_handler_calls;

/* Larger than any thread cache, so that the arena's own locks are needed. */
static void allocate(void)
{
    char *block = malloc(200000);
    if (block) block[0] = 1;
    free(block);
    free(malloc(20000000));
    early_handler_calls++;
}

__attribute__((constructor)) static void register_handlers(void) { pthread_atfork(allocate, allocate, allocate); }
