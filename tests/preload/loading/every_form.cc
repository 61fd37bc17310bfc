// SPDX-License-Identifier: Apache-2.0
// C++ beside another allocator: containers, exceptions, aligned and failing new, from several threads.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

volatile size_t too_much = SIZE_MAX / 2 + 1;

struct alignas(128) Wide {
    char bytes[300] = {};
};

void work() {
    std::map<int, std::string> words;
    for (int i = 0; i < 500; ++i) words[i] = std::string(static_cast<size_t>(i) * 3, 'w');
    std::vector<std::unique_ptr<Wide>> wide;
    for (int i = 0; i < 100; ++i) wide.push_back(std::make_unique<Wide>());
    delete[] new Wide[20];
    delete[] new (std::nothrow) char[100000];
    int caught = 0;
    for (int i = 0; i < 20; ++i) {
        try {
            ::operator delete(::operator new(too_much));
        } catch (const std::bad_alloc&) {
            ++caught;
        }
    }
    if (caught != 20) abort();
    if (::operator new(too_much, std::nothrow) != nullptr) abort();
}

}    // namespace

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    puts("right");
    return 0;
}
