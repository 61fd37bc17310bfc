/* SPDX-License-Identifier: Apache-2.0 */
/* A library that finds its plugin by its own RUNPATH ($ORIGIN/plugins): libc tells by the return address who asks, so
 * the call must not be a jump. */
#define _GNU_SOURCE
#include <dlfcn.h>

void *open_plugin(int mode)
{
    void *volatile plugin = dlopen("libpghot_test_plugin.so", mode);
    return plugin;
}

void *open_plugin_by_dlmopen(int mode)
{
    void *volatile plugin = dlmopen(LM_ID_BASE, "libpghot_test_plugin.so", mode);
    return plugin;
}
