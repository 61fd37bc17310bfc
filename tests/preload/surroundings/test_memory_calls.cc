// SPDX-License-Identifier: Apache-2.0
// Programs that make memory calls of their own, on pages of the heap and around them: the heap neither notices nor is
// noticed.
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/loaded.h"

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMib = 1 << 20;
constexpr size_t kTib = size_t{1} << 40;
constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;

class HeapBlock {
public:
    explicit HeapBlock(size_t bytes, char mark = 'h')
        : bytes_(bytes), mark_(mark), data_(static_cast<char*>(memalign(kPage, bytes))) {
        fill();
    }
    ~HeapBlock() { free(data_); }
    HeapBlock(const HeapBlock&) = delete;
    char* page(size_t number) const { return data_ + number * kPage; }
    char* data() const { return data_; }
    size_t bytes() const { return bytes_; }
    void fill() const { memset(data_, mark_, bytes_); }
    // True when the bytes of [first, end), in pages, are all `mark`.
    bool holds(char mark, size_t first, size_t end) const {
        return std::all_of(page(first), page(end), [mark](char byte) { return byte == mark; });
    }
    bool is_intact() const { return holds(mark_, 0, bytes_ / kPage); }

private:
    size_t bytes_;
    char mark_;
    char* data_;
};

// What the heap does all day; every block is checked.
void use_the_heap() {
    std::vector<std::pair<char*, size_t>> blocks;
    for (size_t i = 1; i < 400; ++i) {
        const size_t bytes = i % 40 == 0 ? i * 8000 : i * 131 % 70000 + 1;
        char* block = static_cast<char*>(malloc(bytes));
        ASSERT_NE(block, nullptr) << bytes;
        memset(block, static_cast<int>(i), bytes);
        blocks.emplace_back(block, bytes);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
        const auto [block, bytes] = blocks[i];
        const char mark = static_cast<char>(i + 1);
        EXPECT_TRUE(std::all_of(block, block + bytes, [mark](char byte) { return byte == mark; })) << bytes;
        free(block);
    }
}

void expect_zeroed_memory_from_calloc(size_t bytes) {
    for (int i = 0; i < 20; ++i) {
        char* block = static_cast<char*>(calloc(1, bytes));
        ASSERT_NE(block, nullptr);
        EXPECT_TRUE(std::all_of(block, block + bytes, [](char byte) { return byte == 0; })) << bytes;
        memset(block, 'd', bytes);
        free(block);
    }
}

// Exit status of `work` in a forked child; a signal is negative.
int in_child(const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void* own_mapping(size_t bytes, int protection = kReadWrite, int flags = kPrivate, void* at = nullptr) {
    return mmap(at, bytes, protection, flags, -1, 0);
}

class MemoryCalls : public Preloaded {
protected:
    void TearDown() override { use_the_heap(); }
};

// --- advice on heap pages ---

TEST_F(MemoryCalls, DontneedOnHeapPagesGivesZerosThereAndNowhereElse) {
    for (size_t bytes : {64 * kPage, 9 * kMib}) {
        const HeapBlock block(bytes);
        ASSERT_EQ(madvise(block.page(8), 8 * kPage, MADV_DONTNEED), 0);
        EXPECT_TRUE(block.holds('h', 0, 8) && block.holds(0, 8, 16) && block.holds('h', 16, bytes / kPage));
        block.fill();
        EXPECT_TRUE(block.is_intact());
    }
}

TEST_F(MemoryCalls, FreeAdviceOnHeapPagesKeepsWhatIsWrittenAfterwards) {
    const HeapBlock block(9 * kMib);
    ASSERT_EQ(madvise(block.data(), block.bytes(), MADV_FREE), 0);
    block.fill();
    EXPECT_TRUE(block.is_intact());
}

TEST_F(MemoryCalls, AdviceThatChangesNothingChangesNothing) {
    const HeapBlock block(9 * kMib);
    for (int advice : {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE,
                       MADV_MERGEABLE, MADV_UNMERGEABLE, MADV_DONTDUMP, MADV_DODUMP, MADV_COLD, MADV_PAGEOUT}) {
        errno = 0;
        EXPECT_TRUE(madvise(block.data(), block.bytes(), advice) == 0 || errno == EINVAL) << advice << ' ' << errno;
        EXPECT_TRUE(block.is_intact()) << advice;
    }
}

// As libraries for InfiniBand do with registered buffers.
TEST_F(MemoryCalls, PagesKeptFromAChildAreBackForTheNextChild) {
    HeapBlock block(2 * kMib);
    ASSERT_EQ(madvise(block.data(), block.bytes(), MADV_DONTFORK), 0);
    EXPECT_EQ(in_child([] {
                  use_the_heap();
                  return HasFailure() ? 1 : 0;
              }),
              0);
    EXPECT_EQ(in_child([&] { return block.is_intact() ? 0 : 1; }), -SIGSEGV);
    ASSERT_EQ(madvise(block.data(), block.bytes(), MADV_DOFORK), 0);
    EXPECT_EQ(in_child([&] { return block.is_intact() ? 0 : 1; }), 0);
}

TEST_F(MemoryCalls, HeapThatIsWipedInAChildIsZeroThere) {
    const HeapBlock block(2 * kMib);
    ASSERT_EQ(madvise(block.data(), block.bytes(), MADV_WIPEONFORK), 0);
    EXPECT_EQ(in_child([&] { return block.holds(0, 0, block.bytes() / kPage) ? 0 : 1; }), 0);
    ASSERT_EQ(madvise(block.data(), block.bytes(), MADV_KEEPONFORK), 0);
    EXPECT_TRUE(block.is_intact());
}

TEST_F(MemoryCalls, EverythingLockedCallocStillGivesZeros) {
    EXPECT_EQ(in_child([] {
                  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 77;
                  for (size_t bytes : {size_t{100}, size_t{20000}, kMib, 9 * kMib}) {
                      expect_zeroed_memory_from_calloc(bytes);
                      malloc_trim(0);    // purging locked pages is refused
                      expect_zeroed_memory_from_calloc(bytes);
                  }
                  use_the_heap();
                  return HasFailure() ? 1 : 0;
              }) % 77,
              0);
}

TEST_F(MemoryCalls, ALockedBlockIsFreedAndUsedAgain) {
    for (int again = 0; again < 5; ++again) {
        const HeapBlock block(16 * kPage);
        if (mlock(block.data(), block.bytes()) != 0) GTEST_SKIP() << "no memory may be locked";
        EXPECT_TRUE(block.is_intact());
    }
    expect_zeroed_memory_from_calloc(16 * kPage);
}

// --- protection ---

void* volatile written_page = nullptr;
void open_page(int, siginfo_t* info, void*) {
    written_page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(info->si_addr) & ~(kPage - 1));
    mprotect(written_page, kPage, kReadWrite);
}

// A garbage collector's write barrier.
TEST_F(MemoryCalls, AWriteBarrierOnHeapPagesIsOpenedByTheProgram) {
    struct sigaction barrier {
    }, before{};
    barrier.sa_sigaction = open_page;
    barrier.sa_flags = SA_SIGINFO;
    ASSERT_EQ(sigaction(SIGSEGV, &barrier, &before), 0);
    HeapBlock block(64 * kPage);
    ASSERT_EQ(mprotect(block.data(), block.bytes(), PROT_READ), 0);
    use_the_heap();
    for (size_t page : {0, 13, 63}) {
        *static_cast<volatile char*>(block.page(page)) = 'h';
        EXPECT_EQ(written_page, static_cast<void*>(block.page(page)));
    }
    mprotect(block.data(), block.bytes(), kReadWrite);
    sigaction(SIGSEGV, &before, nullptr);
    EXPECT_TRUE(block.is_intact());
}

TEST_F(MemoryCalls, CodeMayRunFromHeapPages) {
    constexpr unsigned char kReturn7[] = {0xb8, 7, 0, 0, 0, 0xc3};    // mov $7, %eax; ret
    const HeapBlock block(4 * kPage);
    memcpy(block.data(), kReturn7, sizeof kReturn7);
    if (mprotect(block.data(), kPage, PROT_READ | PROT_EXEC) != 0) GTEST_SKIP() << "no page may become executable";
    EXPECT_EQ(reinterpret_cast<int (*)()>(block.data())(), 7);
    ASSERT_EQ(mprotect(block.data(), kPage, kReadWrite), 0);
}

// --- mappings moved and put over each other ---

TEST_F(MemoryCalls, OwnMappingsGrowAndMoveWithTheirContents) {
    char* mapping = static_cast<char*>(own_mapping(64 * kPage));
    ASSERT_NE(mapping, MAP_FAILED);
    for (size_t page = 0; page < 64; ++page) mapping[page * kPage] = static_cast<char>(page + 1);
    size_t pages = 64;
    for (size_t more : {65, 1000, 20000, 300, 64}) {
        mapping = static_cast<char*>(mremap(mapping, pages * kPage, more * kPage, MREMAP_MAYMOVE));
        ASSERT_NE(mapping, MAP_FAILED) << more;
        pages = more;
        use_the_heap();
        for (size_t page = 0; page < 64; ++page) ASSERT_EQ(mapping[page * kPage], static_cast<char>(page + 1));
    }
    EXPECT_EQ(pghot_placement_of(mapping), -1);
    munmap(mapping, pages * kPage);
}

TEST_F(MemoryCalls, MappingsMoveOntoAddressesThatTheProgramKeptFree) {
    char* kept = static_cast<char*>(own_mapping(128 * kPage, PROT_NONE));
    char* mapping = static_cast<char*>(own_mapping(16 * kPage));
    memset(mapping, 'm', 16 * kPage);
    void* moved = mremap(mapping, 16 * kPage, 16 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, kept + 32 * kPage);
    ASSERT_EQ(moved, kept + 32 * kPage);
    use_the_heap();    // may take the hole that `mapping` left
    EXPECT_TRUE(std::all_of(kept + 32 * kPage, kept + 48 * kPage, [](char byte) { return byte == 'm'; }));
    munmap(kept, 128 * kPage);
}

#ifdef MREMAP_DONTUNMAP
// As compacting collectors take pages away: the heap's own are zero afterwards, and still the heap's.
TEST_F(MemoryCalls, PagesTakenOutOfTheHeapLeaveZeros) {
    const HeapBlock block(64 * kPage);
    void* taken = mremap(block.page(16), 16 * kPage, 16 * kPage, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
    if (taken == MAP_FAILED) GTEST_SKIP() << "no MREMAP_DONTUNMAP before Linux 5.7";
    EXPECT_EQ(static_cast<char*>(taken)[0], 'h');
    EXPECT_TRUE(block.holds('h', 0, 16) && block.holds(0, 16, 32) && block.holds('h', 32, 64));
    EXPECT_GE(pghot_placement_of(block.page(16)), 0);
    munmap(taken, 16 * kPage);
}
#endif

TEST_F(MemoryCalls, MemoryMappedOverHeapPagesIsFreedWithThem) {
    char* block = static_cast<char*>(memalign(kPage, 64 * kPage));
    memset(block, 'n', 64 * kPage);
    char* const middle = block + 20 * kPage;
    ASSERT_EQ(own_mapping(4 * kPage, kReadWrite, kPrivate | MAP_FIXED, middle), middle);
    EXPECT_TRUE(middle[0] == 0 && middle[-1] == 'n' && middle[4 * kPage] == 'n');
    block = static_cast<char*>(realloc(block, 3000 * kPage));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(block[0] == 'n' && block[20 * kPage] == 0 && block[63 * kPage] == 'n');
    free(block);
}

struct Range {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    bool is_heap = false;
};

std::vector<Range> ranges_of_this_process() {
    std::vector<Range> ranges;
    ranges.reserve(4096);
    FILE* maps = fopen("/proc/self/maps", "re");
    if (maps == nullptr) return ranges;
    char line[512];
    while (fgets(line, sizeof line, maps) != nullptr) {
        Range range;
        if (sscanf(line, "%lx-%lx", &range.begin, &range.end) != 2) continue;
        range.is_heap = pghot_placement_of(reinterpret_cast<void*>(range.begin)) >= 0;
        ranges.push_back(range);
    }
    fclose(maps);
    return ranges;
}

// A program may sit down in every hole beside the heap; the heap must not have counted on any of them.
TEST_F(MemoryCalls, TheHeapGrowsAroundMappingsRightBesideIt) {
    use_the_heap();
    std::vector<char*> neighbours;
    for (const Range& range : ranges_of_this_process()) {
        if (!range.is_heap) continue;
        for (uintptr_t at : {range.begin - kPage, range.end}) {
            void* wanted = reinterpret_cast<void*>(at);
            void* got = own_mapping(kPage, kReadWrite, kPrivate | MAP_FIXED_NOREPLACE, wanted);
            if (got == MAP_FAILED) continue;
            ASSERT_EQ(got, wanted);
            memset(got, 'b', kPage);
            neighbours.push_back(static_cast<char*>(got));
        }
    }
    EXPECT_FALSE(neighbours.empty()) << "no heap found in /proc/self/maps";
    for (int again = 0; again < 5; ++again) use_the_heap();
    for (char* page : neighbours) {
        EXPECT_TRUE(std::all_of(page, page + kPage, [](char byte) { return byte == 'b'; }));
        munmap(page, kPage);
    }
}

TEST_F(MemoryCalls, LowAddressesAreTheProgramsOwn) {
    void* low = own_mapping(kPage, kReadWrite, kPrivate | MAP_FIXED_NOREPLACE, reinterpret_cast<void*>(0x10000));
    void* below_4_gib = own_mapping(kMib, kReadWrite, kPrivate | MAP_32BIT);
    EXPECT_NE(below_4_gib, MAP_FAILED);
    use_the_heap();
    for (void* mapping : {low, below_4_gib}) {
        if (mapping == MAP_FAILED) continue;    // vm.mmap_min_addr
        *static_cast<char*>(mapping) = 1;
        EXPECT_EQ(pghot_placement_of(mapping), -1);
    }
    munmap(low, kPage);
    munmap(below_4_gib, kMib);
}

// --- reservations ---

std::vector<void*> reserve_all(size_t bytes) {
    std::vector<void*> reservations;
    reservations.reserve(64);
    for (;;) {
        void* reservation = own_mapping(bytes, PROT_NONE, kPrivate | MAP_NORESERVE);
        if (reservation == MAP_FAILED) return reservations;
        reservations.push_back(reservation);
    }
}

// As sanitizers, Go, Java and GPU drivers reserve.
TEST_F(MemoryCalls, TheHeapLivesOnBesideReservationsOfTerabytes) {
    const HeapBlock before(9 * kMib);
    std::vector<void*> reservations = reserve_all(16 * kTib);
    EXPECT_GE(reservations.size(), 4U);
    use_the_heap();
    std::thread(use_the_heap).join();
    const HeapBlock after(200 * kMib);
    EXPECT_TRUE(before.is_intact() && after.is_intact());
    for (void* reservation : reservations) {
        EXPECT_EQ(pghot_placement_of(reservation), -1);
        munmap(reservation, 16 * kTib);
    }
}

TEST_F(MemoryCalls, PartsOfAReservationAreCommittedBesideTheHeap) {
    char* reservation = static_cast<char*>(own_mapping(16 * kTib, PROT_NONE, kPrivate | MAP_NORESERVE));
    ASSERT_NE(reservation, MAP_FAILED);
    for (size_t part = 0; part < 16; ++part) {
        char* at = reservation + part * kTib + part * kMib;
        ASSERT_EQ(mprotect(at, kMib, kReadWrite), 0);
        memset(at, static_cast<int>(part + 1), kMib);
        use_the_heap();
    }
    for (size_t part = 0; part < 16; ++part)
        EXPECT_EQ(reservation[part * kTib + part * kMib + kMib - 1], static_cast<char>(part + 1));
    munmap(reservation, 16 * kTib);
}

// --- brk ---

TEST_F(MemoryCalls, TheBreakIsTheProgramsAlone) {
    char* const first = static_cast<char*>(sbrk(kMib));
    ASSERT_NE(first, reinterpret_cast<char*>(-1));
    memset(first, 'b', kMib);
    for (int step = 1; step < 10; ++step) {
        use_the_heap();
        char* next = static_cast<char*>(sbrk(kMib));
        ASSERT_EQ(next, first + step * kMib) << "somebody else moved the break";
        memset(next, 'b', kMib);
    }
    EXPECT_TRUE(std::all_of(first, first + 10 * kMib, [](char byte) { return byte == 'b'; }));
    EXPECT_EQ(pghot_placement_of(first), -1);
    EXPECT_EQ(brk(first), 0);
    use_the_heap();
}

// --- seen from outside ---

TEST_F(MemoryCalls, AnotherProcessReadsAndWritesHeapBlocks) {
    const HeapBlock block(3 * kMib);
    const pid_t owner = getpid();
    const int status = in_child([&] {
        std::vector<char> copy(block.bytes());
        iovec local{copy.data(), copy.size()}, remote{block.data(), block.bytes()};
        if (process_vm_readv(owner, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(block.bytes())) return 77;
        if (copy.front() != 'h' || copy.back() != 'h') return 1;
        char mark = 'w';
        iovec one{&mark, 1}, last{block.data() + block.bytes() - 1, 1};
        return process_vm_writev(owner, &one, 1, &last, 1, 0) == 1 ? 0 : 1;
    });
    if (status == 77) GTEST_SKIP() << "no process may read another";
    EXPECT_EQ(status, 0);
    EXPECT_EQ(block.data()[block.bytes() - 1], 'w');
}

TEST_F(MemoryCalls, TheProcessReadsItselfThroughProc) {
    const HeapBlock block(3 * kMib);
    const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    if (memory < 0) GTEST_SKIP() << "no /proc/self/mem";
    char seen = 0;
    const auto at = static_cast<off_t>(reinterpret_cast<uintptr_t>(block.page(5)));
    EXPECT_EQ(pread(memory, &seen, 1, at), 1);
    EXPECT_EQ(seen, 'h');
    EXPECT_EQ(pwrite(memory, "w", 1, at), 1);
    EXPECT_EQ(*block.page(5), 'w');
    close(memory);
}

TEST_F(MemoryCalls, HeapIsPrivateMemoryWithoutAFile) {
    std::vector<void*> blocks;
    for (size_t bytes : {size_t{200}, size_t{30000}, size_t{600000}, 9 * kMib}) blocks.push_back(calloc(1, bytes));
    FILE* maps = fopen("/proc/self/maps", "re");
    ASSERT_NE(maps, nullptr);
    char line[512];
    size_t found = 0;
    while (fgets(line, sizeof line, maps) != nullptr) {
        uintptr_t begin = 0, end = 0;
        unsigned long inode = 0;
        char rights[8] = "";
        if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &begin, &end, rights, &inode) != 4) continue;
        for (void* block : blocks) {
            const auto at = reinterpret_cast<uintptr_t>(block);
            if (at < begin || at >= end) continue;
            ++found;
            EXPECT_STREQ(rights, "rw-p");
            EXPECT_EQ(inode, 0U) << line;
        }
    }
    fclose(maps);
    EXPECT_EQ(found, blocks.size());
    for (void* block : blocks) free(block);
}

TEST_F(MemoryCalls, ChildAndParentWriteTheirOwnCopies) {
    const HeapBlock small(2 * kPage), large(9 * kMib);
    EXPECT_EQ(in_child([&] {
                  memset(small.data(), 'c', small.bytes());
                  memset(large.data(), 'c', large.bytes());
                  return 0;
              }),
              0);
    EXPECT_TRUE(small.is_intact() && large.is_intact());
}

TEST_F(MemoryCalls, SharedMemoryBesideTheHeapStaysShared) {
    const int file = memfd_create("shared", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(file, 4 * kMib), 0);
    char* shared = static_cast<char*>(mmap(nullptr, 4 * kMib, kReadWrite, MAP_SHARED, file, 0));
    ASSERT_NE(shared, MAP_FAILED);
    use_the_heap();
    EXPECT_EQ(in_child([=] {
                  use_the_heap();
                  memset(shared, 's', 4 * kMib);
                  return 0;
              }),
              0);
    EXPECT_TRUE(std::all_of(shared, shared + 4 * kMib, [](char byte) { return byte == 's'; }));
    munmap(shared, 4 * kMib);
    close(file);
}

// --- heap as a buffer of the kernel ---

TEST_F(MemoryCalls, HeapPagesGoThroughAPipeWithoutACopy) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const HeapBlock block(8 * kPage);
    for (const unsigned flags : {0U, unsigned{SPLICE_F_GIFT}}) {
        iovec pages{block.data(), block.bytes()};
        ASSERT_EQ(vmsplice(ends[1], &pages, 1, flags), static_cast<ssize_t>(block.bytes()));
        use_the_heap();
        std::vector<char> read_back(block.bytes());
        ASSERT_EQ(read(ends[0], read_back.data(), read_back.size()), static_cast<ssize_t>(read_back.size()));
        EXPECT_TRUE(std::all_of(read_back.begin(), read_back.end(), [](char byte) { return byte == 'h'; }));
    }
    close(ends[0]);
    close(ends[1]);
}

TEST_F(MemoryCalls, HeapBlocksAreBuffersOfDirectReadsAndWrites) {
    std::string name = "direct-XXXXXX";
    const int named = mkstemp(name.data());
    ASSERT_GE(named, 0);
    close(named);
    const int file = open(name.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
    unlink(name.c_str());
    if (file < 0) GTEST_SKIP() << "this file system has no O_DIRECT";
    const HeapBlock out(2 * kMib, 'o'), in(2 * kMib, 'i');
    EXPECT_EQ(pwrite(file, out.data(), out.bytes(), 0), static_cast<ssize_t>(out.bytes()));
    EXPECT_EQ(pread(file, in.data(), in.bytes(), 0), static_cast<ssize_t>(in.bytes()));
    EXPECT_TRUE(in.holds('o', 0, in.bytes() / kPage));
    close(file);
}

}    // namespace
