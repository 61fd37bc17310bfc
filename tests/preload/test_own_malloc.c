/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose own malloc family counts calls and hands them on to the __libc_ names, as leak checkers do. Those
 * names must lead to an allocator, never back to the program's malloc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/pghot/pghot.h"

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static volatile int calls;

void *malloc(size_t bytes) { calls++; return __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { calls++; return __libc_calloc(count, bytes); }
void *realloc(void *block, size_t bytes) { calls++; return __libc_realloc(block, bytes); }
void free(void *block) { calls++; __libc_free(block); }

int main(void)
{
    if (!pghot_placement_of) { fputs("FAIL: the library is not loaded\n", stderr); return 1; }
    calls = 0;
    char *text = strdup("copied by libc, freed by the program");
    text = realloc(text, 10000);
    if (!text || strncmp(text, "copied", 6) != 0) { fputs("FAIL: contents lost\n", stderr); return 1; }
    if (pghot_placement_of(text) < 0) { fputs("FAIL: __libc_malloc is not ours\n", stderr); return 1; }
    free(text);
    if (calls != 3) { fprintf(stderr, "FAIL: the program's functions saw %d calls, not 3\n", calls); return 1; }
    puts("right");
    return 0;
}
