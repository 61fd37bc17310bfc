// SPDX-License-Identifier: Apache-2.0
// Operators new and delete beyond the plain pair: every form with every form, wrong sizes and alignments given to
// delete, and a new-handler that finds the memory.

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <limits>
#include <new>
#include <stdexcept>
#include <vector>

#include "tests/preload/language/ways_to_allocate.h"
#include "tests/preload/loaded.h"

extern "C" {
[[gnu::weak]] void free_sized(void*, size_t);
[[gnu::weak]] void free_aligned_sized(void*, size_t, size_t);
}

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr std::align_val_t kLine{64};

// Through volatile pointers, so that the compiler pairs nothing away.
template <typename Function>
struct Form {
    const char* name;
    Function* volatile call;
};

const Form<void*(size_t)> kForms[] = {
    {"new", [](size_t bytes) { return ::operator new(bytes); }},
    {"new[]", [](size_t bytes) { return ::operator new[](bytes); }},
    {"nothrow new", [](size_t bytes) { return ::operator new(bytes, std::nothrow); }},
    {"nothrow new[]", [](size_t bytes) { return ::operator new[](bytes, std::nothrow); }},
    {"aligned new", [](size_t bytes) { return ::operator new(bytes, kLine); }},
    {"aligned new[]", [](size_t bytes) { return ::operator new[](bytes, kLine); }},
    {"aligned nothrow new", [](size_t bytes) { return ::operator new(bytes, kLine, std::nothrow); }},
    {"aligned nothrow new[]", [](size_t bytes) { return ::operator new[](bytes, kLine, std::nothrow); }},
};

// What a program may say about a block that is of another size and alignment.
const Form<void(void*)> kWaysToFree[] = {
    {"delete", [](void* block) { ::operator delete(block); }},
    {"delete[]", [](void* block) { ::operator delete[](block); }},
    {"nothrow delete", [](void* block) { ::operator delete(block, std::nothrow); }},
    {"nothrow delete[]", [](void* block) { ::operator delete[](block, std::nothrow); }},
    {"delete of 1 byte", [](void* block) { ::operator delete (block, size_t{1}); }},
    {"delete[] of 1 byte", [](void* block) { ::operator delete[](block, size_t{1}); }},
    {"delete of 1 MiB", [](void* block) { ::operator delete(block, kMiB); }},
    {"delete[] of 1 MiB", [](void* block) { ::operator delete[](block, kMiB); }},
    {"aligned delete", [](void* block) { ::operator delete (block, std::align_val_t{4096}); }},
    {"aligned delete[]", [](void* block) { ::operator delete[](block, std::align_val_t{4096}); }},
    {"sized aligned delete", [](void* block) { ::operator delete (block, 1, std::align_val_t{4096}); }},
    {"sized aligned delete[]", [](void* block) { ::operator delete[](block, 1, std::align_val_t{4096}); }},
    {"aligned nothrow delete", [](void* block) { ::operator delete(block, kLine, std::nothrow); }},
    {"aligned nothrow delete[]", [](void* block) { ::operator delete[](block, kLine, std::nothrow); }},
    {"free", [](void* block) { free(block); }},
    {"free_sized of 1 byte", [](void* block) { free_sized(block, 1); }},
    {"free_sized of 1 MiB", [](void* block) { free_sized(block, kMiB); }},
    {"free_aligned_sized", [](void* block) { free_aligned_sized(block, 4096, 1); }},
};

class NewAndDelete : public Preloaded {
protected:
    void SetUp() override {
        Preloaded::SetUp();
        ASSERT_NE(free_sized, nullptr);
        ASSERT_NE(free_aligned_sized, nullptr);
    }
    void TearDown() override { std::set_new_handler(nullptr); }
};

TEST_F(NewAndDelete, ZeroBytesGiveBlocksOfTheirOwn) {
    for (const auto& form : kForms) {
        SCOPED_TRACE(form.name);
        void* one = form.call(opaque(0));
        void* other = form.call(opaque(0));
        EXPECT_NE(one, nullptr);
        EXPECT_NE(other, nullptr);
        EXPECT_NE(one, other);
        ::operator delete(one);
        ::operator delete(other);
    }
}

TEST_F(NewAndDelete, EveryWayToFreeTakesNull) {
    for (const auto& way : kWaysToFree) way.call(nullptr);
}

// A block that went back as one of another size would be handed out twice, or overlap its neighbours.
TEST_F(NewAndDelete, EveryWayToFreeTakesEveryBlockWhateverItIsToldOfItsSize) {
    for (size_t bytes : {1, 40, 3000, 20000, 300000, 3000000}) {
        for (const auto& way : kWaysToFree) {
            SCOPED_TRACE(testing::Message() << way.name << " for " << bytes);
            std::vector<unsigned char*> blocks;
            for (const auto& form : kForms) way.call(memset(form.call(bytes), 1, bytes));
            for (int i = 0; i < 40; ++i) blocks.push_back(static_cast<unsigned char*>(malloc(i % 2 == 0 ? bytes : 24)));
            for (size_t i = 0; i < blocks.size(); ++i) memset(blocks[i], static_cast<int>(i), i % 2 == 0 ? bytes : 24);
            for (size_t i = 0; i < blocks.size(); ++i) {
                ASSERT_EQ(blocks[i][0], i);
                ASSERT_EQ(blocks[i][(i % 2 == 0 ? bytes : 24) - 1], i);
                free(blocks[i]);
            }
        }
    }
}

TEST_F(NewAndDelete, MoreThanPtrdiffMaxIsBadAllocOrNull) {
    for (const auto& form : kForms) {
        SCOPED_TRACE(form.name);
        for (size_t bytes : {SIZE_MAX / 2 + 1, SIZE_MAX - 4095}) {
            void* block = nullptr;
            try {
                block = form.call(opaque(bytes));
                EXPECT_NE(std::string(form.name).find("nothrow"), std::string::npos);
            } catch (const std::bad_alloc&) {
                EXPECT_EQ(std::string(form.name).find("nothrow"), std::string::npos);
            }
            EXPECT_EQ(block, nullptr);
        }
    }
}

TEST_F(NewAndDelete, ArraysWhoseSizeOverflowsThrow) {
    struct Large {
        char bytes[1 << 20];
    };
    Large* volatile array = nullptr;    // volatile: a pair of new and delete that does nothing else is left out
    EXPECT_THROW(array = new Large[opaque(SIZE_MAX / 1000)], std::bad_array_new_length);
    EXPECT_THROW(array = new Large[opaque(SIZE_MAX / 2 >> 20)], std::bad_alloc);
    EXPECT_EQ(array, nullptr);
}

struct ThrowsWhenMade {
    char bytes[5000];
    ThrowsWhenMade() { throw std::runtime_error("made to fail"); }
};

TEST_F(NewAndDelete, AnObjectThatThrowsWhenMadeGivesItsMemoryBack) {
    const size_t before = mallinfo2().uordblks;
    ThrowsWhenMade* volatile object = nullptr;
    for (int i = 0; i < 1000; ++i) EXPECT_THROW(object = new ThrowsWhenMade, std::runtime_error);
    EXPECT_EQ(object, nullptr);
    EXPECT_LT(mallinfo2().uordblks, before + kMiB);
}

// --- a handler that finds memory: a reserve of address space under a limit that leaves no other ---

constexpr size_t kReserveBytes = 512 * kMiB;
constexpr size_t kWantedBytes = 300 * kMiB;
void* reserve = nullptr;
int reserve_given = 0;

size_t address_space_in_use() {
    unsigned long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    if (file == nullptr || fscanf(file, "%lu", &pages) != 1) pages = 0;
    if (file != nullptr) fclose(file);
    return pages * 4096;
}

void give_the_reserve() {
    if (reserve == nullptr) throw std::bad_alloc();    // found nothing twice
    munmap(reserve, kReserveBytes);
    reserve = nullptr;
    ++reserve_given;
}

class HandlerWithAReserve : public NewAndDelete {
protected:
    void SetUp() override {
        NewAndDelete::SetUp();
        static bool address_space_was_kept = false;    // freed by the test before, and taken without a handler
        if (address_space_was_kept) GTEST_SKIP() << "needs a process of its own, as ctest gives it";
        address_space_was_kept = true;
        reserve = mmap(nullptr, kReserveBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        ASSERT_NE(reserve, MAP_FAILED);
        reserve_given = 0;
        ASSERT_EQ(getrlimit(RLIMIT_AS, &before_), 0);
        rlimit limit = before_;
        limit.rlim_cur = address_space_in_use() + 64 * kMiB;
        ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
        limited_ = true;
        std::set_new_handler(give_the_reserve);
    }
    void TearDown() override {
        if (!limited_) return;
        setrlimit(RLIMIT_AS, &before_);
        if (reserve != nullptr) munmap(reserve, kReserveBytes);
        reserve = nullptr;
        NewAndDelete::TearDown();
    }

private:
    rlimit before_{};
    bool limited_ = false;
};

void expect_found_by_the_handler(void* block) {
    EXPECT_NE(block, nullptr);
    EXPECT_EQ(reserve_given, 1);
    ::operator delete(block);
}

TEST_F(HandlerWithAReserve, NewSucceeds) { expect_found_by_the_handler(::operator new(opaque(kWantedBytes))); }
TEST_F(HandlerWithAReserve, NewOfAnArraySucceeds) {
    expect_found_by_the_handler(::operator new[](opaque(kWantedBytes)));
}
TEST_F(HandlerWithAReserve, NothrowNewSucceeds) {
    expect_found_by_the_handler(::operator new(opaque(kWantedBytes), std::nothrow));
}
TEST_F(HandlerWithAReserve, AlignedNewSucceeds) {
    expect_found_by_the_handler(::operator new(opaque(kWantedBytes), kLine));
}
TEST_F(HandlerWithAReserve, AlignedNothrowNewSucceeds) {
    expect_found_by_the_handler(::operator new(opaque(kWantedBytes), kLine, std::nothrow));
}
TEST_F(HandlerWithAReserve, MallocDoesNotAskIt) {
    errno = 0;
    EXPECT_EQ(malloc(opaque(kWantedBytes)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(reserve_given, 0);
}

void throw_what_is_no_bad_alloc() { throw std::logic_error("of the handler"); }

TEST_F(NewAndDelete, WhateverTheHandlerThrowsPassesThroughNewAndIsKeptByNothrowNew) {
    std::set_new_handler(throw_what_is_no_bad_alloc);
    EXPECT_THROW(static_cast<void>(::operator new(opaque(SIZE_MAX))), std::logic_error);
    EXPECT_THROW(static_cast<void>(::operator new[](opaque(SIZE_MAX - 4095), kLine)), std::logic_error);
    EXPECT_EQ(::operator new(opaque(SIZE_MAX), std::nothrow), nullptr);
    EXPECT_EQ(::operator new[](opaque(SIZE_MAX - 4095), kLine, std::nothrow), nullptr);
}

}    // namespace
