// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/function_ref.h"
#include "runtime/config/tunable_values.h"

namespace pghot {

// The job that this process belongs to, as its launcher's variables tell; empty: none, the process is alone. A name of
// letters, digits and ._- that is the same for all ranks of one launch on this node and another for every other launch
// of this user:
//
//   PMIX_NAMESPACE                  Open MPI, PRRTE, srun --mpi=pmix, jsrun
//   PALS_APID                       HPE Cray PALS
//   FLUX_JOB_ID                     flux run
//   SLURM_JOB_ID + SLURM_STEP_ID    srun; not the steps that are a script or a shell (numbers from 0xfffffff0 on)
//   PMI_RANK                        MPICH, Intel MPI: they name no launch; its processes have one parent, the proxy
//
// The first that is there counts. A launch of one process (by its own variable for the size) has nothing to share: an
// interactive shell under mpirun or srun does not join all it runs. For the same reason the number of a batch job alone
// (SLURM_JOB_ID, PBS_JOBID, LSB_JOBID) is no job: a script may run many things at a time.
//
// Pure; `environment` as environ, null counts as empty. `parent` answers the number of the parent process, a system
// call that is made only where it is needed.
JobText job_of_launcher(const char* const* environment, FunctionRef<int32_t()> parent);

// Whether `text` is a name as PGHOT_JOB takes it.
bool is_job_name(std::string_view text);

}    // namespace pghot
