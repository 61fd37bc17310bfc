/* SPDX-License-Identifier: Apache-2.0 */
/* usage: deny_calls ANSWER:CALL,CALL... PROGRAM ARGUMENTS...
 * Starts a program to which system calls are denied (deny.h). Status 77 where no filter may be set. */
#include "tests/preload/limits/deny.h"

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    if (!deny(argv[1])) return 77;
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 2;
}
