// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/config/tunable_values.h"
#include "runtime/kernel/filesystem.h"
#include "runtime/kernel/shared_memory.h"
#include "runtime/policy/job_shares.h"

namespace pghot {

inline constexpr const char* kJobFolder = "/dev/shm";

// The file of a job's board: /dev/shm/pghot.UID.JOB of the calling user.
FixedText<128> job_file(std::string_view job);
// What all files of the user's jobs begin with: "pghot.UID.".
FixedText<32> job_file_prefix();

// Whether a process that has a slot on the board still runs. Reads /proc. Processes of another PID namespace cannot be
// seen from here: a board of one counts as in use while there is a sign of life.
bool anybody_is_on(const JobBoard& board, FileSystem& files, TimeNs now);

// This process's membership in the job of its rank on this node. Owned by the sampler, in whose descriptor table the
// file is opened and closed; the board's memory is never given back, as the mover may still use it.
class Job {
public:
    Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    // Takes a slot on the board of `name`, making the board when this is the first rank, and taking over slots of ranks
    // that died. A failure says why, and leaves the process alone.
    Status join(std::string_view name, FileSystem& files, TimeNs now);
    // Gives the slot back; the last one removes the file. Nobody of this process uses the board any more.
    void leave(FileSystem& files, TimeNs now);

    // Null: alone.
    JobBoard* board() const { return board_; }
    size_t slot() const { return slot_; }
    // About once a second: this rank lives, and its sampler used so much CPU time in a second.
    void beat(TimeNs now, uint64_t sampler_ns);
    // The part of `limit_ns`, CPU time a second for the samplers of all ranks, that this one may use.
    uint64_t sampler_share(uint64_t limit_ns, TimeNs now) const;

private:
    Status take_slot(JobBoard& board, FileSystem& files, TimeNs now);

    FixedText<128> file_;
    uint64_t file_identity_ = 0;
    JobBoard* board_ = nullptr;
    size_t slot_ = 0;
};

}    // namespace pghot
