// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pghot {

// What a file name pattern may refer to.
struct FileNameParts {
    int32_t pid = 0;
    std::string_view rank;    // of MPI; empty prints as 0
    std::string_view host;    // nodename of uname
};

// The rank that an MPI launcher or Slurm gave this process: the first of OMPI_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK,
// SLURM_PROCID in `environment` that is a plain number. Empty outside such a job. Points into the environment.
std::string_view mpi_rank(const char* const* environment);

// Replaces %p (pid), %r (rank), %h (host; characters that do not belong into a file name become _) and %% in `pattern`.
// Any other % stays. Returns the zero-terminated result in `storage`, empty when it does not fit.
std::string_view expand_file_name(std::string_view pattern, const FileNameParts& parts, std::span<char> storage);

}    // namespace pghot
