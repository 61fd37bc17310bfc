// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/memory.h"

#include <sys/mman.h>

#include <utility>

#include "runtime/kernel/answer.h"

namespace pghot {

AnonymousMemory::AnonymousMemory(size_t bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        answer(KernelCall::mmap, -1);
        return;
    }
    answer(KernelCall::madvise, madvise(at, bytes, MADV_DONTFORK));
    at_ = at;
    size_ = bytes;
}

AnonymousMemory::~AnonymousMemory() {
    if (at_ != nullptr) answer(KernelCall::munmap, munmap(at_, size_));
}

AnonymousMemory::AnonymousMemory(AnonymousMemory&& other) noexcept
    : at_(std::exchange(other.at_, nullptr)), size_(std::exchange(other.size_, 0)) {}

void* AnonymousMemory::release() {
    size_ = 0;
    return std::exchange(at_, nullptr);
}

AnonymousMemory& AnonymousMemory::operator=(AnonymousMemory&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(size_, other.size_);
    return *this;
}

}    // namespace pghot
