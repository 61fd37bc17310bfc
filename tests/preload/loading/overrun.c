/* SPDX-License-Identifier: Apache-2.0 */
/* With an argument it writes one byte behind a block. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *unused)
{
    for (size_t i = 0; i < 200; i++) {
        free(realloc(memset(malloc(i * 50 + 1), 1, i * 50 + 1), 3000));
        free(calloc(i, 3));
        free(aligned_alloc(64, 640));
    }
    return unused;
}

int main(int argc, char **argv)
{
    (void)argv;
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL)) return 1;
    work(NULL);
    pthread_join(thread, NULL);
    char *volatile block = malloc(100);
    if (argc > 1) block[100] = 1;
    free(block);
    puts("right");
    return 0;
}
