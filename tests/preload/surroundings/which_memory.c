/* SPDX-License-Identifier: Apache-2.0 */
/* Says whether it runs with more rights than its caller, whether the library serves its memory, and that memory works. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "include/pghot/pghot.h"

int main(void)
{
    char *block = malloc(3 << 20);
    if (!block) return 1;
    memset(block, 1, 3 << 20);
    printf("secure %lu, %s\n", getauxval(AT_SECURE), pghot_placement_of ? "libpghot" : "libc");
    free(block);
    return 0;
}
