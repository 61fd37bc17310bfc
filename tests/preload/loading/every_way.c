/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/preload/loading/every_way.h"

int main(void)
{
    every_way_in_threads();
    malloc_trim(0);
    (void)mallinfo2();
    puts("right");
    return 0;
}
