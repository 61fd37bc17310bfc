/* SPDX-License-Identifier: Apache-2.0 */
/* usage: launch none|repeated|odd PROGRAM ARGUMENTS...
 * Starts PROGRAM with an environment that no shell makes: none at all, settings that occur twice, entries without a name
 * or a sign of equality. LD_PRELOAD is handed on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char preload[4096];

static char **environment_of(const char *kind)
{
    static char *none[] = {preload, NULL};
    static char *repeated[] = {"PGHOT_MODE=nonsense", "PGHOT_MODE=off", preload, "PGHOT_MODE=other", preload,
                               "PGHOT_REPORT=", "PGHOT_REPORT=/nonexistent/report", NULL};
    static char *odd[] = {"PGHOT_MODE", "=", "", "=PGHOT_MODE=off", "PGHOT_=1", "PGHOT_MODE\xff=1", preload, "PGHOT_PLACEMENT",
                          NULL};
    if (!strcmp(kind, "repeated")) return repeated;
    if (!strcmp(kind, "odd")) return odd;
    return none;
}

int main(int argc, char **argv)
{
    const char *library = getenv("LD_PRELOAD");
    if (argc < 3) return 2;
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library ? library : "");
    execve(argv[2], argv + 2, environment_of(argv[1]));
    perror(argv[2]);
    return 2;
}
