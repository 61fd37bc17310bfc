/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls that came through counting_wrapper.c; null when it is not loaded. */
__attribute__((weak)) int wrapper_calls(void);
