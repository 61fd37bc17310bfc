/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

void *plugin_block(void) { return malloc(100); }
