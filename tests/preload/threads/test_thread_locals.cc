// SPDX-License-Identifier: Apache-2.0
// C++ objects of a thread and of the program: constructors and destructors allocate, while others still do.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/loaded.h"

namespace {

std::atomic<int> destroyed{0};

// Destroyed in the reverse order of construction, each with memory of its own to give back and to ask for.
struct Owner {
    std::map<int, std::string> texts;
    Owner() {
        for (int i = 0; i < 50; ++i) texts[i] = std::string(static_cast<size_t>(i) * 40, 'x');
    }
    ~Owner() {
        std::vector<std::unique_ptr<char[]>> more;
        for (int i = 0; i < 20; ++i) more.emplace_back(new char[static_cast<size_t>(1) << i]);
        texts[100] = std::string(100000, 'y');
        ++destroyed;
    }
};

thread_local Owner first;
thread_local std::unique_ptr<Owner> second;

// Static: destroyed after main, when threads that nobody joined may still allocate.
struct Farewell {
    Owner owner;
    ~Farewell() {
        for (int i = 0; i < 100; ++i) std::string(static_cast<size_t>(i) * 1000, 'z').swap(last);
    }
    std::string last;
} farewell;

void use_thread_locals() {
    first.texts[7] += "more";
    second = std::make_unique<Owner>();
}

using ThreadLocals = Preloaded;

TEST_F(ThreadLocals, DestructorsAllocateInEveryThread) {
    constexpr int kThreads = 300;
    destroyed = 0;
    for (int i = 0; i < kThreads; ++i) std::thread(use_thread_locals).join();
    EXPECT_EQ(destroyed, 2 * kThreads);
}

TEST_F(ThreadLocals, DestructorsOfManyThreadsRunAtOnce) {
    constexpr int kRounds = 10, kThreads = 32;
    destroyed = 0;
    for (int round = 0; round < kRounds; ++round) {
        std::vector<std::thread> threads;
        for (int i = 0; i < kThreads; ++i) threads.emplace_back(use_thread_locals);
        for (std::thread& thread : threads) thread.join();
    }
    EXPECT_EQ(destroyed, 2 * kRounds * kThreads);
}

TEST_F(ThreadLocals, StaticObjectsAreDestroyedWhileDetachedThreadsAllocate) {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(
        {
            for (int i = 0; i < 3; ++i)
                std::thread([] {
                    for (size_t n = 0;; ++n) std::vector<int>(n % 50000).swap(*std::make_unique<std::vector<int>>());
                }).detach();
            use_thread_locals();
            std::exit(11);
        },
        ::testing::ExitedWithCode(11), "");
}

}    // namespace
