/* SPDX-License-Identifier: Apache-2.0 */
/* A program with large static thread-local arrays (Fortran's threadprivate COMMON): the C library takes them out of the
 * stacks of the library's threads too. The sizes are those that nearly fill such a stack. The report at exit is
 * written by a thread of the library on every machine. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static __thread char block[TLS_KIB * 1024];

int main(void)
{
    memset(block, 1, sizeof block);
    puts("right");
    return 0;
}
