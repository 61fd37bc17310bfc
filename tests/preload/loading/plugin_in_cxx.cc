// SPDX-License-Identifier: Apache-2.0
// A C++ plug-in for programs without a C++ library: it brings its own, as a library or linked into itself, and what a
// failing new throws must be that one's. Its thread-local and static objects allocate and free on the way out.
#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <vector>

namespace {

std::map<int, std::string> words{{1, "a static object that is longer than any short string"}};

struct Diary {
    std::vector<std::string> lines;
    ~Diary() {
        for (int i = 0; i < 50; ++i) lines.emplace_back(static_cast<size_t>(i) * 20, 'x');
    }
};
thread_local Diary diary;

volatile size_t too_much = SIZE_MAX / 2 + 1;
int handler_calls = 0;

void give_up_at_third_call() {
    if (++handler_calls == 3) std::set_new_handler(nullptr);
}

template <typename Allocate>
bool throws_bad_alloc(Allocate allocate) {
    try {
        static_cast<void>(allocate());
    } catch (const std::bad_alloc&) {
        return true;
    }
    return false;
}

const char* wrong_about_failure() {
    constexpr std::align_val_t kLine{64};
    if (!throws_bad_alloc([] { return ::operator new(too_much); })) return "new";
    if (!throws_bad_alloc([] { return ::operator new[](too_much); })) return "new[]";
    if (!throws_bad_alloc([=] { return ::operator new(too_much, kLine); })) return "aligned new";
    if (::operator new(too_much, std::nothrow) != nullptr) return "nothrow new";
    if (::operator new(too_much, kLine, std::nothrow) != nullptr) return "aligned nothrow new";
    handler_calls = 0;
    std::set_new_handler(give_up_at_third_call);
    if (!throws_bad_alloc([] { return ::operator new(too_much); })) return "new with a handler";
    return handler_calls == 3 ? nullptr : "calls of the handler";
}

}    // namespace

// What is wrong, or null.
extern "C" const char* plugin_check() {
    diary.lines.emplace_back("an entry that is longer than any short string");
    for (int i = 0; i < 300; ++i) words[i] = std::string(static_cast<size_t>(i), 'w');
    return wrong_about_failure();
}
