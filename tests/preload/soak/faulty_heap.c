/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: glibc's allocator with one fault, FAULT=calloc (a byte not zero), realloc (a page lost while a large block
 * moves) or twice (a live block handed out again; nothing is ever freed, so that glibc itself does not notice). */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void __libc_free(void *block);

enum { kLarge = 256 << 10, kOfNoContainer = 64 << 10, kPage = 4096 };

static int fault_is(const char *name)
{
    const char *fault = getenv("FAULT");
    return fault && strcmp(fault, name) == 0;
}

void *calloc(size_t count, size_t bytes)
{
    char *block = __libc_calloc(count, bytes);
    if (block && count * bytes > kLarge && fault_is("calloc")) block[count * bytes - 1] = 1;
    return block;
}

void *realloc(void *before, size_t bytes)
{
    if (before && fault_is("twice")) {
        const size_t old_bytes = malloc_usable_size(before);
        return memcpy(__libc_malloc(bytes), before, old_bytes < bytes ? old_bytes : bytes);
    }
    char *block = __libc_realloc(before, bytes);
    if (block && block != before && bytes > kLarge && fault_is("realloc")) memset(block + 10 * kPage, 0, kPage);
    return block;
}

void *malloc(size_t bytes)
{
    static _Thread_local void *handed_out;
    static _Thread_local size_t bytes_handed_out;
    if (handed_out && bytes > kOfNoContainer && bytes <= bytes_handed_out && fault_is("twice")) {
        void *again = handed_out;
        handed_out = NULL;
        return again;
    }
    void *block = __libc_malloc(bytes);
    if (bytes > kLarge) {
        handed_out = block;
        bytes_handed_out = bytes;
    }
    return block;
}

void free(void *block)
{
    if (!fault_is("twice")) __libc_free(block);
}
