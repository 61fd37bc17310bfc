// SPDX-License-Identifier: Apache-2.0
// Our dlopen stands before libc's and must not be noticed, but for RTLD_DEEPBIND, which is dropped.

#include <dlfcn.h>

#include <cstdlib>

#include "tests/preload/loaded.h"

// dlopen_caller.c
extern "C" void* open_plugin(int mode);
extern "C" void* open_plugin_by_dlmopen(int mode);

namespace {

class Dlopen : public Preloaded {};

TEST_F(Dlopen, IsOurs) {
    Dl_info info{};
    ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "dlopen"), &info), 0);
    EXPECT_NE(std::string(info.dli_fname).find("libpghot.so"), std::string::npos) << info.dli_fname;
}

TEST_F(Dlopen, FindsLibrariesByTheRunpathOfTheCaller) {
    for (auto* open : {open_plugin, open_plugin_by_dlmopen}) {
        void* plugin = open(RTLD_NOW);
        ASSERT_NE(plugin, nullptr) << dlerror();
        dlclose(plugin);
    }
}

TEST_F(Dlopen, DeepBoundPluginSharesOurMalloc) {
    void* plugin = open_plugin(RTLD_NOW | RTLD_DEEPBIND);
    ASSERT_NE(plugin, nullptr) << dlerror();
    auto* make = reinterpret_cast<void* (*)()>(dlsym(plugin, "plugin_block"));
    ASSERT_NE(make, nullptr);
    void* block = make();
    EXPECT_GE(pghot_placement_of(block), 0);
    free(block);
    dlclose(plugin);
}

TEST_F(Dlopen, FailureIsReportedByDlerrorAsUsual) {
    EXPECT_EQ(dlopen("libpghot_no_such_library.so", RTLD_NOW), nullptr);
    const char* error = dlerror();
    ASSERT_NE(error, nullptr);
    EXPECT_NE(std::string(error).find("libpghot_no_such_library.so"), std::string::npos);
}

TEST_F(Dlopen, NullIsTheProgramItself) {
    void* self = dlopen(nullptr, RTLD_NOW);
    EXPECT_NE(self, nullptr);
    EXPECT_NE(dlsym(self, "malloc"), nullptr);
}

}    // namespace
