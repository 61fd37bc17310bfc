/* SPDX-License-Identifier: Apache-2.0 */
/* Memory is wanted before the first constructor and after the last destructor, and by threads on their way out. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/pghot/pghot.h"

static char *early;
static pthread_key_t key;

static void fail(const char *what)
{
    fprintf(stderr, "FAIL: %s\n", what);
    _exit(1);
}

static char *block(size_t bytes)
{
    char *made = malloc(bytes);
    if (!made) fail("no memory");
    memset(made, 'x', bytes);
    return made;
}

static void before_constructors(int argc, char **argv, char **environment)
{
    (void)argc; (void)argv; (void)environment;
    early = block(5000000);
    free(block(100));
}
__attribute__((section(".preinit_array"), used)) static void (*first)(int, char **, char **) = before_constructors;

__attribute__((destructor)) static void after_main(void) { free(block(3000000)); }
static void at_exit(void) { free(block(100)); free(block(70000)); }

/* Runs after jemalloc's own destructor for this thread as well, as it sets its value anew. */
static void thread_ends(void *value)
{
    static __thread int rounds;
    free(value);
    if (++rounds < 3) pthread_setspecific(key, block(50000));
}

static void *thread(void *unused)
{
    pthread_setspecific(key, block(1000));
    return unused;
}

int main(void)
{
    if (!pghot_placement_of) fail("the library is not loaded");
    if (!early || early[4999999] != 'x' || pghot_placement_of(early) < 0) fail("early block lost");
    free(early);
    atexit(at_exit);
    pthread_key_create(&key, thread_ends);
    for (int i = 0; i < 2000; i++) {
        pthread_t id;
        if (pthread_create(&id, NULL, thread, NULL)) fail("no thread");
        pthread_join(id, NULL);
    }
    puts("right");
    return 0;
}
