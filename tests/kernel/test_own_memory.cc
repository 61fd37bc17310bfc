// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "runtime/kernel/address_space.h"
#include "runtime/kernel/filesystem.h"
#include "runtime/kernel/memory.h"
#include "runtime/kernel/process.h"
#include "runtime/kernel/syscalls.h"
#include "runtime/kernel/topology.h"

namespace pghot {
namespace {

uintptr_t number(const void* at) { return reinterpret_cast<uintptr_t>(at); }

char static_array[1 << 20];

TEST(OwnMappings, HeapStaticArraysAndMappingsMayMove) {
    static_array[0] = 1;
    std::vector<AddressRange> storage(65536);
    AddressSpace space(storage);
    void* mapping = mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void* shared = mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const std::vector<char> heap(1 << 20);
    KernelFiles files;
    ASSERT_EQ(space.refresh(files, [](uintptr_t) -> uint64_t { return 1; }), 0);
    EXPECT_EQ(space.left_out(), 0u);
    const auto targets = [&](const void* at) {
        const AddressRange* range = space.find(number(at));
        return range == nullptr ? ~0ull : range->targets;
    };
    const int on_stack = 0;
    EXPECT_EQ(targets(mapping), 1u);
    EXPECT_EQ(targets(heap.data()), 1u);
    EXPECT_EQ(targets(&static_array[sizeof static_array / 2]), 1u);
    EXPECT_EQ(targets(&on_stack), 1u);
    EXPECT_EQ(targets(shared), 0u);
    EXPECT_EQ(targets(reinterpret_cast<const void*>(&getpid)), 0u) << "code of a library";
    munmap(mapping, kChunkBytes);
    munmap(shared, kChunkBytes);
}

TEST(OwnMemory, IsToldApartFromTheProgramsUntilItIsUnmapped) {
    uintptr_t begin = 0;
    {
        AnonymousMemory memory(2 * kChunkBytes);
        begin = number(memory.bytes().data());
        const uintptr_t end = begin + 2 * kChunkBytes;
        EXPECT_TRUE(overlaps_own_memory(begin, begin + 1));
        EXPECT_TRUE(overlaps_own_memory(end - 1, end + kChunkBytes));
        EXPECT_TRUE(overlaps_own_memory(begin - kChunkBytes, begin + 1));
        EXPECT_TRUE(overlaps_own_memory(begin - kChunkBytes, end + kChunkBytes));
        AnonymousMemory moved(std::move(memory));
        EXPECT_TRUE(overlaps_own_memory(begin, begin + 1));
    }
    EXPECT_FALSE(overlaps_own_memory(begin, begin + kChunkBytes));
    EXPECT_FALSE(overlaps_own_memory(number(static_array), number(static_array) + sizeof static_array));
}

TEST(OwnPolicy, TheKernelTellsWhatWasSet) {
    sys::MemoryPolicy policy;
    const long result = sys::policy_of_thread(policy);
    if (result == -EPERM || result == -ENOSYS) GTEST_SKIP() << "get_mempolicy is blocked here";
    ASSERT_EQ(result, 0);
    void* mapping = mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_EQ(sys::policy_of_address(number(mapping), policy), 0);
    EXPECT_TRUE(policy.is_default());
    const unsigned long node0 = 1;
    ASSERT_EQ(mbind(mapping, kChunkBytes, MPOL_BIND, &node0, 64, 0), 0);
    ASSERT_EQ(sys::policy_of_address(number(mapping), policy), 0);
    EXPECT_TRUE(policy.is_bind());
    EXPECT_EQ(policy.nodes, 1u);
    munmap(mapping, kChunkBytes);
    EXPECT_EQ(sys::policy_of_address(number(mapping), policy), -EFAULT);
}

TEST(OwnPolicy, TheCpusetHasAtLeastOneNode) {
    uint64_t nodes = 0;
    const long result = sys::allowed_nodes(nodes);
    if (result == -EPERM || result == -ENOSYS) GTEST_SKIP() << "get_mempolicy is blocked here";
    ASSERT_EQ(result, 0);
    EXPECT_NE(nodes, 0u);
}

TEST(OwnTopology, EveryCpuThatRunsHasANode) {
    KernelFiles files;
    Topology topology;
    read_topology(files, ~0ull, {}, topology);
    if (topology.node_count == 0) GTEST_SKIP() << "no /sys/devices/system/node here (a kernel without NUMA)";
    EXPECT_TRUE(topology.node_of(static_cast<uint32_t>(sched_getcpu())).valid());
    EXPECT_GT(node_free_bytes(files, NodeId{0}), 0u);
    EXPECT_GT(topology.nodes[0].total_bytes, node_free_bytes(files, NodeId{0}));
}

TEST(MovePages, AskingTellsTheNodeOfTouchedPagesOnly) {
    char* mapping =
        static_cast<char*>(mmap(nullptr, 4 * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mapping[0] = mapping[2 * kPageBytes] = 1;
    std::vector<void*> pages;
    for (size_t i = 0; i < 4; ++i) pages.push_back(mapping + i * kPageBytes);
    std::vector<int> statuses(4, -4096);
    const long result = sys::move_pages(pages, nullptr, statuses.data());
    if (result == -EPERM || result == -ENOSYS) GTEST_SKIP() << "move_pages is blocked here";
    ASSERT_EQ(result, 0);
    EXPECT_GE(statuses[0], 0);
    EXPECT_GE(statuses[2], 0);
    EXPECT_TRUE(statuses[1] == -ENOENT || statuses[1] == -EFAULT) << statuses[1];
    munmap(mapping, 4 * kPageBytes);
}

// The first act of pghot-sampler. Everything else in the process keeps its descriptors.
TEST(OwnDescriptors, AThreadOfItsOwnTableTouchesNoOther) {
    const int kept = open("/dev/null", O_RDONLY);
    int result = -1, lowest = -1, next = -1;
    std::thread([&] {
        result = sys::close_all_and_unshare_descriptors();
        if (result != 0) return;
        take_standard_descriptors();
        lowest = open("/proc/self/maps", O_RDONLY);
        next = sys::memfd("test");
    }).join();
    if (result == -ENOSYS || result == -EINVAL) GTEST_SKIP() << "close_range with CLOSE_RANGE_UNSHARE needs Linux 5.9";
    ASSERT_EQ(result, 0);
    EXPECT_EQ(lowest, 3);
    EXPECT_EQ(next, 4);
    EXPECT_EQ(fcntl(kept, F_GETFD), 0);
    const int after = open("/dev/null", O_RDONLY);
    EXPECT_EQ(after, kept + 1) << "the lowest free number is unchanged";
    close(after);
    close(kept);
}

TEST(KernelFiles, LinesAreDeliveredWholeOrCut) {
    char name[] = "/tmp/pghot_lines_XXXXXX";
    const int fd = mkstemp(name);
    ASSERT_GE(fd, 0);
    const std::string text = "short\n" + std::string(100, 'x') + "\n\nlast without newline";
    ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    std::vector<std::string> lines;
    char buffer[64];
    KernelFiles files;
    ASSERT_EQ(files.lines(name, buffer,
                          [&](std::string_view line) {
                              lines.emplace_back(line);
                              return true;
                          }),
              0);
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(lines[0], "short");
    EXPECT_EQ(lines[1], std::string(64, 'x'));
    EXPECT_EQ(lines[2], "");
    EXPECT_EQ(lines[3], "last without newline");
    EXPECT_EQ(files.lines("/no/such/file", buffer, [](std::string_view) { return true; }), -ENOENT);
    close(fd);
    unlink(name);
}

}    // namespace
}    // namespace pghot
