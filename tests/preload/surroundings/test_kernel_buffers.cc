// SPDX-License-Identifier: Apache-2.0
// Heap blocks that the kernel fills, reads and holds for the program: userfaultfd and io_uring.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/preload/loaded.h"

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMib = 1 << 20;

class KernelBuffers : public Preloaded {};

bool is_all(const char* bytes, size_t count, char mark) {
    return std::all_of(bytes, bytes + count, [mark](char byte) { return byte == mark; });
}

// --- userfaultfd ---

// Fills missing pages of the ranges it is given with 'f', on a thread that allocates for every page.
class PageFiller {
public:
    PageFiller() : fd_(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK))) {
        uffdio_api api{};
        api.api = UFFD_API;
        ready_ = fd_ >= 0 && ioctl(fd_, UFFDIO_API, &api) == 0;
        if (ready_) thread_ = std::thread([this] { serve(); });
    }
    ~PageFiller() {
        stop_ = true;
        if (thread_.joinable()) thread_.join();
        close(fd_);
    }
    PageFiller(const PageFiller&) = delete;
    bool is_ready() const { return ready_; }
    size_t filled() const { return filled_; }
    bool watch(void* at, size_t bytes) {
        uffdio_register range{};
        range.range = {reinterpret_cast<uintptr_t>(at), bytes};
        range.mode = UFFDIO_REGISTER_MODE_MISSING;
        return ioctl(fd_, UFFDIO_REGISTER, &range) == 0;
    }
    bool leave(void* at, size_t bytes) {
        uffdio_range range{reinterpret_cast<uintptr_t>(at), bytes};
        return ioctl(fd_, UFFDIO_UNREGISTER, &range) == 0;
    }

private:
    void serve() {
        while (!stop_) {
            pollfd ready{fd_, POLLIN, 0};
            uffd_msg message{};
            if (poll(&ready, 1, 10) <= 0) continue;
            if (read(fd_, &message, sizeof message) != sizeof message) continue;
            fill(message.arg.pagefault.address & ~(kPage - 1));
        }
    }
    void fill(uintptr_t page) {
        char* contents = static_cast<char*>(memalign(kPage, kPage));
        free(calloc(1, 300000));
        memset(contents, 'f', kPage);
        uffdio_copy copy{};
        copy.dst = page;
        copy.src = reinterpret_cast<uintptr_t>(contents);
        copy.len = kPage;
        ++filled_;    // before the reader of the page goes on
        ioctl(fd_, UFFDIO_COPY, &copy);
        free(contents);
    }

    int fd_;
    bool ready_ = false;
    std::atomic<bool> stop_{false};
    std::atomic<size_t> filled_{0};
    std::thread thread_;
};

TEST_F(KernelBuffers, AProgramFillsItsOwnMappingOnDemand) {
    PageFiller filler;
    if (!filler.is_ready()) GTEST_SKIP() << "userfaultfd is refused here";
    constexpr size_t kBytes = 64 * kPage;
    void* mapping = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_TRUE(filler.watch(mapping, kBytes));
    EXPECT_TRUE(is_all(static_cast<char*>(mapping), kBytes, 'f'));
    EXPECT_EQ(filler.filled(), 64U);
    munmap(mapping, kBytes);
}

TEST_F(KernelBuffers, AProgramFillsAHeapBlockOnDemandAndFreesIt) {
    PageFiller filler;
    if (!filler.is_ready()) GTEST_SKIP() << "userfaultfd is refused here";
    constexpr size_t kBytes = 9 * kMib;
    char* block = static_cast<char*>(memalign(kPage, kBytes));
    memset(block, 'h', kBytes);
    ASSERT_TRUE(filler.watch(block, 16 * kPage));
    ASSERT_EQ(madvise(block, 16 * kPage, MADV_DONTNEED), 0);
    EXPECT_TRUE(is_all(block, 16 * kPage, 'f'));
    EXPECT_TRUE(is_all(block + 16 * kPage, kBytes - 16 * kPage, 'h'));
    ASSERT_TRUE(filler.leave(block, 16 * kPage));
    free(block);
    char* zeros = static_cast<char*>(calloc(1, kBytes));
    EXPECT_TRUE(is_all(zeros, kBytes, 0));
    free(zeros);
}

// --- io_uring ---

// One request at a time.
class Ring {
public:
    Ring() {
        io_uring_params parameters{};
        fd_ = static_cast<int>(syscall(SYS_io_uring_setup, 4, &parameters));
        if (fd_ < 0) return;
        const size_t submissions = parameters.sq_off.array + parameters.sq_entries * sizeof(uint32_t);
        const size_t completions = parameters.cq_off.cqes + parameters.cq_entries * sizeof(io_uring_cqe);
        ring_bytes_ = std::max(submissions, completions);
        ring_ = static_cast<char*>(map(ring_bytes_, IORING_OFF_SQ_RING));
        entries_ = static_cast<io_uring_sqe*>(map(parameters.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES));
        submitted_ = word(parameters.sq_off.tail);
        order_ = word(parameters.sq_off.array);
        completed_ = word(parameters.cq_off.head);
        results_ = reinterpret_cast<io_uring_cqe*>(ring_ + parameters.cq_off.cqes);
        is_ready_ =
            ring_ != MAP_FAILED && entries_ != MAP_FAILED && (parameters.features & IORING_FEAT_SINGLE_MMAP) != 0;
    }
    ~Ring() {
        if (fd_ < 0) return;
        munmap(ring_, ring_bytes_);
        close(fd_);
    }
    Ring(const Ring&) = delete;
    bool is_ready() const { return is_ready_; }
    bool hold(char* block, size_t bytes) {
        iovec buffer{block, bytes};
        return syscall(SYS_io_uring_register, fd_, IORING_REGISTER_BUFFERS, &buffer, 1) == 0;
    }
    bool let_go() { return syscall(SYS_io_uring_register, fd_, IORING_UNREGISTER_BUFFERS, nullptr, 0) == 0; }
    // What the request came to: bytes, or minus the error.
    int run(uint8_t operation, int file, char* block, size_t bytes) {
        entries_[0] = {};
        entries_[0].opcode = operation;
        entries_[0].fd = file;
        entries_[0].addr = reinterpret_cast<uintptr_t>(block);
        entries_[0].len = static_cast<uint32_t>(bytes);
        order_[*submitted_ & 3] = 0;
        __atomic_store_n(submitted_, *submitted_ + 1, __ATOMIC_RELEASE);
        if (syscall(SYS_io_uring_enter, fd_, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) != 1) return -errno;
        const int result = results_[*completed_ & 7].res;    // twice as many completions as submissions
        __atomic_store_n(completed_, *completed_ + 1, __ATOMIC_RELEASE);
        return result;
    }

private:
    void* map(size_t bytes, uint64_t what) const {
        return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, static_cast<off_t>(what));
    }
    uint32_t* word(uint32_t offset) const { return reinterpret_cast<uint32_t*>(ring_ + offset); }

    int fd_ = -1;
    bool is_ready_ = false;
    char* ring_ = nullptr;
    size_t ring_bytes_ = 0;
    io_uring_sqe* entries_ = nullptr;
    io_uring_cqe* results_ = nullptr;
    uint32_t* submitted_ = nullptr;
    uint32_t* order_ = nullptr;
    uint32_t* completed_ = nullptr;
};

TEST_F(KernelBuffers, HeapBlocksThatARingHoldsCarryTheirBytesAndAreFreedAfterwards) {
    Ring ring;
    if (!ring.is_ready()) GTEST_SKIP() << "io_uring is refused here";
    const int file = memfd_create("ring", MFD_CLOEXEC);
    for (size_t bytes : {kPage, 300 * kPage, 9 * kMib}) {
        char* block = static_cast<char*>(malloc(bytes));
        memset(block, 'r', bytes);
        const bool held = ring.hold(block, bytes);    // RLIMIT_MEMLOCK
        ASSERT_EQ(ftruncate(file, 0), 0);
        EXPECT_EQ(ring.run(held ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE, file, block, bytes),
                  static_cast<int>(bytes));
        memset(block, 'x', bytes);
        free(calloc(1, bytes));
        EXPECT_EQ(ring.run(held ? IORING_OP_READ_FIXED : IORING_OP_READ, file, block, bytes), static_cast<int>(bytes));
        EXPECT_TRUE(is_all(block, bytes, 'r')) << bytes;
        EXPECT_TRUE(!held || ring.let_go());
        free(block);
        char* zeros = static_cast<char*>(calloc(1, bytes));
        EXPECT_TRUE(is_all(zeros, bytes, 0)) << bytes;
        free(zeros);
    }
    close(file);
}

// Freed while the ring still holds the pages: what the heap hands out next is its own.
TEST_F(KernelBuffers, ABlockFreedUnderARingGivesZerosToCalloc) {
    Ring ring;
    if (!ring.is_ready()) GTEST_SKIP() << "io_uring is refused here";
    constexpr size_t kBytes = 9 * kMib;
    char* block = static_cast<char*>(malloc(kBytes));
    memset(block, 'r', kBytes);
    if (!ring.hold(block, kBytes)) GTEST_SKIP() << "a ring may hold no buffer";
    free(block);
    malloc_trim(0);
    char* zeros = static_cast<char*>(calloc(1, kBytes));
    EXPECT_TRUE(is_all(zeros, kBytes, 0));
    memset(zeros, 'n', kBytes);
    EXPECT_TRUE(ring.let_go());
    EXPECT_TRUE(is_all(zeros, kBytes, 'n'));
    free(zeros);
}

}    // namespace
