// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything of ours is compiled hidden; an entry point says so, and has a row in entry_points.def.
#define PGHOT_VISIBLE __attribute__((visibility("default")))
