/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in that allocates when it is loaded, frees when it is closed, and exchanges blocks with the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 40 };

static char *blocks[kBlocks];
static char *name;

__attribute__((constructor)) static void loaded(void)
{
    for (int i = 0; i < kBlocks; i++) blocks[i] = memset(malloc((size_t)1 << (i % 22)), 1, (size_t)1 << (i % 22));
    if (asprintf(&name, "plug-in of %d blocks", kBlocks) < 0) abort();
}

__attribute__((destructor)) static void closed(void)
{
    for (int i = 0; i < kBlocks; i++) free(blocks[i]);
    free(name);
}

char *plugin_make(size_t bytes) { return memset(malloc(bytes), 'p', bytes); }
char *plugin_grow(char *block, size_t bytes) { return realloc(block, bytes); }
void plugin_take(char *block) { free(block); }
