// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/heap.h"

namespace pghot {

constinit HeapLookup heap_lookup = nullptr;
constinit HeapObjectLookup heap_object_lookup = nullptr;
constinit StartSignal start_signal;

}    // namespace pghot
