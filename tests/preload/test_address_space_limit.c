/* SPDX-License-Identifier: Apache-2.0 */
/* Under RLIMIT_AS, as batch systems set it: a block that grows step by step to 40 % of the limit gets there, since
 * freed address space goes back; what cannot fit is an ordinary failure, and afterwards everything goes on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "include/pghot/pghot.h"

enum { kLimitMib = 1024, kTopMib = 400 };

static int fail(const char *what, size_t mib)
{
    fprintf(stderr, "FAIL: %s at %zu MiB\n", what, mib);
    return 1;
}

static int limited_life(void)
{
    size_t bytes = 1 << 20;
    char *block = malloc(bytes);
    while (bytes < (size_t)kTopMib << 20) {
        size_t more = bytes + bytes / 10;
        char *grown = realloc(block, more);
        if (!grown) return fail("realloc failed", more >> 20);
        grown[more - 1] = 1;
        block = grown;
        bytes = more;
    }
    errno = 0;
    volatile size_t too_much = (size_t)kLimitMib << 20;
    if (malloc(too_much)) return fail("more than the limit was granted", kLimitMib);
    if (errno != ENOMEM) return fail("errno is not ENOMEM", kLimitMib);
    free(block);
    block = malloc((size_t)kTopMib << 20);
    if (!block) return fail("no memory after a failure", kTopMib);
    if (pghot_placement_of(block) < 0) return fail("not registered", kTopMib);
    free(block);
    puts("right");
    return 0;
}

int main(int argc, char **argv)
{
    if (!pghot_placement_of) return fail("the library is not loaded", 0);
    if (argc > 1) return limited_life();
    struct rlimit limit = {(rlim_t)kLimitMib << 20, (rlim_t)kLimitMib << 20};
    if (setrlimit(RLIMIT_AS, &limit)) return fail("setrlimit", 0);
    execl(argv[0], argv[0], "limited", (char *)NULL);
    return fail("exec", 0);
}
