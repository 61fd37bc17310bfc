// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/engine/shared.h"
#include "runtime/report/report.h"

namespace pghot {

// Starts the engine's two threads: pghot-mover, which starts pghot-sampler. Called from a program thread that holds no
// lock; calls malloc (a thread's descriptor). Returns at once: what the engine comes to is in its statistics. Null
// where memory or a thread cannot be had; then nothing is left behind.
//
// The engine's memory is never given back: a thread of ours may outlive stop_engine's deadline.
EngineShared* start_engine(const EngineSettings& settings);

// Ends the engine: rings closed, plans expired, report file written. Waits at most `deadline_ns`; false when a thread
// is still busy then (a kernel call that takes long), and is left to end with the process.
bool stop_engine(EngineShared& engine, uint64_t deadline_ns);

// One line for the user about a file: what failed (with the variable that named it), the file, why, what to do.
FixedText<256> file_problem(std::string_view what, std::string_view path, int error, std::string_view advice);

// The JSON report of a started engine. False when the sink refused a piece.
bool write_engine_report(const EngineShared& engine, JsonSink sink);

// The facts of a process whose engine never started, for its report.
struct IdleFacts {
    Statistics statistics;
    Topology topology;
};
// Reads them: opens files, so on a thread with its own descriptor table. Never given back; null without memory.
IdleFacts* gather_idle_facts(const EngineSettings& settings, EngineState state, const char* reason);
bool write_idle_report(const IdleFacts& facts, const EngineSettings& settings, JsonSink sink);

}    // namespace pghot
