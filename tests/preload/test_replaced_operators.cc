// SPDX-License-Identifier: Apache-2.0
// A program that replaces the two plain operators only, as many do. The other forms are defined by means of them
// ([new.delete]), so they must reach the program's: a block of its pool in our free would be the end.

#include <cstdio>
#include <cstdlib>
#include <new>

#include "include/pghot/pghot.h"

namespace {

alignas(16) char pool[1 << 20];
size_t pool_used = 0;
int made = 0, taken = 0, foreign = 0;

bool in_pool(const void* block) { return block >= pool && block < pool + sizeof pool; }

void expect(bool right, const char* what) {
    if (right) return;
    fprintf(stderr, "FAIL: %s (made %d, taken %d, foreign %d)\n", what, made, taken, foreign);
    exit(1);
}

// Through volatile pointers, so that the compiler pairs nothing away.
void* (*volatile new_array)(size_t) = ::operator new[];
void* (*volatile new_nothrow)(size_t, const std::nothrow_t&) = ::operator new;
void* (*volatile new_array_nothrow)(size_t, const std::nothrow_t&) = ::operator new[];
void (*volatile delete_array)(void*) = ::operator delete[];
void (*volatile delete_sized)(void*, size_t) = ::operator delete;
void (*volatile delete_array_sized)(void*, size_t) = ::operator delete[];
void (*volatile delete_nothrow)(void*, const std::nothrow_t&) = ::operator delete;

}    // namespace

void* operator new(size_t bytes) {
    if (bytes > sizeof pool - pool_used) throw std::bad_alloc();
    void* block = pool + pool_used;
    pool_used += (bytes + 15) / 16 * 16;
    ++made;
    return block;
}

void operator delete(void* block) noexcept {
    if (block == nullptr) return;
    ++taken;
    if (!in_pool(block)) ++foreign;
}

int main() {
    expect(pghot_placement_of != nullptr, "the library is not loaded");
    expect(in_pool(new_array(40)), "new[] does not use the program's new");
    expect(in_pool(new_nothrow(40, std::nothrow)), "nothrow new does not use the program's new");
    expect(in_pool(new_array_nothrow(40, std::nothrow)), "nothrow new[] does not use the program's new");
    expect(new_nothrow(sizeof pool + 1, std::nothrow) == nullptr, "nothrow new does not catch the program's exception");
    const int before = taken;
    delete_array(new_array(40));
    delete_sized(new_array(40), 40);
    delete_array_sized(new_array(40), 40);
    delete_nothrow(new_array(40), std::nothrow);
    expect(taken == before + 4 && foreign == 0, "a form of delete does not use the program's delete");
    puts("right");
    return 0;
}
