// SPDX-License-Identifier: Apache-2.0
#include "preload/cli/doctor.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>

#include "runtime/config/job_name.h"
#include "runtime/kernel/address_space.h"
#include "runtime/kernel/perf_event.h"
#include "runtime/kernel/rivals.h"
#include "runtime/kernel/syscalls.h"
#include "runtime/kernel/topology.h"

namespace pghot {
namespace {

int number_in(FileSystem& files, const char* path) {
    char buffer[32];
    const std::string_view line = files.first_line(path, buffer);
    int number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    return error == std::errc{} ? number : DoctorFacts::kUnknown;
}

void examine_ibs(FileSystem& files, const Tunables& tunables, DoctorFacts& facts) {
    const Status probe = probe_ibs(files, facts.ibs);
    facts.ibs_found = probe.ok();
    facts.ibs_error = probe.error;
    if (!probe.ok()) return;
    PerfEvent event;
    const IbsSettings settings{tunables.ibs_period, tunables.ibs_l3missonly, tunables.ibs_ldlat_cycles};
    facts.ibs_error = -event.open(ibs_event(facts.ibs, settings), 0);
    facts.ring_refused = event.ring_was_refused();
}

bool process_runs(FileSystem& files, std::string_view wanted) {
    bool runs = false;
    files.list("/proc", [&](std::string_view name) {
        if (runs || name.front() < '0' || name.front() > '9') return;
        char buffer[32];
        runs = files.first_line(("/proc/" + std::string(name) + "/comm").c_str(), buffer) == wanted;
    });
    return runs;
}

}    // namespace

std::unique_ptr<DoctorFacts> examine(FileSystem& files, const Tunables& tunables) {
    auto facts = std::make_unique<DoctorFacts>();
    char buffer[128];
    facts->kernel = files.first_line("/proc/sys/kernel/osrelease", buffer);
    uint64_t allowed = ~uint64_t{0};
    (void)sys::allowed_nodes(allowed);    // refused in some sandboxes: then every node counts as allowed
    read_topology(files, allowed, {tunables.lower_nodes.words[0], tunables.top_nodes.words[0]}, facts->topology);
    for (unsigned node = 0; node < facts->topology.node_count; ++node)
        facts->free_bytes[node] = node_free_bytes(files, NodeId{static_cast<int16_t>(node)});
    examine_ibs(files, tunables, *facts);
    facts->perf_event_paranoid = number_in(files, "/proc/sys/kernel/perf_event_paranoid");
    const Rivals rivals = read_rivals(files);
    facts->numa_balancing = rivals.numa_balancing == Rivals::kUnknown ? DoctorFacts::kUnknown : rivals.numa_balancing;
    facts->damon_runs = rivals.damon_runs;
    facts->move_pages_error = static_cast<int>(-sys::try_move_pages());
    sys::MemoryPolicy policy;
    const bool told = sys::policy_of_thread(policy) == 0;
    facts->bound_elsewhere =
        told && facts->topology.has_lower_tier() && promotion_targets(policy, facts->topology) == 0;
    facts->numad_runs = process_runs(files, "numad");
    // What runs from a shell has the shell, our parent too, as its parent.
    const JobText& asked = tunables.job;
    const auto parent = [] { return getppid(); };
    if (asked.view() != "none") facts->job = (asked.empty() ? job_of_launcher(environ, parent) : asked).view();
    return facts;
}

namespace {

bool replays(const Tunables& tunables) {
    return tunables.sources.count > 0 && tunables.sources.order[0] == SourceKind::kReplay;
}

bool wants_ibs(const Tunables& tunables) {
    for (SourceKind kind : tunables.sources.view()) {
        if (kind == SourceKind::kIbs) return true;
        if (kind == SourceKind::kNone) return false;
    }
    return false;
}

}    // namespace

Verdict verdict_of(const DoctorFacts& facts, const Tunables& tunables) {
    if (tunables.mode == Mode::kOff) return Verdict::kOff;
    if (!facts.topology.has_lower_tier()) return Verdict::kNoLowerTier;
    const bool sampled = replays(tunables) || (wants_ibs(tunables) && facts.ibs_error == 0);
    if (!sampled) return Verdict::kNoSource;
    if (tunables.mode == Mode::kObserve) return Verdict::kObserves;
    if (facts.bound_elsewhere) return Verdict::kBoundElsewhere;
    return facts.move_pages_error == 0 ? Verdict::kTiers : Verdict::kNoMigration;
}

bool would_work(Verdict verdict) { return verdict == Verdict::kObserves || verdict == Verdict::kTiers; }

std::string ibs_advice(const DoctorFacts& facts) {
    if (facts.ibs_error == 0) return "works for this user";
    if (!facts.ibs_found)
        return "no ibs_op PMU: the processor is not an AMD one with IBS, or this is a virtual machine (they have none)";
    if (facts.ring_refused)
        return "refused: no room for the ring; ask for a higher kernel.perf_event_mlock_kb or ulimit -l";
    const int paranoid = facts.perf_event_paranoid;
    switch (facts.ibs_error) {
        case EACCES:
        case EPERM:
            if (facts.ibs.swfilt && paranoid > 2)
                return "refused: kernel.perf_event_paranoid above 2; ask for sysctl kernel.perf_event_paranoid=2";
            if (!facts.ibs.swfilt)
                return "refused: without format/swfilt (Linux 6.14) IBS cannot leave the kernel out; ask for sysctl "
                       "kernel.perf_event_paranoid=1, or CAP_PERFMON";
            return "refused: a container profile or security module forbids perf_event_open";
        case EINVAL:
            return "refused: sampling one thread with IBS needs Linux 6.2";
        case ENOSYS:
            return "refused: perf_event_open does not exist here (sandbox, or a kernel without perf)";
        case EMFILE:
            return "refused: too many open files";
        default:
            return "refused";
    }
}

}    // namespace pghot
