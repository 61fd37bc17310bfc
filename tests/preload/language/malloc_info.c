/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes malloc_info while some blocks live, and says on standard error how many bytes they have. */
int main(void)
{
    enum { kBlocks = 500, kBytes = 40000 };
    for (int i = 0; i < kBlocks; i++) {
        void *volatile block = malloc(kBytes);
        memset(block, 1, kBytes);
    }
    fprintf(stderr, "%d\n", kBlocks * kBytes);
    return malloc_info(0, stdout);
}
