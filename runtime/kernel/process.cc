// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/kernel/answer.h"
#include "runtime/kernel/syscalls.h"

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
