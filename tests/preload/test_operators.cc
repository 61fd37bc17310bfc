// SPDX-License-Identifier: Apache-2.0
// Operators new and delete when memory cannot be had: exceptions come from the program's own C++ library, though the
// preload library is built without any.

#include <cstdint>
#include <new>

#include "tests/preload/loaded.h"

namespace {

volatile size_t too_much = SIZE_MAX / 2 + 1;
constexpr std::align_val_t kLine{64};
int handler_calls = 0;

class Operators : public Preloaded {
protected:
    void SetUp() override {
        Preloaded::SetUp();
        handler_calls = 0;
    }
    void TearDown() override { std::set_new_handler(nullptr); }
};

void give_up_at_third_call() {
    if (++handler_calls == 3) std::set_new_handler(nullptr);
}

void throw_at_once() {
    ++handler_calls;
    throw std::bad_alloc();
}

TEST_F(Operators, MemoryOfNewIsOurs) {
    int* number = new int(7);
    EXPECT_GE(pghot_placement_of(number), 0);
    delete number;
}

TEST_F(Operators, FailingFormsThrowTheProgramsBadAlloc) {
    EXPECT_THROW(static_cast<void>(::operator new(too_much)), std::bad_alloc);
    EXPECT_THROW(static_cast<void>(::operator new[](too_much)), std::bad_alloc);
    EXPECT_THROW(static_cast<void>(::operator new(too_much, kLine)), std::bad_alloc);
    EXPECT_THROW(static_cast<void>(::operator new[](too_much, kLine)), std::bad_alloc);
}

TEST_F(Operators, FailingNothrowFormsAnswerNull) {
    EXPECT_EQ(::operator new(too_much, std::nothrow), nullptr);
    EXPECT_EQ(::operator new[](too_much, std::nothrow), nullptr);
    EXPECT_EQ(::operator new(too_much, kLine, std::nothrow), nullptr);
    EXPECT_EQ(::operator new[](too_much, kLine, std::nothrow), nullptr);
}

TEST_F(Operators, HandlerIsCalledUntilThereIsNone) {
    std::set_new_handler(give_up_at_third_call);
    EXPECT_THROW(static_cast<void>(::operator new(too_much)), std::bad_alloc);
    EXPECT_EQ(handler_calls, 3);
}

TEST_F(Operators, ExceptionOfTheHandlerReachesTheCaller) {
    std::set_new_handler(throw_at_once);
    EXPECT_THROW(static_cast<void>(::operator new(too_much)), std::bad_alloc);
    EXPECT_EQ(handler_calls, 1);
}

TEST_F(Operators, NothrowFormsSwallowWhatTheHandlerThrows) {
    std::set_new_handler(throw_at_once);
    EXPECT_EQ(::operator new(too_much, std::nothrow), nullptr);
    EXPECT_EQ(::operator new[](too_much, kLine, std::nothrow), nullptr);
    EXPECT_EQ(handler_calls, 2);
}

TEST_F(Operators, AlignedFormsAlign) {
    for (size_t alignment = 8; alignment <= (size_t{1} << 22); alignment *= 2) {
        void* block = ::operator new (100, std::align_val_t{alignment});
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0U);
        ::operator delete (block, 100, std::align_val_t{alignment});
    }
}

}    // namespace
