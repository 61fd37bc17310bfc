// SPDX-License-Identifier: Apache-2.0
// Plug-ins that come and go while the program runs.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/loaded.h"

namespace {

// An open plugin_of_life.c.
class Plugin {
public:
    explicit Plugin(int mode) : Plugin(dlopen(PLUGIN_OF_LIFE, mode)) {}
    explicit Plugin(void* handle) : handle_(handle) {
        if (handle_ == nullptr) return;
        make = reinterpret_cast<char* (*)(size_t)>(dlsym(handle_, "plugin_make"));
        grow = reinterpret_cast<char* (*)(char*, size_t)>(dlsym(handle_, "plugin_grow"));
        take = reinterpret_cast<void (*)(char*)>(dlsym(handle_, "plugin_take"));
    }
    Plugin(const Plugin&) = delete;
    Plugin& operator=(const Plugin&) = delete;
    ~Plugin() { close(); }
    void close() {
        if (handle_ != nullptr) dlclose(handle_);
        handle_ = nullptr;
    }
    bool is_open() const { return make != nullptr && grow != nullptr && take != nullptr; }

    char* (*make)(size_t) = nullptr;
    char* (*grow)(char*, size_t) = nullptr;
    void (*take)(char*) = nullptr;

private:
    void* handle_;
};

class Plugins : public Preloaded {};

// Blocks of each side are grown and freed by the other, the last ones after the plug-in is gone.
void exchange_blocks(Plugin& plugin) {
    std::vector<char*> left;
    for (size_t bytes : {1, 100, 5000, 100000, 3000000}) {
        char* theirs = plugin.make(bytes);
        ASSERT_GE(pghot_placement_of(theirs), 0);
        theirs = static_cast<char*>(realloc(theirs, bytes * 3));
        ASSERT_EQ(theirs[bytes - 1], 'p');
        left.push_back(theirs);
        auto* ours = static_cast<char*>(malloc(bytes));
        memset(ours, 'o', bytes);
        ours = plugin.grow(ours, bytes * 3);
        ASSERT_EQ(ours[bytes - 1], 'o');
        plugin.take(ours);
    }
    plugin.close();
    for (char* block : left) free(block);
}

TEST_F(Plugins, ComeAndGoAThousandTimes) {
    for (int i = 0; i < 1000; ++i) {
        Plugin plugin(RTLD_NOW);
        ASSERT_TRUE(plugin.is_open()) << dlerror();
        if (i % 50 == 0) exchange_blocks(plugin);
    }
}

TEST_F(Plugins, ComeAndGoFromThreadsThatAllocate) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([] {
            for (int round = 0; round < 150; ++round) {
                Plugin plugin(round % 2 == 0 ? RTLD_NOW : RTLD_LAZY);
                ASSERT_TRUE(plugin.is_open());
                plugin.take(static_cast<char*>(malloc(static_cast<size_t>(round) * 700 + 1)));
                free(plugin.make(static_cast<size_t>(round) * 700 + 1));
            }
        });
    for (std::thread& thread : threads) thread.join();
}

TEST_F(Plugins, BoundDeepGloballyOrLazilyTheyShareTheHeap) {
    for (int mode : {RTLD_NOW, RTLD_LAZY, RTLD_NOW | RTLD_GLOBAL, RTLD_NOW | RTLD_DEEPBIND, RTLD_LAZY | RTLD_DEEPBIND,
                     RTLD_NOW | RTLD_GLOBAL | RTLD_DEEPBIND}) {
        SCOPED_TRACE(mode);
        Plugin plugin(mode);
        ASSERT_TRUE(plugin.is_open()) << dlerror();
        exchange_blocks(plugin);
    }
}

// dlmopen into the program's own namespace may ask for deep binding as well.
TEST_F(Plugins, OpenedByDlmopenInTheSameNamespaceTheyShareTheHeap) {
    for (int mode : {RTLD_NOW, RTLD_NOW | RTLD_DEEPBIND}) {
        Plugin plugin(dlmopen(LM_ID_BASE, PLUGIN_OF_LIFE, mode));
        ASSERT_TRUE(plugin.is_open()) << dlerror();
        exchange_blocks(plugin);
    }
}

// Preloading ends at the namespace: a new one has a C library and a heap of its own, which must not be disturbed.
TEST_F(Plugins, InANamespaceOfTheirOwnTheyKeepToTheHeapOfTheirOwnCLibrary) {
    for (int round = 0; round < 20; ++round) {
        Plugin plugin(dlmopen(LM_ID_NEWLM, PLUGIN_OF_LIFE, RTLD_NOW));
        ASSERT_TRUE(plugin.is_open()) << dlerror();
        char* block = plugin.grow(plugin.make(5000), 300000);
        EXPECT_EQ(block[4999], 'p');
        EXPECT_EQ(pghot_placement_of(block), -1);
        plugin.take(block);
        free(malloc(100000));
    }
}

TEST_F(Plugins, FastThreadLocalDataHasRoomAfterOurs) {
    std::vector<void*> handles;
    for (const char* file : {STATIC_TLS_512, STATIC_TLS_768}) {
        handles.push_back(dlopen(file, RTLD_NOW));
        ASSERT_NE(handles.back(), nullptr) << dlerror();
        auto* here = reinterpret_cast<char* (*)()>(dlsym(handles.back(), "plugin_thread_local"));
        ASSERT_NE(here, nullptr);
        memset(here(), 1, 512);
        std::thread([here] {
            EXPECT_EQ(here()[0], 0);
            free(malloc(100));
        }).join();
    }
    for (void* handle : handles) dlclose(handle);
}

// --- who looks functions up by name ---

using Malloc = void*(size_t);
using Free = void(void*);

TEST_F(Plugins, NamesLookedUpInTheGlobalScopeAreOurs) {
    for (void* scope : {RTLD_DEFAULT, RTLD_NEXT, dlopen(nullptr, RTLD_NOW)}) {
        for (const char* name : {"malloc", "__libc_malloc", "valloc", "_Znwm"}) {
            auto* allocate = reinterpret_cast<Malloc*>(dlsym(scope, name));
            ASSERT_NE(allocate, nullptr) << name;
            void* block = allocate(100);
            EXPECT_GE(pghot_placement_of(block), 0) << name;
            free(block);
        }
        for (const char* name : {"free", "__libc_free", "cfree", "_ZdlPv"}) {
            auto* give_back = reinterpret_cast<Free*>(dlsym(scope, name));
            ASSERT_NE(give_back, nullptr) << name;
            give_back(malloc(100));
        }
    }
}

// Python's ctypes and its like ask a library by its handle; the look-up goes on to the libraries that it needs.
TEST_F(Plugins, NamesOfLibcLookedUpByAHandleAreOurs) {
    for (const char* file : {"libc.so.6", PLUGIN_OF_LIFE}) {
        SCOPED_TRACE(file);
        void* library = dlopen(file, RTLD_NOW);
        ASSERT_NE(library, nullptr);
        for (const char* name : {"malloc", "__libc_malloc", "valloc", "__libc_pvalloc"}) {
            auto* allocate = reinterpret_cast<Malloc*>(dlsym(library, name));
            ASSERT_NE(allocate, nullptr) << name;
            void* block = allocate(100);
            EXPECT_GE(pghot_placement_of(block), 0) << name;
            free(block);
        }
        for (const char* name : {"free", "__libc_free"}) {
            auto* give_back = reinterpret_cast<Free*>(dlsym(library, name));
            ASSERT_NE(give_back, nullptr) << name;
            give_back(strdup("copied by libc"));
        }
        auto* grow = reinterpret_cast<void* (*)(void*, size_t)>(dlsym(library, "realloc"));
        auto* usable = reinterpret_cast<size_t (*)(void*)>(dlsym(library, "malloc_usable_size"));
        void* grown = grow(strdup("copied by libc"), 100000);
        EXPECT_EQ(memcmp(grown, "copied by libc", 15), 0);
        EXPECT_GE(usable(grown), 100000U);
        free(grown);
        dlclose(library);
    }
}

TEST_F(Plugins, OtherNamesAreFoundAsUsual) {
    void* libc = dlopen("libc.so.6", RTLD_NOW);
    void* plugin = dlopen(PLUGIN_OF_LIFE, RTLD_NOW);
    EXPECT_EQ(dlsym(libc, "getppid"), reinterpret_cast<void*>(getppid));
    EXPECT_NE(dlsym(plugin, "plugin_make"), nullptr);
    EXPECT_EQ(dlsym(libc, "plugin_make"), nullptr);
    const char* error = dlerror();
    ASSERT_NE(error, nullptr);
    EXPECT_NE(std::string(error).find("undefined symbol: plugin_make"), std::string::npos) << error;
    EXPECT_EQ(dlsym(libc, "free_sized_in_place"), nullptr);
    EXPECT_NE(dlerror(), nullptr);
    EXPECT_EQ(dlerror(), nullptr);
    dlclose(plugin);
    dlclose(libc);
}

// A namespace of its own keeps its own functions, whatever handle they are asked of.
TEST_F(Plugins, NamesLookedUpInANamespaceOfItsOwnAreNotOurs) {
    void* plugin = dlmopen(LM_ID_NEWLM, PLUGIN_OF_LIFE, RTLD_NOW);
    ASSERT_NE(plugin, nullptr) << dlerror();
    void* block = reinterpret_cast<Malloc*>(dlsym(plugin, "malloc"))(100);
    EXPECT_EQ(pghot_placement_of(block), -1);
    reinterpret_cast<Free*>(dlsym(plugin, "free"))(block);
    dlclose(plugin);
}

}    // namespace
