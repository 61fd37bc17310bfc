// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/standard_error.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/kernel/answer.h"

namespace pghot {
namespace {

// Written by note_standard_error at load, constant afterwards.
struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    bool known = false;
};
constinit FileIdentity at_load;

FileIdentity identity_now() {
    struct stat info {};
    if (fstat(STDERR_FILENO, &info) != 0) {
        if (errno != EBADF) answer(KernelCall::fstat, -1);    // closed is the program's choice
        return {};
    }
    return {info.st_dev, info.st_ino, true};
}

bool is_as_at_load() {
    const FileIdentity now = identity_now();
    return at_load.known && now.known && now.device == at_load.device && now.inode == at_load.inode;
}

// While it lives, a failing write of this thread raises no signal that anybody sees.
class WriteSignalsHeld {
public:
    WriteSignalsHeld() {
        sigemptyset(&both_);
        sigaddset(&both_, SIGPIPE);
        sigaddset(&both_, SIGXFSZ);
        sigpending(&pending_before_);
        pthread_sigmask(SIG_BLOCK, &both_, &mask_before_);
    }
    ~WriteSignalsHeld() {
        if (write_failed) take_back();
        pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    }
    WriteSignalsHeld(const WriteSignalsHeld&) = delete;
    WriteSignalsHeld& operator=(const WriteSignalsHeld&) = delete;
    bool write_failed = false;

private:
    // What was pending before is the program's.
    void take_back() {
        for (const int each : {SIGPIPE, SIGXFSZ})
            if (sigismember(&pending_before_, each) == 1) sigdelset(&both_, each);
        const timespec no_wait{};
        while (sigtimedwait(&both_, nullptr, &no_wait) < 0 && errno == EINTR) {
        }
    }
    sigset_t both_;
    sigset_t pending_before_;
    sigset_t mask_before_;
};

}    // namespace

void note_standard_error() { at_load = identity_now(); }

bool write_standard_error(std::span<const char> bytes) {
    if (!is_as_at_load()) return false;
    WriteSignalsHeld signals;
    while (!bytes.empty()) {
        const ssize_t written = write(STDERR_FILENO, bytes.data(), bytes.size());
        if (written > 0)
            bytes = bytes.subspan(static_cast<size_t>(written));
        else if (written == 0 || errno != EINTR)
            break;
    }
    signals.write_failed = !bytes.empty();
    return bytes.empty();
}

}    // namespace pghot
