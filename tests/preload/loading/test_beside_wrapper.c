/* SPDX-License-Identifier: Apache-2.0 */
/* usage: test_beside_wrapper before|behind, where the wrapper stands of us. */
#include "include/pghot/pghot.h"
#include "tests/preload/loading/counting_wrapper.h"
#include "tests/preload/loading/every_way.h"

int main(int argc, char **argv)
{
    if (!pghot_placement_of || !wrapper_calls) fail("both libraries must be loaded");
    if (argc != 2) fail("usage");
    const int before = wrapper_calls();
    every_way_in_threads();
    void *block = malloc(100);
    if (pghot_placement_of(block) < 0) fail("blocks are not ours");
    free(block);
    const int seen = wrapper_calls() - before;
    const int all_of_them = 2 * 4 * 6 * 4;    /* malloc and free at least, from 4 threads, of 6 sizes, in 4 ways */
    if (strcmp(argv[1], "before") == 0 ? seen < all_of_them : seen != 0) {
        fprintf(stderr, "FAIL: the wrapper saw %d calls\n", seen);
        return 1;
    }
    puts("right");
    return 0;
}
