/* SPDX-License-Identifier: Apache-2.0 */
/* usage: late_dlopen LIBRARY refused|taken
 * A program that was not preloaded opens the library while it runs, in a thread, with blocks alive. Whether it comes or
 * not, the program goes on with the heap that it has; threads come and go, before and after dlclose. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 2000 };
static char *blocks[kBlocks];
static const char *library;
static int wanted;

static void fail(const char *what)
{
    fprintf(stderr, "FAIL: %s\n", what);
    exit(1);
}

static void *allocate(void *unused)
{
    for (size_t bytes = 1; bytes < 5000000; bytes *= 3) free(memset(malloc(bytes), 1, bytes));
    return unused;
}

static void some_threads(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, allocate, NULL)) fail("no thread");
        pthread_join(thread, NULL);
    }
}

static void use(void *handle)
{
    void *(*make)(size_t) = (void *(*)(size_t))dlsym(handle, "malloc");
    void (*take)(void *) = (void (*)(void *))dlsym(handle, "free");
    if (!make || !take) fail("no malloc in the library");
    for (size_t bytes = 1; bytes < 5000000; bytes *= 3) take(memset(make(bytes), 1, bytes));
}

static void *open_late(void *unused)
{
    void *handle = dlopen(library, RTLD_NOW);
    if (!handle) {
        const char *error = dlerror();
        if (wanted) fail(error);
        if (!error || !strstr(error, library) || !strstr(error, "static TLS block")) fail(error ? error : "no dlerror");
        if (dlerror()) fail("more than one dlerror");
        return unused;
    }
    if (!wanted) fail("it was taken: README.md says that it cannot be");
    use(handle);
    if (dlclose(handle)) fail(dlerror());
    return unused;    /* the thread ends after the library was closed */
}

int main(int argc, char **argv)
{
    if (argc != 3) fail("usage");
    library = argv[1];
    wanted = strcmp(argv[2], "taken") == 0;
    for (int i = 0; i < kBlocks; i++) blocks[i] = memset(malloc((size_t)i * 7 + 1), i & 255, (size_t)i * 7 + 1);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        some_threads();
        if (pthread_create(&thread, NULL, open_late, NULL)) fail("no thread");
        pthread_join(thread, NULL);
        open_late(NULL);
    }
    some_threads();
    for (int i = 0; i < kBlocks; i++) {
        blocks[i] = realloc(blocks[i], 20000);
        if (blocks[i][i * 7] != (char)i) fail("a block lost its bytes");
        free(blocks[i]);
    }
    puts("right");
    return 0;
}
