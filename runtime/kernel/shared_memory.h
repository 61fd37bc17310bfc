// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"

namespace pghot {

// Memory that the processes of one user share by a file in a folder that is everybody's (/dev/shm). Opened under a lock
// that the kernel gives back when its holder dies, so that making, joining and removing the file exclude each other:
//
//   open()    makes it or finds it, checks it, locks it, maps it
//   ...       who is there, who has gone: consistent, as nobody else is here
//   close()   unlocks; the mapping stays
//
// Opens a descriptor: on a thread with its own table. One thread; the mapping outlives the object and is not inherited
// by forked children.
class SharedMemory {
public:
    enum class Missing { kMake, kRefuse };

    SharedMemory() = default;
    ~SharedMemory() { close(); }
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    // Refused is whatever is not a plain file of this user, of mode 0600, with one name, and empty (then it is made
    // `bytes` long, zeroed) or `bytes` long. No link is followed. Waits for the lock at most 200 ms. Errors: ELOOP a
    // symbolic link, EPERM another user's, EACCES another mode, EMLINK several names, EINVAL no plain file or another
    // length, EBUSY locked all the time, ENOSPC no room, else the kernel's.
    // With kRefuse a file that is missing is ENOENT and nothing is made.
    Status open(const char* path, size_t bytes, Missing missing);
    void close();

    bool is_open() const { return fd_ >= 0; }
    std::span<std::byte> bytes() const { return {static_cast<std::byte*>(at_), size_}; }
    // Which file it is: the same number only for the same file, while it exists.
    uint64_t identity() const { return identity_; }
    // While it is open: takes the name away, whoever has it mapped keeps it. 0 or -errno.
    int remove(const char* path);
    // Takes the mapping away.
    void unmap();

private:
    Status open_once(const char* path, size_t bytes, Missing missing);
    int open_file(const char* path, Missing missing);
    Status check(size_t bytes);
    Status lock();
    Status map(size_t bytes);

    int fd_ = -1;
    void* at_ = nullptr;
    size_t size_ = 0;
    uint64_t identity_ = 0;
    bool is_gone_ = false;    // its name was taken away between opening and locking
    bool is_new_ = false;
};

}    // namespace pghot
