// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "runtime/base/refused_calls.h"
#include "runtime/base/statistics.h"
#include "runtime/base/topology.h"
#include "runtime/report/json_writer.h"

namespace pghot {

// One setting as it was in effect.
struct ReportedTunable {
    std::string_view name;     // PGHOT_...
    std::string_view value;    // in the form that the environment takes
    std::string_view unit;     // may be empty
    bool set_by_user = false;
};

// Calls the function it is given once for each setting, in the order of the table. A callback, so that one small buffer
// serves all values.
using TunableVisitor = FunctionRef<void(FunctionRef<void(const ReportedTunable&)>)>;

using ErrorName = std::string_view (*)(int error);    // "EACCES"

// What a report is made of. References to what the engine owns; nothing is kept.
struct ReportInput {
    const Statistics& statistics;
    const Topology& topology;
    std::string_view version;    // of the library
    std::string_view mode;       // PGHOT_MODE in effect
    TunableVisitor tunables;
    const RefusedCalls& refused_calls;
    ErrorName error_name;
};

// Writes the JSON report of a process: version, pid, command, mode, state, source and why, rivals, job, tunables,
// nodes, counters, identities, refused calls, seconds. The identity over both threads is there only when the engine has
// stopped or never began. Takes about 6 KiB of stack, allocates nothing, reads no file. False when the sink refused a
// piece.
bool write_report(const ReportInput& input, JsonSink sink);

// Names as in the report.
std::string_view state_name(EngineState state);
std::string_view source_name_of(SourceKind source);
std::string_view evidence_name(TierEvidence evidence);

}    // namespace pghot
