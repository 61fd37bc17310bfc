// SPDX-License-Identifier: Apache-2.0
// Thread-local objects whose destructors allocate and throw, static objects that live longer than main, and exceptions
// that cross frames with blocks in them.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "include/pghot/pghot.h"

namespace {

struct Diary {
    std::vector<std::string> lines;
    ~Diary() {
        for (size_t i = 0; i < 100; ++i) lines.emplace_back(i * 30, 'd');
        try {
            throw std::runtime_error(lines.back());
        } catch (const std::runtime_error& caught) {
            if (caught.what() != lines.back()) abort();
        }
    }
};

thread_local Diary diary;
thread_local std::unique_ptr<Diary> another = std::make_unique<Diary>();
Diary of_the_process;

size_t deep(size_t depth) {
    const std::string local(depth * 10, 'l');
    if (depth == 0) throw std::length_error(std::string(100, 'e'));
    return deep(depth - 1) + local.size();
}

void work() {
    diary.lines.emplace_back("first");
    another->lines.emplace_back("second");
    for (int i = 0; i < 20; ++i) {
        try {
            deep(50);
        } catch (const std::length_error& caught) {
            if (std::string(caught.what()).size() != 100) abort();
        }
    }
}

}    // namespace

int main() {
    if (pghot_placement_of == nullptr) return fputs("FAIL: the library is not loaded\n", stderr), 1;
    for (int round = 0; round < 100; ++round) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i) threads.emplace_back(work);
        for (std::thread& thread : threads) thread.join();
    }
    work();
    of_the_process.lines.emplace_back("last");
    puts("right");
    return 0;
}
