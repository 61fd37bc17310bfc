// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "runtime/kernel/answer.h"
#include "runtime/kernel/syscalls.h"
#include "runtime/kernel/text.h"

namespace pghot {

void take_standard_descriptors() {
    for (int wanted = 0; wanted < 3; ++wanted)
        if (answer(KernelCall::open, open("/dev/null", O_RDWR | O_CLOEXEC)) < 0) return;
}

void read_command(FileSystem& files, std::span<char> out) {
    const long got = files.read("/proc/self/cmdline", out.first(out.size() - 1));
    size_t length = got > 0 ? static_cast<size_t>(got) : 0;
    if (length > 0 && out[length - 1] == '\0') --length;
    std::replace(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(length), '\0', ' ');
    out[length] = '\0';
}

uint64_t start_ticks_of(FileSystem& files, int pid) {
    char path[32] = "/proc/";
    char* const digits = path + 6;
    char* const end = std::to_chars(digits, path + sizeof path - 6, pid).ptr;
    std::copy_n("/stat", 6, end);
    char buffer[512];
    std::string_view stat = files.first_line(path, buffer);
    // The name, in parentheses, may hold anything; after it come single fields, the state being the third.
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string_view::npos) return 0;
    stat.remove_prefix(name_end + 1);
    skip_spaces(stat);
    if (stat.empty() || stat.front() == 'Z' || stat.front() == 'X') return 0;
    constexpr unsigned kStartTicks = 22;
    for (unsigned field = 3; field < kStartTicks; ++field) {
        const size_t space = stat.find(' ');
        if (space == std::string_view::npos) return 0;
        stat.remove_prefix(space + 1);
    }
    uint64_t ticks = 0;
    return take_number(stat, ticks) ? ticks : 0;
}

uint64_t pid_namespace() {
    const auto fd = static_cast<int>(answer(KernelCall::open, open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC)));
    if (fd < 0) return 0;
    struct stat info {};
    const bool told = answer(KernelCall::fstat, fstat(fd, &info)) == 0;
    close(fd);
    return told ? info.st_ino : 0;
}

std::string_view error_name(int error) {
    const char* name = strerrorname_np(error);
    return name == nullptr ? "E?" : name;
}

std::string_view error_text(int error) {
    const char* text = strerrordesc_np(error);
    return text == nullptr ? "unknown error" : text;
}

void* map_memfd(const char* name, size_t bytes) {
    const int fd = sys::memfd(name);
    if (fd < 0) return nullptr;
    if (answer(KernelCall::ftruncate, ftruncate(fd, static_cast<off_t>(bytes))) == 0) {
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at != MAP_FAILED) {
            answer(KernelCall::madvise, madvise(at, bytes, MADV_DONTFORK));
            return at;    // the descriptor stays open: it is how others find the memory
        }
        answer(KernelCall::mmap, -1);
    }
    close(fd);
    return nullptr;
}

}    // namespace pghot
