/* SPDX-License-Identifier: Apache-2.0 */
/* A program linked with -lpghot: the library comes without LD_PRELOAD, or is named there too, and is there once. */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/pghot/pghot.h"

static int copies;

static int count(struct dl_phdr_info *object, size_t bytes, void *unused)
{
    (void)bytes; (void)unused;
    if (strstr(object->dlpi_name, "libpghot.so")) copies++;
    return 0;
}

int main(void)
{
    void *block = malloc(100000);
    if (pghot_placement_of(block) < 0) { fputs("FAIL: blocks are not ours\n", stderr); return 1; }
    free(block);
    dl_iterate_phdr(count, NULL);
    if (copies != 1) { fprintf(stderr, "FAIL: the library is there %d times\n", copies); return 1; }
    puts("right");
    return 0;
}
