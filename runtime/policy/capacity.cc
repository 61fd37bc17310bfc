// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/capacity.h"

#include <algorithm>

namespace pghot {
namespace {

constexpr uint64_t kBatchBytes = 8 * kMiB;
// Room that ends tightness: several times what the exchange keeps free for its next promotions, or its own demotions
// would call the rules for chunks back.
constexpr int64_t kRelaxedPages = 8192;    // 32 MiB
constexpr Tick kTightFor = ticks_of_ms(10000);

// Of a node number that a Move or an outcome names.
bool is_node(NodeId node) { return node.valid() && node.value < static_cast<int>(kMaxNodes); }

}    // namespace

uint64_t floor_bytes(const Node& node, uint64_t low_watermark_bytes) {
    if (node.lower_tier) return std::max(node.total_bytes / 256, kBatchBytes);
    return std::max(low_watermark_bytes, kBatchBytes) + kBatchBytes;
}

uint64_t headroom_bytes(const Node& node, uint64_t low_watermark_bytes) {
    return std::max(node.total_bytes / 64, floor_bytes(node, low_watermark_bytes));
}

void Capacity::read(std::span<const NodeRoom> rooms, Tick now) {
    for (const NodeRoom& reading : rooms) {
        if (!is_node(reading.node)) continue;
        const auto i = static_cast<unsigned>(reading.node.value);
        room_[i] = static_cast<int64_t>(reading.above_headroom / kPageBytes) - in_flight_[i];
        floor_room_[i] = static_cast<int64_t>(reading.above_floor / kPageBytes) - in_flight_[i];
        known_ |= 1ull << i;
        if (room_[i] >= kRelaxedPages) tight_ = 0;    // another node of DRAM comes before demotion
    }
    freed_ = 0;
    if (limit_room() >= std::min(kRelaxedPages, limit_ / 2)) limit_tight_ = false;
    if (!tight() || later_by(now, tight_until_) < 0) return;
    tight_ = 0;
    limit_tight_ = false;
}

void Capacity::found(uint64_t pages) {
    // Of those on their way down some may be gone already: counted once too often, never once too rarely.
    resident_ = static_cast<int64_t>(pages) + demoting_;
    resident_known_ = true;
}

int64_t Capacity::limit_room() const {
    if (limit_ == 0) return INT64_MAX;
    return resident_known_ ? limit_ - resident_ - promoting_ : 0;
}

uint64_t Capacity::open_for(uint32_t pages) const {
    if (limit_tight_ || limit_room() < pages) return 0;
    uint64_t open = ~(known_ | tight_);
    for (unsigned i = 0; i < kMaxNodes; ++i)
        if ((known_ >> i & 1) != 0 && !is_tight(i) && room_[i] >= pages) open |= 1ull << i;
    return open;
}

uint64_t Capacity::open_for_exchange(uint32_t pages) const {
    if (limit_room() < pages) return 0;
    uint64_t open = limit_tight_ ? ~known_ : 0;
    for (unsigned i = 0; i < kMaxNodes; ++i)
        if ((known_ >> i & 1) != 0 && is_tight(i) && exchange_room(i) >= pages) open |= 1ull << i;
    return open;
}

int64_t Capacity::exchange_room(unsigned node) const {
    return std::max(room_[node], std::min(made_, floor_room_[node]));
}

void Capacity::note_shortage(uint32_t pages, Tick now) {
    tight_until_ = now + kTightFor;
    if (limit_room() < pages) limit_tight_ = true;
    for (unsigned i = 0; i < kMaxNodes; ++i)
        if ((known_ >> i & 1) != 0 && room_[i] < pages) tight_ |= 1ull << i;
}

void Capacity::planned(MoveKind kind, NodeId target, uint32_t pages) {
    if (kind == MoveKind::kDemote) {
        demoting_ += pages;
    } else if (kind == MoveKind::kPromote && is_node(target)) {
        const auto i = static_cast<unsigned>(target.value);
        if (is_tight(i)) made_ = std::max(made_ - pages, int64_t{0});
        room_[i] -= pages;
        floor_room_[i] -= pages;
        in_flight_[i] += pages;
        promoting_ += pages;
    }
}

void Capacity::reported(const MoveOutcome& outcome, Tick retry) {
    const auto pages = static_cast<int64_t>(outcome.pages);
    if (outcome.kind == MoveKind::kDemote) {
        demoting_ = std::max(demoting_ - pages, int64_t{0});
        if (outcome.outcome == PageOutcome::kDemoted) {
            freed_ += pages;
            made_ = std::min(made_ + pages, kRelaxedPages);
            resident_ -= pages;
        }
        lower_full_ = outcome.outcome == PageOutcome::kNoMemory;
        if (lower_full_) lower_full_until_ = retry;
    } else if (outcome.kind == MoveKind::kPromote && is_node(outcome.target)) {
        settle(outcome.target, pages);
        if (outcome.outcome == PageOutcome::kPromoted) {
            resident_ += pages;
            return;
        }
        const auto i = static_cast<unsigned>(outcome.target.value);
        room_[i] += pages;
        floor_room_[i] += pages;
        if (is_tight(i)) made_ = std::min(made_ + pages, kRelaxedPages);
    }
}

// The mover may have taken another node than was planned: then the pages are in flight to that one still.
void Capacity::settle(NodeId target, int64_t pages) {
    promoting_ = std::max(promoting_ - pages, int64_t{0});
    int64_t& planned = in_flight_[static_cast<unsigned>(target.value)];
    const int64_t here = std::min(planned, pages);
    planned -= here;
    if (here == pages) return;
    int64_t& other = *std::max_element(in_flight_.begin(), in_flight_.end());
    other = std::max(other - (pages - here), int64_t{0});
}

uint64_t Capacity::room() const {
    int64_t free = 0;
    int64_t above_floor = 0;
    for (unsigned i = 0; i < kMaxNodes; ++i) {
        if ((known_ >> i & 1) == 0 || !is_tight(i)) continue;
        free += std::max(room_[i], int64_t{0});
        above_floor += std::max(floor_room_[i], int64_t{0});
    }
    int64_t room = std::max(free, std::min(made_, above_floor));
    if (limit_tight_ && known_ == 0) room = INT64_MAX;    // nothing can be read here: the limit alone counts
    return static_cast<uint64_t>(std::clamp(limit_room(), int64_t{0}, room));
}

uint64_t Capacity::excess() const {
    const int64_t over = limit_ != 0 && resident_known_ ? resident_ - limit_ - demoting_ : 0;
    return static_cast<uint64_t>(std::max(over, int64_t{0}));
}

}    // namespace pghot
