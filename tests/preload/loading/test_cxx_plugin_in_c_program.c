/* SPDX-License-Identifier: Apache-2.0 */
/* A C program that opens a C++ plug-in into a scope of its own, as Python does with its modules. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "include/pghot/pghot.h"

static void fail(const char *what)
{
    fprintf(stderr, "FAIL: %s\n", what);
    exit(1);
}

static void *in_thread(void *plugin)
{
    const char *(*check)(void) = (const char *(*)(void))dlsym(plugin, "plugin_check");
    const char *wrong = check ? check() : dlerror();
    if (wrong) fail(wrong);
    return NULL;
}

int main(void)
{
    if (!pghot_placement_of) fail("the library is not loaded");
    for (int i = 0; i < 20; i++) {
        void *plugin = dlopen(PLUGIN_IN_CXX, i % 2 == 0 ? RTLD_NOW : RTLD_LAZY | RTLD_DEEPBIND);
        if (!plugin) fail(dlerror());
        pthread_t thread;
        if (pthread_create(&thread, NULL, in_thread, plugin)) fail("no thread");
        pthread_join(thread, NULL);
        in_thread(plugin);
        dlclose(plugin);
    }
    puts("right");
    return 0;
}
