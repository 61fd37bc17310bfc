// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/job.h"

#include <fmt/compile.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/kernel/process.h"
#include "runtime/kernel/syscalls.h"

namespace pghot {
namespace {

template <size_t kBytes, typename Format, typename... Parts>
FixedText<kBytes> formatted(const Format& format, const Parts&... parts) {
    char text[kBytes];
    const auto end = fmt::format_to_n(text, sizeof text - 1, format, parts...);
    FixedText<kBytes> out;
    out.assign({text, static_cast<size_t>(end.out - text)});
    return out;
}

bool has_ended(uint64_t owner, FileSystem& files) {
    const int32_t pid = pid_of_owner(owner);
    const uint64_t start = start_ticks_of(files, pid);
    return start == 0 || job_owner(pid, start) != owner;
}

// A rank that comes has no turns saved up, nor to make up for.
void make_own(JobSlot& slot, uint64_t owner, const JobBoard& board, TimeNs now) {
    slot.turn_ns.store(board.turn_ns.load(kJobOrder), kJobOrder);
    slot.asks_ns.store(0, kJobOrder);
    slot.back_by_ns.store(0, kJobOrder);
    slot.alive_ns.store(now.ns, kJobOrder);
    slot.sampler_ns.store(0, kJobOrder);
    slot.granted_bytes.store(0, kJobOrder);
    slot.owner.store(owner, kJobOrder);
}

void clear(JobSlot& slot) {
    slot.back_by_ns.store(0, kJobOrder);
    slot.owner.store(0, kJobOrder);
}

// All ranks of an earlier launch were killed: what they left is nobody's.
void clear_if_abandoned(JobBoard& board, FileSystem& files, TimeNs now) {
    const auto slots = used_slots(board);
    if (std::any_of(slots.begin(), slots.end(), [&](const JobSlot& slot) { return shows_life(slot, now); })) return;
    if (anybody_is_on(board, files, now)) return;
    for (JobSlot& slot : slots) clear(slot);
    board.slots_used.store(0, kJobOrder);
    board.ranks_seen.store(0, kJobOrder);
}

// The first that is free, or was of a rank that died; behind the used ones where there is none. A slot that shows life
// is not asked about: a hundred ranks that start at once do not read /proc a hundred times a hundred times. Its own
// slot: the process was another program before it called exec.
size_t free_slot(JobBoard& board, uint64_t self, FileSystem& files, TimeNs now) {
    const auto slots = used_slots(board);
    const auto found = std::find_if(slots.begin(), slots.end(), [&](const JobSlot& slot) {
        const uint64_t owner = slot.owner.load(kJobOrder);
        return owner == 0 || owner == self || (!shows_life(slot, now) && has_ended(owner, files));
    });
    return static_cast<size_t>(found - slots.begin());
}

// An empty word takes `wanted`; false when it holds something else.
bool agrees(std::atomic<uint64_t>& word, uint64_t wanted) {
    if (word.load(kJobOrder) == 0) word.store(wanted, kJobOrder);
    return word.load(kJobOrder) == wanted;
}

}    // namespace

FixedText<32> job_file_prefix() { return formatted<32>(FMT_COMPILE("pghot.{}."), geteuid()); }

FixedText<128> job_file(std::string_view job) {
    return formatted<128>(FMT_COMPILE("{}/{}{}"), std::string_view(kJobFolder), job_file_prefix().view(), job);
}

bool anybody_is_on(const JobBoard& board, FileSystem& files, TimeNs now) {
    const bool can_be_seen = board.pid_namespace.load(kJobOrder) == pid_namespace();
    const auto slots = used_slots(board);
    return std::any_of(slots.begin(), slots.end(), [&](const JobSlot& slot) {
        const uint64_t owner = slot.owner.load(kJobOrder);
        return owner != 0 && (can_be_seen ? !has_ended(owner, files) : shows_life(slot, now));
    });
}

Status Job::join(std::string_view name, FileSystem& files, TimeNs now) {
    file_ = job_file(name);
    SharedMemory memory;
    Status status = memory.open(file_.c_str(), sizeof(JobBoard), SharedMemory::Missing::kMake);
    if (!status.ok()) return status;
    auto* board = reinterpret_cast<JobBoard*>(memory.bytes().data());
    status = take_slot(*board, files, now);
    if (!status.ok()) {
        memory.unmap();
        return status;
    }
    file_identity_ = memory.identity();
    board_ = board;
    return {};
}

Status Job::take_slot(JobBoard& board, FileSystem& files, TimeNs now) {
    if (!agrees(board.format, kJobBoardFormat)) return {"the file in /dev/shm is of another version", EINVAL};
    const uint64_t numbers = pid_namespace();
    if (numbers == 0 || !agrees(board.pid_namespace, numbers))
        return {"the job's other ranks are in another PID namespace", EXDEV};
    const int pid = sys::process_id();
    const uint64_t start = start_ticks_of(files, pid);
    if (start == 0) return {"/proc/self/stat cannot be read", ENOENT};
    clear_if_abandoned(board, files, now);
    slot_ = free_slot(board, job_owner(pid, start), files, now);
    if (slot_ == kJobSlots) return {"the job has more ranks on this node than fit", ENOSPC};
    make_own(board.slots[slot_], job_owner(pid, start), board, now);
    if (slot_ == board.slots_used.load(kJobOrder)) board.slots_used.store(static_cast<uint32_t>(slot_ + 1), kJobOrder);
    board.ranks_seen.fetch_add(1, kJobOrder);
    return {};
}

void Job::leave(FileSystem& files, TimeNs now) {
    if (board_ == nullptr) return;
    JobBoard& board = *board_;
    board_ = nullptr;
    clear(board.slots[slot_]);
    SharedMemory memory;
    const Status status = memory.open(file_.c_str(), sizeof(JobBoard), SharedMemory::Missing::kRefuse);
    if (!status.ok()) return;    // somebody else was the last
    if (memory.identity() == file_identity_ && !anybody_is_on(board, files, now)) memory.remove(file_.c_str());
    memory.unmap();
}

void Job::beat(TimeNs now, uint64_t sampler_ns) {
    if (board_ == nullptr) return;
    board_->slots[slot_].alive_ns.store(now.ns, kJobOrder);
    board_->slots[slot_].sampler_ns.store(sampler_ns, kJobOrder);
}

uint64_t Job::sampler_share(uint64_t limit_ns, TimeNs now) const {
    return board_ == nullptr ? limit_ns : sampler_share_ns(*board_, slot_, limit_ns, now);
}

}    // namespace pghot
