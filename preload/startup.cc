// SPDX-License-Identifier: Apache-2.0
// The life of the library in a process: what happens when it is loaded, when the process has grown, in a forked child
// and at exit. Everything else is elsewhere; here the parts meet.
//
//   load ── one memory node, or mode off ──────────────> idle
//        └─ armed ── grown past PGHOT_START_MIN ──> engine ── exit: stop, report
//                 fork: the child is armed anew
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/compile.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <span>

#include "allocator/errno_guard.h"
#include "allocator/placement.h"
#include "allocator/start_trigger.h"
#include "preload/machine_thread.h"
#include "runtime/base/heap.h"
#include "runtime/config/file_name.h"
#include "runtime/config/job_name.h"
#include "runtime/config/tunables.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/own_topology.h"
#include "runtime/kernel/answer.h"
#include "runtime/kernel/memory.h"
#include "runtime/kernel/output_file.h"
#include "runtime/kernel/process.h"
#include "runtime/kernel/standard_error.h"
#include "runtime/kernel/syscalls.h"
#include "runtime/kernel/thread.h"

namespace pghot {
namespace {

constexpr uint64_t kStopDeadlineNs = 2 * kNsPerSecond;
constexpr uint64_t kChildQuietNs = kNsPerSecond;    // most children exec at once; they need no engine
// Tiering takes about 20 MiB of mappings (stacks, rings) and the heat table; a limit is meant for the program.
constexpr uint64_t kLeastMappingLimit = 256 * kMiB;
constexpr uint64_t kHeatShareOfLimit = 32;
constexpr uint32_t kPollsPerSizeCheck = 16;    // a poll comes every 64 KiB of allocation, a check costs 0.3 us

// Why there is no engine.
struct IdleCause {
    EngineState state;
    const char* reason;
};
constexpr IdleCause kStayedSmall{EngineState::kNotStarted, "the process stayed below PGHOT_START_MIN"};
constexpr IdleCause kModeIsOff{EngineState::kNotStarted, "PGHOT_MODE is off"};
constexpr IdleCause kNoPolicies{EngineState::kFailed, "get_mempolicy is refused here (a container's seccomp profile?)"};
constexpr IdleCause kOneNode{EngineState::kNoLowerTier, "this process may use one memory node only"};
constexpr IdleCause kStarting{EngineState::kNotStarted, "the process ended while tiering started"};
constexpr IdleCause kNotStartable{EngineState::kFailed, "tiering could not start: no memory or no thread was left"};
constexpr IdleCause kLowLimit{EngineState::kFailed,
                              "tiering is not started under RLIMIT_AS or RLIMIT_DATA below 256 MiB"};

bool is_a_problem(const IdleCause& cause) { return &cause == &kNotStartable || &cause == &kLowLimit; }

// What start-up knows. Written by the loading thread before `armed` is set and by a forked child's only thread; the
// atomics by whoever wins the start.
struct Process {
    EngineSettings settings;
    std::atomic<EngineShared*> engine{nullptr};
    std::atomic<uint32_t> polls{0};
    uint64_t peak_rss_at_load = 0;    // exec keeps the peak of the program before
    TimeNs not_before{};
    std::atomic<const IdleCause*> idle{&kStayedSmall};
    PathText folder;       // the working folder at load, where a relative file name needs it
    FixedText<16> rank;    // at load: later the environment may be gone, or a title written over it
    bool forked = false;
    bool report_on_stderr = false;
};
constinit Process process;

void say(std::string_view line) {
    constexpr std::string_view kPrefix = "pghot: ";
    if (line.starts_with(kPrefix)) line.remove_prefix(kPrefix.size());
    char text[Warnings::kLineBytes + 16];
    const auto end = fmt::format_to_n(text, sizeof text, FMT_COMPILE("{}{}\n"), kPrefix, line);
    write_standard_error(std::span(text).first(std::min(end.size, sizeof text)));    // or nobody listens
}

void say_warnings(const Warnings& warnings) {
    for (size_t i = 0; i < warnings.size(); ++i) say(warnings[i]);
    if (warnings.left_out() > 0) say("more settings of PGHOT_ cannot be used");
}

// Fills `out` with the file name that `pattern` means in this process.
void expand(const PathText& pattern, PathText& out) {
    if (pattern.empty()) return;
    utsname host{};
    answer(KernelCall::uname, uname(&host));
    char storage[sizeof pattern.data];
    const FileNameParts parts{sys::process_id(), process.rank.view(), host.nodename};
    if (!out.assign(expand_file_name(pattern.view(), parts, storage))) out = {};
}

bool is_relative(const PathText& path) { return !path.empty() && path.view().front() != '/'; }

// Relative names are meant from where the program was started; many programs leave that folder, all daemons do.
void make_absolute(PathText& path) {
    if (!is_relative(path) || process.folder.empty()) return;
    char whole[sizeof path.data];
    const auto end = fmt::format_to_n(whole, sizeof whole, FMT_COMPILE("{}/{}"), process.folder.view(), path.view());
    if (end.size < sizeof whole) path.assign({whole, end.size});
}

void note_folder() {
    Tunables& tunables = process.settings.tunables;
    PathText& replay = tunables.sources.replay_file;
    if (!is_relative(tunables.report) && !is_relative(tunables.record) && !is_relative(replay)) return;
    char folder[sizeof process.folder.data];
    if (getcwd(folder, sizeof folder) == nullptr)
        answer(KernelCall::getcwd, -1);
    else if (folder[0] == '/')
        process.folder.assign(folder);
    make_absolute(replay);
}

void name_files() {
    process.settings.report_file = {};
    process.settings.record_file = {};
    process.report_on_stderr = process.settings.tunables.report.view() == "stderr";
    if (!process.report_on_stderr) expand(process.settings.tunables.report, process.settings.report_file);
    expand(process.settings.tunables.record, process.settings.record_file);
    make_absolute(process.settings.report_file);
    make_absolute(process.settings.record_file);
}

void note_job(bool secure) {
    const JobText& asked = process.settings.tunables.job;
    if (asked.view() == "none") return;
    const auto parent = [] { return getppid(); };
    process.settings.job = asked.empty() ? job_of_launcher(secure ? nullptr : environ, parent) : asked;
}

ThreadCpus engine_cpus(const Tunables& tunables) {
    if (tunables.cpus.empty()) return current_cpu_mask();
    ThreadCpus cpus;
    cpus.known = true;
    CPU_ZERO(&cpus.set);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (tunables.cpus.contains(cpu)) CPU_SET(cpu, &cpus.set);
    return cpus;
}

// Writable memory that the program brings along: static arrays, COMMON blocks. Known without any system call.
uint64_t static_data_bytes() {
    const auto* header = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
    uint64_t bytes = 0;
    for (unsigned long i = 0; header != nullptr && i < getauxval(AT_PHNUM); ++i)
        if (header[i].p_type == PT_LOAD && (header[i].p_flags & PF_W) != 0) bytes += header[i].p_memsz;
    return bytes;
}

void start() {
    if (!start_signal.armed.exchange(false, std::memory_order_acq_rel)) return;
    process.idle.store(&kStarting, std::memory_order_relaxed);
    EngineShared* engine = start_engine(process.settings);
    if (engine == nullptr) process.idle.store(&kNotStartable, std::memory_order_relaxed);
    process.engine.store(engine, std::memory_order_release);
}

bool has_grown() {
    const uint64_t wanted = process.settings.tunables.start_min_bytes;
    if (start_signal.mapped_bytes.load(std::memory_order_relaxed) >= wanted) return true;
    const uint32_t polls = process.polls.fetch_add(1, std::memory_order_relaxed);
    if (polls % kPollsPerSizeCheck != 0) return false;
    const uint64_t peak = sys::peak_rss_bytes();
    return peak >= wanted && peak > process.peak_rss_at_load;
}

// From jemalloc's event of a program thread, no lock held.
void poll() {
    if (!has_grown()) return;
    if (process.not_before.ns != 0 && sys::now() < process.not_before) return;
    start();
}

void stay_idle(const IdleCause& cause) { process.idle.store(&cause, std::memory_order_relaxed); }

void arm() {
    uint64_t allowed = 0;
    if (sys::allowed_nodes(allowed) != 0) return stay_idle(kNoPolicies);
    if (std::popcount(allowed) < 2) return stay_idle(kOneNode);
    const uint64_t limit = sys::mapping_limit_bytes();
    if (limit < kLeastMappingLimit) return stay_idle(kLowLimit);
    uint64_t& heat_bytes = process.settings.tunables.heat_mem_bytes;
    heat_bytes = std::min(heat_bytes, limit / kHeatShareOfLimit);
    process.peak_rss_at_load = sys::peak_rss_bytes();
    process.settings.cpus = engine_cpus(process.settings.tunables);
    start_signal.poll = poll;
    start_signal.armed.store(true, std::memory_order_release);    // pairs with the trigger's acquire
}

// Bit masks of the DRAM nodes and of the lower tier, for PGHOT_PLACEMENT. Reads sysfs, so on a thread with its own
// descriptor table.
void tell_placement_nodes(void*) {
    const AnonymousMemory memory(sizeof(Topology));
    if (!memory) return;
    Topology& topology = *new (memory.bytes().data()) Topology();
    KernelFiles files;
    if (!read_own_topology(files, process.settings.tunables, topology)) return;
    uint64_t top = 0, lower = 0;
    for (int16_t node = 0; node < topology.node_count; ++node) {
        const NodeId id{node};
        if (topology.is_top(id)) top |= 1ull << node;
        if (topology.is_lower(id) && topology[id].allowed) lower |= 1ull << node;
    }
    set_placement_nodes(top, lower);
}

void say_placement_problem() {
    char storage[Warnings::kLineBytes];
    const std::string_view problem = placement_problem(storage);
    if (!problem.empty()) say(problem);
}

void after_fork_in_child() {
    refused_calls.clear();
    process.forked = true;
    process.polls.store(0, std::memory_order_relaxed);
    const bool was_running = process.engine.exchange(nullptr, std::memory_order_relaxed) != nullptr;
    const bool was_starting = process.idle.load(std::memory_order_relaxed) == &kStarting;    // in another thread
    const bool was_armed = start_signal.armed.load(std::memory_order_relaxed);
    if (!was_running && !was_starting && !was_armed) return;    // and without a system call
    note_own_process();
    stay_idle(kStayedSmall);
    process.not_before = sys::now() + kChildQuietNs;
    name_files();    // %p is another one
    start_signal.armed.store(true, std::memory_order_release);
}

// --- exit ---

constexpr auto kToStderr = [](std::span<const char> bytes) { return write_standard_error(bytes); };

struct IdleReport {
    const IdleFacts* facts = nullptr;
    int error = 0;    // of the file
};

// The report of a process that never had an engine. A file that exists is another process's and says more: a shell
// that outlives the program it ran must not write over that program's report.
void gather_and_write_idle_report(void* gathered) {
    const IdleCause& cause = *process.idle.load(std::memory_order_relaxed);
    const IdleFacts* facts = gather_idle_facts(process.settings, cause.state, cause.reason);
    auto& out = *static_cast<IdleReport*>(gathered);
    out.facts = facts;
    OutputFile file;
    const PathText& path = process.settings.report_file;
    if (facts == nullptr || path.empty()) return;
    const auto sink = [&file](std::span<const char> bytes) { return file.write(bytes); };
    if (file.open(path.c_str(), OutputFile::Existing::kKeep) == 0) write_idle_report(*facts, process.settings, sink);
    out.error = file.error() == EEXIST ? 0 : file.error();
}

void say_nobody_can_report() {
    char text[Warnings::kLineBytes];
    const auto end =
        fmt::format_to_n(text, sizeof text,
                         FMT_COMPILE("PGHOT_REPORT: cannot write {}: no thread with descriptors of its own to be had"),
                         process.report_on_stderr ? std::string_view("it") : process.settings.report_file.view());
    say({text, std::min(end.size, sizeof text)});
}

void report_idle() {
    static constinit IdleReport report;    // static: a thread that is late still writes it
    if (process.forked || (process.settings.report_file.empty() && !process.report_on_stderr)) return;
    if (!on_machine_thread(gather_and_write_idle_report, &report) || report.facts == nullptr)
        return say_nobody_can_report();
    if (process.report_on_stderr) write_idle_report(*report.facts, process.settings, kToStderr);
    if (report.error != 0)
        say(file_problem("PGHOT_REPORT: cannot write", process.settings.report_file.view(), report.error,
                         "give another file name")
                .view());
}

// A lower tier is there, the user set something, and nothing could be sampled: that deserves its line.
void say_why_not(const EngineShared& engine) {
    const Statistics& statistics = *engine.statistics;
    const auto state = static_cast<EngineState>(statistics.state.load(std::memory_order_acquire));
    if (state != EngineState::kNoSource && state != EngineState::kFailed) return;
    if (process.settings.tunables.set_by_user != 0) say(statistics.source_reason);
}

void end_engine(EngineShared& engine) {
    const bool ended = stop_engine(engine, kStopDeadlineNs);
    if (ended && !engine.problem.empty())
        say(engine.problem.view());
    else
        say_why_not(engine);
    if (process.report_on_stderr) write_engine_report(engine, kToStderr);
}

__attribute__((constructor)) void load() {
    const ErrnoGuard errno_guard;
    note_own_process();
    note_static_tls();
    note_standard_error();
    Warnings warnings;
    const bool secure = getauxval(AT_SECURE) != 0;
    process.settings.tunables = read_tunables(environ, secure, warnings);
    say_warnings(warnings);
    note_folder();
    process.rank.assign(mpi_rank(environ));
    name_files();
    if (placement_needs_nodes()) on_machine_thread(tell_placement_nodes, nullptr);
    say_placement_problem();
    const Tunables& tunables = process.settings.tunables;
    if (tunables.mode == Mode::kOff) return stay_idle(kModeIsOff);
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    note_job(secure);
    arm();
    if (static_data_bytes() >= tunables.start_min_bytes) start();
}

bool has_anything_to_end(const EngineShared* engine) {
    return engine != nullptr || start_signal.armed.load(std::memory_order_relaxed) ||
           is_a_problem(*process.idle.load(std::memory_order_relaxed)) || process.report_on_stderr ||
           !process.settings.report_file.empty();
}

// A sandbox may kill whoever asks for the number of its process: only where it matters.
__attribute__((destructor)) void unload() {
    const ErrnoGuard errno_guard;
    EngineShared* engine = process.engine.load(std::memory_order_acquire);
    if (!has_anything_to_end(engine) || !is_own_process()) return;    // not ours: a vfork child that calls exit
    start_signal.armed.store(false, std::memory_order_relaxed);
    if (engine != nullptr) return end_engine(*engine);
    const IdleCause* cause = process.idle.load(std::memory_order_relaxed);
    if (is_a_problem(*cause) && process.settings.tunables.set_by_user != 0) say(cause->reason);
    report_idle();
}

}    // namespace
}    // namespace pghot
