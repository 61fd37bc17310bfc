/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The C interface. Functions are weak: a program may call them whether or not the library is loaded, after a test for
 * null. */

#ifdef __cplusplus
extern "C" {
#endif

/* Number of the placement that the heap memory at `address` was born with: 0 is the default placement, others count the
 * distinct placements of PGHOT_PLACEMENT's size rules in their order; -1 when libpghot's allocator did not map it. May
 * be out of date when it returns, if another thread frees the memory. Any thread; allocates nothing, keeps errno. */
int pghot_placement_of(const void* address) __attribute__((weak));

#ifdef __cplusplus
}
#endif
