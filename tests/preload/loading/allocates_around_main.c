/* SPDX-License-Identifier: Apache-2.0 */
/* A library that the program is linked with: its constructor runs after ours and its destructor at any time to ours. */
#include <stdio.h>
#include <stdlib.h>

static char *line;

__attribute__((constructor)) static void before_main(void)
{
    if (asprintf(&line, "a line of %d bytes and more: %*s", 5000, 5000, "x") < 0) abort();
}
__attribute__((destructor)) static void after_main(void)
{
    line = realloc(line, 3000000);
    if (!line || line[0] != 'a') abort();
    free(line);
    free(calloc(1000, 1000));
}

int line_is_kept(void) { return line && line[0] == 'a'; }
