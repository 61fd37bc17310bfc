// SPDX-License-Identifier: Apache-2.0
// A program with jemalloc linked in: its own answers for what it defines, and what it does not define (reallocarray,
// pvalloc, free_sized) must end up in it too. Two jemallocs live in one process.
#include <malloc.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "include/pghot/pghot.h"

extern "C" int mallctl(const char* name, void* old_value, size_t* old_bytes, void* new_value, size_t new_bytes);

namespace {

void expect(bool right, const char* what) {
    if (right) return;
    fprintf(stderr, "FAIL: %s\n", what);
    exit(1);
}

// Bytes that the program's jemalloc has handed out.
size_t in_use() {
    uint64_t epoch = 1;
    size_t bytes = 0, value_bytes = sizeof bytes;
    mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch);
    expect(mallctl("stats.allocated", &bytes, &value_bytes, nullptr, 0) == 0, "the program's jemalloc does not answer");
    return bytes;
}

void expect_in_the_programs(void* block, const char* by) {
    expect(block != nullptr, by);
    expect(pghot_placement_of(block) < 0, by);
    memset(block, 1, 3000000);
    free(realloc(block, 5000000));
}

void work() {
    std::vector<std::string> lines;
    for (int i = 0; i < 1000; ++i) lines.emplace_back(static_cast<size_t>(i), 'x');
    free(strdup(lines.back().c_str()));
}

}    // namespace

int main() {
    expect(pghot_placement_of != nullptr, "the library is not loaded");
    const size_t before = in_use();
    void* block = malloc(3000000);
    expect(in_use() >= before + 3000000, "malloc is not the program's");
    expect_in_the_programs(block, "malloc");
    expect_in_the_programs(calloc(1, 3000000), "calloc");
    expect_in_the_programs(reallocarray(nullptr, 3, 1000000), "reallocarray");
    expect_in_the_programs(memalign(64, 3000000), "memalign");
    expect_in_the_programs(aligned_alloc(64, 3000000), "aligned_alloc");
    expect_in_the_programs(valloc(3000000), "valloc");
    expect_in_the_programs(pvalloc(3000000), "pvalloc");
    expect_in_the_programs(::operator new(3000000), "new");
    expect_in_the_programs(::operator new (3000000, std::align_val_t{64}), "aligned new");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    puts("right");
    return 0;
}
