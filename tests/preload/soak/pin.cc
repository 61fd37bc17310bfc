// SPDX-License-Identifier: Apache-2.0
#include "pin.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "tally.h"

namespace soak {
namespace {

constexpr int kMostPins = 64;           // two descriptors each
constexpr int kPipeBytes = 64 << 12;    // 64 pages; all pins together stay below pipe-user-pages-soft
constinit std::atomic<int> pins{0};

}    // namespace

bool Pin::possible() { return pins.load(std::memory_order_relaxed) < kMostPins; }

Pin::Pin(const Pattern& pattern, char* memory, Range range, Kind kind) : pattern_(pattern), range_(range) {
    pins.fetch_add(1, std::memory_order_relaxed);
    if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) give_up("pipe2");
    fcntl(ends_[1], F_SETPIPE_SZ, kPipeBytes);    // refused: fewer pages
    const iovec pages{memory + range.from, range.bytes()};
    const ssize_t taken = vmsplice(ends_[1], &pages, 1, SPLICE_F_NONBLOCK | (kind == Kind::kGift ? SPLICE_F_GIFT : 0));
    if (taken < 0 && errno != EAGAIN) give_up("vmsplice");
    range_.to = range_.from + static_cast<size_t>(std::max<ssize_t>(taken, 0));
    count(kind == Kind::kGift ? tally.gifts : tally.pins);
}

Pin::~Pin() {
    if (ours_ && checked_) check_contents();
    close(ends_[0]);
    close(ends_[1]);
    pins.fetch_sub(1, std::memory_order_relaxed);
}

void Pin::check_contents() {
    char page[kPageBytes];
    size_t offset = range_.from;
    while (offset < range_.to) {
        const ssize_t got = read(ends_[0], page, sizeof page);
        if (got <= 0) give_up("read of pinned pages");
        pattern_.check_copy("pinned pages of block", page, {offset, offset + static_cast<size_t>(got)});
        offset += static_cast<size_t>(got);
    }
    count(tally.pinned_bytes_verified, range_.bytes());
}

}    // namespace soak
