// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/engine.h"

#include <fmt/compile.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "runtime/engine/mover.h"
#include "runtime/engine/own_topology.h"
#include "runtime/engine/sampler.h"
#include "runtime/kernel/memory.h"
#include "runtime/kernel/process.h"

namespace pghot {
namespace {

// An object in memory of its own that is never given back: the engine's threads use it until the process ends. Null
// when the kernel gives no memory.
template <typename T, typename... Arguments>
T* make_leaked(Arguments&... arguments) {
    static_assert(alignof(T) <= kPageBytes);
    void* at = AnonymousMemory(sizeof(T)).release();
    return at == nullptr ? nullptr : new (at) T(arguments...);
}

bool is_active(EngineState state) { return state == EngineState::kRunning || state == EngineState::kObserving; }

// What the sampler would have said and written at its end.
void do_without_sampler(EngineShared& shared, const char* reason, int error) {
    Statistics& statistics = *shared.statistics;
    strncpy(statistics.source_reason, reason, sizeof statistics.source_reason - 1);
    statistics.state.store(static_cast<uint32_t>(EngineState::kFailed), std::memory_order_release);
    const PathText& path = shared.settings.report_file;
    if (!path.empty())
        shared.problem = file_problem("PGHOT_REPORT: cannot write", path.view(), error, "nothing was sampled");
    shared.stop.raise();
    shared.sampler_ended.raise();
}

void* sampler_main(void* argument) {
    auto& shared = *static_cast<EngineShared*>(argument);
    shared.own_tids[1] = sys::thread_id();
    set_thread_name("pghot-sampler");
    auto* sampler = make_leaked<Sampler>(shared);
    if (sampler == nullptr) {
        do_without_sampler(shared, "no memory for the sampler could be had", ENOMEM);
        return nullptr;
    }
    const EngineState state = sampler->set_up();
    if (!is_active(state)) shared.stop.raise();
    shared.ready.raise();
    if (is_active(state)) sampler->run();
    sampler->finish();
    shared.sampler_ended.raise();
    return nullptr;
}

void* mover_main(void* argument) {
    auto& shared = *static_cast<EngineShared*>(argument);
    shared.own_tids[0] = sys::thread_id();
    set_thread_name("pghot-mover");
    if (!set_cpu_mask(shared.settings.cpus) && !shared.settings.tunables.cpus.empty())
        shared.problem.assign("PGHOT_CPUS: none of these CPUs can be used here; those of the program are");
    sys::policy_of_thread(shared.thread_policy);    // inherited from the program thread that started us
    pthread_t sampler{};
    const int refused = start_joinable_thread(ThreadRuns::kOwnCode, sampler_main, &shared, sampler);
    if (refused != 0) do_without_sampler(shared, "no thread for the sampler could be had", refused);
    while (!shared.ready.raised() && !shared.sampler_ended.raised()) shared.ready.wait(0, kNsPerSecond);
    if (!shared.stopping()) {
        auto* mover = make_leaked<MoverLoop>(shared);
        if (mover != nullptr)
            mover->run();
        else
            shared.stop.raise();    // no memory for it: samples would be taken for nothing
    }
    shared.mover_ended.raise();
    // The last thread of a process whose main has left runs exit(): that must be this one, see
    // Sampler::program_is_gone. Joined, as the sampler's last signal does not mean that the C library counts it out.
    if (refused == 0) pthread_join(sampler, nullptr);
    return nullptr;
}

bool wait_for(const Signal& signal, TimeNs limit) {
    while (!signal.raised()) {
        const TimeNs now = sys::now();
        if (now >= limit) return false;
        signal.wait(0, static_cast<uint64_t>(limit - now));
    }
    return true;
}

}    // namespace

FixedText<256> file_problem(std::string_view what, std::string_view path, int error, std::string_view advice) {
    char text[256];
    const auto end = fmt::format_to_n(text, sizeof text - 1, FMT_COMPILE("{} {}: {} ({}); {}"), what, path,
                                      error_name(error), error_text(error), advice);
    FixedText<256> out;
    out.assign({text, static_cast<size_t>(end.out - text)});
    return out;
}

EngineShared* start_engine(const EngineSettings& settings) {
    auto* shared = make_leaked<EngineShared>();
    if (shared == nullptr) return nullptr;
    shared->settings = settings;
    if (start_detached_thread(ThreadRuns::kExitHandlers, mover_main, shared) == 0) return shared;
    return nullptr;    // 600 KiB of untouched address space stay behind
}

bool stop_engine(EngineShared& engine, uint64_t deadline_ns) {
    const TimeNs limit = sys::now() + deadline_ns;
    engine.stop.raise();
    engine.plans_waiting.raise();
    return wait_for(engine.mover_ended, limit) && wait_for(engine.sampler_ended, limit);
}

namespace {

bool report(const Statistics& statistics, const Topology& topology, const Tunables& tunables, JsonSink sink) {
    const auto each_tunable = [&](FunctionRef<void(const ReportedTunable&)> use) {
        char storage[kTunableTextBytes];
        for (size_t i = 0; i < kTunables.size(); ++i) {
            const bool set = (tunables.set_by_user >> i & 1) != 0;
            use(ReportedTunable{kTunables[i].name, tunable_text(tunables, i, storage), kTunables[i].domain.unit, set});
        }
    };
    static_assert(kTunables[0].name == "PGHOT_MODE");
    char mode[16];
    return write_report(
        {statistics, topology, PGHOT_VERSION, tunable_text(tunables, 0, mode), each_tunable, refused_calls, error_name},
        sink);
}

}    // namespace

bool write_engine_report(const EngineShared& engine, JsonSink sink) {
    return report(*engine.statistics, engine.topology, engine.settings.tunables, sink);
}

IdleFacts* gather_idle_facts(const EngineSettings& settings, EngineState state, const char* reason) {
    auto* facts = make_leaked<IdleFacts>();
    if (facts == nullptr) return nullptr;
    Statistics& statistics = facts->statistics;
    KernelFiles files;
    statistics.pid = sys::process_id();
    statistics.state.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
    strncpy(statistics.source_reason, reason, sizeof statistics.source_reason - 1);
    read_command(files, statistics.command);
    read_own_topology(files, settings.tunables, facts->topology);
    return facts;
}

bool write_idle_report(const IdleFacts& facts, const EngineSettings& settings, JsonSink sink) {
    return report(facts.statistics, facts.topology, settings.tunables, sink);
}

}    // namespace pghot
