// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "include/pghot/pghot.h"

// Every preload test is void when the library is not there; ctest sets LD_PRELOAD.
class Preloaded : public ::testing::Test {
protected:
    void SetUp() override {
        // Compared here: ASSERT_NE would take it as a reference, which the compiler knows to be never null.
        ASSERT_TRUE(pghot_placement_of != nullptr) << "run under LD_PRELOAD=.../libpghot.so";
    }
};
