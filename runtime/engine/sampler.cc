// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/sampler.h"

#include <fmt/compile.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "runtime/engine/engine.h"
#include "runtime/engine/own_topology.h"
#include "runtime/kernel/process.h"
#include "runtime/kernel/rivals.h"
#include "runtime/kernel/text.h"
#include "runtime/kernel/topology.h"

namespace pghot {
namespace {

constexpr size_t kRanges = 65536;    // vm.max_map_count's default; 24 bytes each, touched as needed
constexpr uint64_t kHouseNs = 100 * kNsPerMs;
constexpr uint64_t kMoverEndNs = 1500 * kNsPerMs;    // of the two seconds that an exit waits for us
constexpr uint64_t kCensusNs = 2 * kNsPerSecond;
constexpr uint64_t kCensusShare = 50;      // a census may cost 1 part in 50 of the time until the next
constexpr size_t kReplaySamples = 4096;    // to put a drain's samples in order

// Of the CPU that is nearest to a lower node, to its own and to that node.
struct TierDistances {
    unsigned dram = 10;
    unsigned lower = 20;
};
TierDistances tier_distances(const Topology& topology) {
    TierDistances nearest{10, ~0u};
    for (unsigned from = 0; from < topology.node_count; ++from) {
        if (!topology.nodes[from].has_cpus) continue;
        for (unsigned to = 0; to < topology.node_count; ++to)
            if (topology.is_lower(NodeId{static_cast<int16_t>(to)}) && topology.distance[from][to] < nearest.lower)
                nearest = {topology.distance[from][from], topology.distance[from][to]};
    }
    return nearest.lower == ~0u || nearest.lower == 0 ? TierDistances{} : nearest;
}

PolicyParameters policy_parameters(const Tunables& tunables) {
    PolicyParameters parameters;
    parameters.freq_window_ms = tunables.freq_window_ms;
    parameters.freq_threshold = static_cast<uint8_t>(tunables.freq_threshold);
    parameters.batch_pages = std::min(tunables.migrate_batch, kPagesPerChunk);
    parameters.fixed_target = tunables.target_nid.node;
    parameters.misplaced = tunables.misplaced;
    parameters.demote = tunables.demote;
    parameters.dram_limit_bytes = tunables.dram_limit_bytes;
    switch (tunables.target_nid.kind) {
        case Target::Kind::kCaller:
            parameters.target = TargetMode::kCaller;
            break;
        case Target::Kind::kAlternate:
            parameters.target = TargetMode::kAlternate;
            break;
        case Target::Kind::kNode:
            parameters.target = TargetMode::kFixed;
            break;
    }
    return parameters;
}

// The source as it runs, and what was asked of it that this PMU cannot do.
const char* describe(const IbsPmu& pmu, const Tunables& tunables) {
    if (tunables.ibs_ldlat_cycles > 0 && !pmu.ldlat)
        return pmu.swfilt ? "ibs_op, user accesses only (swfilt); PGHOT_IBS_LDLAT is not used: it needs Zen 5 and "
                            "Linux 6.15"
                          : "ibs_op, without swfilt; PGHOT_IBS_LDLAT is not used: it needs Zen 5 and Linux 6.15";
    return pmu.swfilt ? "ibs_op, user accesses only (swfilt)" : "ibs_op, without swfilt";
}

Counter level_counter(ServedBy served_by) {
    switch (served_by) {
        case ServedBy::kCache:
            return Counter::hwhint_cache_accesses;
        case ServedBy::kDram:
            return Counter::hwhint_dram_accesses;
        case ServedBy::kExtMem:
            return Counter::hwhint_extmem_accesses;
        case ServedBy::kNoLevel:
            break;
    }
    return Counter::hwhint_nolevel_accesses;
}

Counter candidate_counter(MoveKind kind) {
    switch (kind) {
        case MoveKind::kDemote:
            return Counter::pgdemote_candidate;
        case MoveKind::kRehome:
            return Counter::numa_pages_candidate;
        case MoveKind::kPromote:
            break;
    }
    return Counter::pgpromote_candidate;
}

Counter rule_counter(MoveRule rule) {
    switch (rule) {
        case MoveRule::kChunk:
            return Counter::pages_by_chunk_rule;
        case MoveRule::kHuge:
            return Counter::pages_by_huge_rule;
        case MoveRule::kPage:
            break;
    }
    return Counter::pages_by_page_rule;
}

SecondRow read_totals(const Counters& counters, TimeNs now) {
    SecondRow row;
    row.time_ns = now.ns;
    row.samples = counters.get(Counter::hwhint_total_events);
    row.useful = counters.get(Counter::hwhint_useful_events);
    row.extmem = counters.get(Counter::hwhint_extmem_accesses);
    row.lost = counters.get(Counter::lost_samples);
    row.promoted_pages = counters.get(Counter::pgpromote_success);
    row.promoted_bytes = counters.get(Counter::promoted_bytes);
    row.move_calls = counters.get(Counter::move_calls);
    row.sampler_cpu_ns = counters.get(Counter::sampler_cpu_ns);
    row.mover_cpu_ns = counters.get(Counter::mover_cpu_ns);
    return row;
}

SecondRow difference(const SecondRow& now, const SecondRow& before) {
    return SecondRow{now.time_ns,
                     now.samples - before.samples,
                     now.useful - before.useful,
                     now.extmem - before.extmem,
                     now.lost - before.lost,
                     now.promoted_pages - before.promoted_pages,
                     now.promoted_bytes - before.promoted_bytes,
                     now.move_calls - before.move_calls,
                     now.sampler_cpu_ns - before.sampler_cpu_ns,
                     now.mover_cpu_ns - before.mover_cpu_ns,
                     now.period};
}

}    // namespace

Sampler::Sampler(EngineShared& shared) : shared_(shared) {}

EngineState Sampler::set_up() {
    const int refused = own_descriptors();
    if (refused != 0)
        return give_up(EngineState::kFailed, {"close_range with CLOSE_RANGE_UNSHARE (Linux 5.9)", -refused});
    open_statistics();
    if (!read_own_topology(files_, shared_.settings.tunables, shared_.topology))
        return give_up(EngineState::kFailed, {"get_mempolicy is refused here", 0});
    if (shared_.topology.node_count == 0)
        return give_up(EngineState::kFailed, {"/sys/devices/system/node cannot be read", 0});
    read_low_watermarks(files_, shared_.low_watermark_bytes);
    check_settings();
    note_rivals();
    if (!shared_.topology.has_lower_tier())
        return give_up(EngineState::kNoLowerTier, {"no node is slower than the nodes with CPUs", 0});
    if (const long error = refusal_to_move(); error != 0)
        return give_up(EngineState::kFailed, {"move_pages is refused here", static_cast<int>(-error)});
    if (!make_tables()) return give_up(EngineState::kFailed, {"memory for the tables", ENOMEM});
    if (!choose_source()) return give_up(EngineState::kNoSource, {nullptr, 0});
    open_recording();
    join_job();
    if (!replaying() && promotion_targets(shared_.thread_policy, shared_.topology) == 0)
        say_reason({"ibs_op; a memory policy of this process (numactl?) keeps what it does not bind itself", 0});
    const EngineState state = observing() ? EngineState::kObserving : EngineState::kRunning;
    shared_.statistics->state.store(static_cast<uint32_t>(state), std::memory_order_release);
    return state;
}

EngineState Sampler::give_up(EngineState state, Status status) {
    if (status.what != nullptr) say_reason(status);
    shared_.statistics->state.store(static_cast<uint32_t>(state), std::memory_order_release);
    return state;
}

void Sampler::say_reason(const Status& status) {
    auto& text = shared_.statistics->source_reason;
    const std::string_view what(status.what);
    auto end = status.error == 0
                   ? fmt::format_to_n(text, sizeof text - 1, FMT_COMPILE("{}"), what).out
                   : fmt::format_to_n(text, sizeof text - 1, FMT_COMPILE("{}: {}"), what, error_name(status.error)).out;
    *end = '\0';
}

void Sampler::note_problem(std::string_view what, std::string_view path, int error, std::string_view advice) {
    shared_.problem = file_problem(what, path, error, advice);
}

// The first act: from here on nothing of ours can meet a descriptor of the program, or the reverse.
int Sampler::own_descriptors() {
    const int refused = sys::close_all_and_unshare_descriptors();
    has_own_descriptors_ = refused == 0;
    if (has_own_descriptors_) take_standard_descriptors();
    return refused;
}

void Sampler::open_statistics() {
    void* mapped = map_memfd("pghot-statistics", sizeof(Statistics));
    if (mapped != nullptr) shared_.statistics = new (mapped) Statistics();
    Statistics& statistics = *shared_.statistics;
    std::memcpy(statistics.magic, kStatisticsMagic, sizeof statistics.magic);
    statistics.bytes = sizeof(Statistics);
    statistics.pid = sys::process_id();
    statistics.started_ns = sys::now().ns;
    read_command(files_, statistics.command);
}

// Settings that can be read but not honoured on this machine.
void Sampler::check_settings() {
    const Tunables& tunables = shared_.settings.tunables;
    if (!tunables.lower_nodes.empty() && !shared_.topology.has_lower_tier())
        shared_.problem.assign(
            "PGHOT_LOWER_NODES: none of these nodes has memory here, nothing is moved; pghot doctor lists nodes");
    if (tunables.target_nid.kind == Target::Kind::kNode && !shared_.topology.is_top(tunables.target_nid.node))
        shared_.problem.assign(
            "PGHOT_TARGET_NID: not a DRAM node that this process may use, the nearest one is; pghot doctor lists "
            "nodes");
}

// Who else moves pages here. Said in the report only: both together are no reason for a warning.
void Sampler::note_rivals() {
    const Rivals rivals = read_rivals(files_);
    shared_.statistics->numa_balancing = rivals.numa_balancing;
    shared_.statistics->damon_runs = rivals.damon_runs;
}

// Why nothing could be moved, where something should be: samples would be taken for nothing. 0 or -errno.
long Sampler::refusal_to_move() const {
    return shared_.settings.tunables.mode == Mode::kOn && !replay_is_asked() ? sys::try_move_pages() : 0;
}

bool Sampler::replay_is_asked() const { return shared_.settings.tunables.sources.order[0] == SourceKind::kReplay; }

bool Sampler::make_tables() {
    const Tunables& tunables = shared_.settings.tunables;
    heat_memory_ = AnonymousMemory(tunables.heat_mem_bytes);
    range_memory_ = AnonymousMemory(kRanges * sizeof(AddressRange));
    ring_memory_ = AnonymousMemory(tunables.rings * sizeof(IbsRing));
    if (!heat_memory_ || !range_memory_ || !ring_memory_) return false;
    memory_.emplace(files_, shared_.topology, tunables.scope, shared_.thread_policy,
                    range_memory_.as<AddressRange>(kRanges));
    // Of the addresses in a recording nothing here is an object.
    const ObjectSource* objects = replay_is_asked() ? nullptr : &*memory_;
    policy_.emplace(shared_.topology, policy_parameters(tunables), heat_memory_.bytes(), objects);
    const TierDistances distances = tier_distances(shared_.topology);
    economy_.emplace(distances.dram, distances.lower);
    return true;
}

bool Sampler::choose_source() {
    say_reason({"no source is asked for", 0});
    for (const SourceKind kind : shared_.settings.tunables.sources.view())
        if (try_source(kind)) return true;
    return false;
}

bool Sampler::try_source(SourceKind kind) {
    switch (kind) {
        case SourceKind::kIbs:
            return try_ibs();
        case SourceKind::kReplay:
            return try_replay();
        case SourceKind::kHintFaults:
        case SourceKind::kNone:
            break;
    }
    return false;
}

bool Sampler::try_replay() {
    const char* path = shared_.settings.tunables.sources.replay_file.c_str();
    if (const int error = replay_file_.read(path); error != 0) {
        note_problem("PGHOT_SOURCES: cannot read", {path}, -error, "nothing is sampled");
        say_reason({"the recording to replay", -error});
        return false;
    }
    replay_memory_ = AnonymousMemory(kReplaySamples * sizeof(Sample));
    if (!replay_memory_) return false;
    replay_.emplace(replay_file_.bytes(), replay_memory_.as<Sample>(kReplaySamples));
    if (const Status started = replay_->start(sys::now()); !started.ok()) {
        note_problem("PGHOT_SOURCES: not a recording:", {path}, started.error, "nothing is sampled");
        say_reason(started);
        replay_.reset();
        return false;
    }
    source_ = &*replay_;
    shared_.statistics->source = SourceKind::kReplay;
    say_reason({"a recording; nothing is moved", 0});
    return true;
}

// Not being able to write it is no reason not to run: the report then has no recording beside it.
void Sampler::open_recording() {
    const PathText& path = shared_.settings.record_file;
    if (path.empty()) return;
    if (recorder_.open(path.c_str(), shared_.topology, sys::now()) != 0) say_recording_problem();
}

// Who cannot share the budgets has them for itself.
void Sampler::join_job() {
    Statistics& statistics = *shared_.statistics;
    const JobText& name = shared_.settings.job;
    auto& reason = statistics.job_reason;
    if (replaying() || name.empty()) {
        fmt::format_to_n(reason, sizeof reason - 1, FMT_COMPILE("{}"),
                         std::string_view(replaying() ? "a replay moves nothing" : "no job is named"));
        return;
    }
    const Status joined = job_.join(name.view(), files_, sys::now());
    if (!joined.ok()) {
        fmt::format_to_n(reason, sizeof reason - 1, FMT_COMPILE("{}: {}"), std::string_view(joined.what),
                         error_name(joined.error));
        if (shared_.settings.tunables.job.view() == name.view())
            note_problem("PGHOT_JOB: cannot join", job_file(name.view()).view(), joined.error,
                         "this process has its budgets for itself");
        return;
    }
    std::copy_n(name.c_str(), name.size + 1, statistics.job);
    shared_.job = job_.board();
    shared_.job_slot = job_.slot();
}

bool Sampler::try_ibs() {
    const Tunables& tunables = shared_.settings.tunables;
    IbsPmu pmu;
    if (const Status probed = probe_ibs(files_, pmu); !probed.ok()) {
        say_reason(probed);
        return false;
    }
    std::span<IbsRing> rings = ring_memory_.as<IbsRing>(tunables.rings);
    for (IbsRing& ring : rings) new (&ring) IbsRing();
    ibs_.emplace(files_, shared_.topology, counters(), rings, shared_.own_tids,
                 ibs_event(pmu, {tunables.ibs_period, tunables.ibs_l3missonly, tunables.ibs_ldlat_cycles}));
    if (const Status started = ibs_->start(sys::now()); !started.ok()) {
        say_reason(started);
        auto& text = shared_.statistics->source_reason;
        if (ibs_->refused() == IbsSource::Refused::kRing) explain_ring_refusal(started.error, text);
        if (ibs_->refused() == IbsSource::Refused::kEvent) explain_ibs_refusal(files_, started.error, pmu.swfilt, text);
        return false;
    }
    source_ = &*ibs_;
    rate_.emplace(counters(), tunables);
    set_period();
    shared_.statistics->source = SourceKind::kIbs;
    say_reason({describe(pmu, tunables), 0});
    return true;
}

void Sampler::run() {
    next_second_ = sys::now() + kNsPerSecond;
    totals_ = read_totals(counters(), sys::now());
    while (!shared_.stopping()) {
        const TimeNs now = sys::now();
        memory_->refresh(now);
        const bool samples_came = drain(now);
        take_outcomes();
        plan(now);
        if (rate_) rate_->note_drain(now, *policy_);
        keep_house(now);
        if (rate_) set_period();
        shared_.stop.wait(0, pace_.next(fullest_, samples_came, rate_ ? rate_->wait_rung() : 0));
    }
}

void Sampler::set_period() {
    const uint64_t period = rate_->period();
    if (period == period_ || period_is_fixed_) return;
    if (period_ != 0) {
        period_is_fixed_ = !ibs_->set_period(period);    // refused, as the report says: sampling goes on as it was
        if (period_is_fixed_) return;
        counters().add(Counter::period_changes);
    }
    period_ = period;
    shared_.statistics->period.store(period, std::memory_order_relaxed);
}

bool Sampler::drain(TimeNs now) {
    const uint64_t before = counters().get(Counter::hwhint_total_events);
    const uint64_t cpu_before = sys::thread_cpu_ns();
    fullest_ = source_->drain(now, [this](const Sample& sample) { use(sample); });
    record_batch();
    const bool samples_came = counters().get(Counter::hwhint_total_events) != before;
    if (samples_came && rate_) rate_->note_record_cpu(sys::thread_cpu_ns() - cpu_before);
    return samples_came;
}

void Sampler::use(const Sample& sample) {
    recorder_.write(sample);
    if (replaying())
        counters().add(Counter::hwhint_total_events);
    else if (!memory_->may_move(sample.address))
        return counters().add(Counter::hwhint_dropped_events);
    counters().add(Counter::hwhint_useful_events);
    counters().add(level_counter(sample.served_by));
    economy_->note(sample);
    if (memory_->was_reused(sample.address)) {
        record_batch();
        const uintptr_t chunk = chunk_of(sample.address);
        policy_->forget(chunk, chunk + kChunkBytes);
    }
    batch_[batched_++] = sample;
    if (batched_ == batch_.size()) record_batch();
}

void Sampler::record_batch() {
    if (batched_ == 0) return;
    const size_t recorded = policy_->record(std::span(batch_).first(batched_));
    // One source, one origin.
    const bool hinted = batch_[0].origin == SampleOrigin::kHintFault;
    counters().add(Counter::pghot_recorded_accesses, recorded);
    counters().add(hinted ? Counter::pghot_recorded_hintfaults : Counter::pghot_recorded_hwhints, recorded);
    batched_ = 0;
}

void Sampler::take_outcomes() {
    MoveOutcome outcome;
    while (shared_.outcomes.pop(outcome)) {
        recorder_.write(outcome);
        if (outcome.outcome == PageOutcome::kAbsent) memory_->want_refresh();
        policy_->report(outcome);
    }
}

void Sampler::plan(TimeNs now) {
    if (!replaying()) take_stock(now);
    const size_t room = std::min(shared_.plans.free_slots(), planned_.size());
    const size_t planned = policy_->plan(now, std::span(planned_).first(room));
    if (planned == 0) return;
    read_free_memory(now);
    for (const Move& move : std::span(planned_).first(planned)) {
        recorder_.write(move);
        if (replaying()) {
            send(move);
            continue;
        }
        if (is_own(move)) {
            policy_->report(outcome_of(move, PageOutcome::kRefused, now));
            continue;
        }
        memory_->clip(
            move, [this](const Move& part) { send(part); },
            [this](const MoveOutcome& outcome) { policy_->report(outcome); });
    }
    shared_.plans_waiting.raise();
}

void Sampler::send(const Move& move) {
    counters().add(candidate_counter(move.kind), move.pages);
    if (move.kind == MoveKind::kPromote) counters().add(rule_counter(move.rule), move.pages);
    PageOutcome outcome = PageOutcome::kNotTried;
    if (observing()) {
        counters().add(Counter::pages_observed, move.pages);
        outcome = PageOutcome::kRefused;    // planned once, counted once
    } else if (shared_.plans.push(move)) {
        return;
    } else {
        counters().add(Counter::plans_dropped, move.pages);
    }
    policy_->report(outcome_of(move, outcome, move.planned));
}

// Our tables are never sampled: to the policy they are the coldest memory there is.
bool Sampler::is_own(const Move& move) {
    return move.kind == MoveKind::kDemote &&
           overlaps_own_memory(move.address, move.address + uint64_t{move.pages} * kPageBytes);
}

// What room there is, and where the program's memory lies, when the policy wants to know.
void Sampler::take_stock(TimeNs now) {
    if (policy_->wants_room()) read_free_memory(now);
    if (policy_->wants_census() && now >= next_census_) take_census(now);
}

void Sampler::take_census(TimeNs now) {
    const TimeNs start = sys::now();
    const auto skip = [](uintptr_t page) { return overlaps_own_memory(page, page + kPageBytes); };
    const auto ask = [](std::span<void* const> pages, std::span<int> statuses) {
        return sys::move_pages(pages, nullptr, statuses.data());
    };
    const auto found = [&](uintptr_t page, NodeId node) { policy_->found(page, shared_.topology.is_top(node), now); };
    policy_->capacity().found(census_.take(memory_->ranges(), shared_.topology, ask, skip, found));
    memory_->want_refresh();    // what is mapped since is in the next one
    const auto cost = static_cast<uint64_t>(sys::now() - start);
    next_census_ = now + std::max(kCensusNs, cost * kCensusShare);
}

void Sampler::read_free_memory(TimeNs now) {
    if (now < next_free_read_) return;
    next_free_read_ = now + kHouseNs;
    std::array<NodeRoom, kMaxNodes> rooms;
    size_t tops = 0;
    bool read = false;
    for (int16_t node = 0; node < shared_.topology.node_count; ++node) {
        if (!shared_.topology.is_top(NodeId{node}) && !shared_.topology.takes_demotions(NodeId{node})) continue;
        const uint64_t free = node_available_bytes(files_, NodeId{node});
        if (free == 0) continue;    // no /sys any more (chroot), or no descriptor to spare
        const auto i = static_cast<unsigned>(node);
        shared_.free_bytes[i].store(free, std::memory_order_relaxed);
        read = true;
        if (!shared_.topology.is_top(NodeId{node})) continue;
        const uint64_t headroom = headroom_bytes(shared_.topology.nodes[i], shared_.low_watermark_bytes[i]);
        const uint64_t floor = floor_bytes(shared_.topology.nodes[i], shared_.low_watermark_bytes[i]);
        rooms[tops++] = {NodeId{node}, free - std::min(free, headroom), free - std::min(free, floor)};
    }
    policy_->capacity().read(std::span(rooms).first(tops), tick_of(now));
    // Without a new figure the mover goes on subtracting from the last one.
    if (read) shared_.free_round.fetch_add(1, std::memory_order_release);    // pairs with the mover's acquire
}

void Sampler::keep_house(TimeNs now) {
    if (now < next_house_) return;
    source_->refresh(now);
    if (program_is_gone()) shared_.stop.raise();
    if (now >= next_second_) end_second(now);
    // Listing a thousand threads takes milliseconds: never more than 1 % of the time.
    const auto cost = static_cast<uint64_t>(sys::now() - now);
    const uint64_t shortest = std::min(kHouseNs << (rate_ ? rate_->wait_rung() : 0), kNsPerSecond);
    next_house_ = now + std::clamp(cost * 100, shortest, kNsPerSecond);
}

void Sampler::end_second(TimeNs now) {
    next_second_ = now + kNsPerSecond;
    Statistics& statistics = *shared_.statistics;
    counters().set(Counter::sampler_cpu_ns, sys::thread_cpu_ns());
    counters().set(Counter::snapshots, memory_->refreshes());
    counters().set(Counter::heat_evictions, policy_->evictions());
    if (rate_) share_second(now);
    count_ledger();
    weigh_moves();
    SecondRow totals = read_totals(counters(), now);
    totals.period = period_;
    const uint64_t row = statistics.rows.load(std::memory_order_relaxed);
    statistics.second[row % kSecondRows] = difference(totals, totals_);
    totals_ = totals;
    statistics.updated_ns.store(now.ns, std::memory_order_relaxed);
    statistics.rows.store(row + 1, std::memory_order_release);
    recorder_.flush();
}

void Sampler::count_ledger() {
    const LedgerCounters& ledger = policy_->ledger();
    counters().set(Counter::promotions_paid, ledger.paid);
    counters().set(Counter::promotions_wasted, ledger.wasted);
    counters().set(Counter::pages_ping_pong, ledger.ping_pong);
    counters().set(Counter::chunk_rule_right, ledger.chunks_right);
    counters().set(Counter::chunk_rule_wrong, ledger.chunks_wrong);
}

// What a move costs and what a sample's accesses would save. A replay has no mover: its moves cost nothing.
void Sampler::weigh_moves() {
    const uint64_t moved = counters().get(Counter::pgpromote_success) + counters().get(Counter::pgdemote_success) +
                           counters().get(Counter::numa_pages_migrated);
    const uint64_t period = rate_ ? period_ : shared_.settings.tunables.ibs_period;
    policy_->set_economy(economy_->read(period, counters().get(Counter::mover_cpu_ns), moved));
}

// What sampling cost in the second, and how many ranks share its limit.
void Sampler::share_second(TimeNs now) {
    Statistics& statistics = *shared_.statistics;
    const uint64_t interrupts = counters().get(Counter::hwhint_total_events) + counters().get(Counter::lost_samples);
    counters().set(Counter::interrupt_ns, interrupts * kInterruptNs);
    rate_->end_second(now, job_);
    if (shared_.job == nullptr) return;
    statistics.ranks.store(ranks_alive(*shared_.job, now), std::memory_order_relaxed);
    statistics.ranks_seen.store(shared_.job->ranks_seen.load(kJobOrder), std::memory_order_relaxed);
}

// When main has left by pthread_exit, the process lives as long as any thread, ours included: after the program's last
// thread we must go too. The C library then runs exit() in the last of ours, the mover, which still has the program's
// descriptors.
bool Sampler::program_is_gone() {
    unsigned others = 0;
    files_.list("/proc/self/task", [&](std::string_view name) {
        int tid = 0;
        if (take_number(name, tid) && tid != shared_.own_tids[0] && tid != shared_.own_tids[1]) ++others;
    });
    if (others > 1) return false;
    char buffer[512];
    std::string_view stat = files_.first_line("/proc/self/stat", buffer);
    const size_t paren = stat.rfind(')');
    if (paren == std::string_view::npos) return false;
    stat.remove_prefix(paren);
    return stat.starts_with(") Z");
}

void Sampler::finish() {
    if (source_ != nullptr) drain(sys::now());
    const bool mover_ended = wait_for_mover();
    if (source_ != nullptr) {
        take_outcomes();
        if (mover_ended) expire_plans();
        end_second(sys::now());
        if (mover_ended) job_.leave(files_, sys::now());    // else it may still use the board
        say_recording_problem();
        source_->stop();
        // A mover that is still busy has pages without a fate: then the report is that of a running engine.
        if (mover_ended)
            shared_.statistics->state.store(static_cast<uint32_t>(EngineState::kStopped), std::memory_order_release);
    }
    write_report_file();
}

bool Sampler::wait_for_mover() {
    const TimeNs limit = sys::now() + kMoverEndNs;
    while (!shared_.mover_ended.raised() && sys::now() < limit) {
        if (policy_) take_outcomes();
        shared_.mover_ended.wait(0, kNsPerMs);
    }
    return shared_.mover_ended.raised();
}

// Plans that came after the mover's last look. The queue and the counter are its, until it has ended.
void Sampler::expire_plans() {
    Move move;
    while (shared_.plans.pop(move)) counters().add(Counter::pages_expired, move.pages);
}

void Sampler::say_recording_problem() {
    const int error = recorder_.error();
    const PathText& path = shared_.settings.record_file;
    if (error != 0) note_problem("PGHOT_RECORD: cannot write", path.view(), error, "give another file name");
}

void Sampler::write_report_file() {
    const PathText& path = shared_.settings.report_file;
    if (path.empty()) return;
    if (!has_own_descriptors_)    // a file of ours would take a number that the program counts on
        return note_problem("PGHOT_REPORT: cannot write", path.view(), EPERM, "close_range is refused here");
    OutputFile file;
    file.open(path.c_str(), OutputFile::Existing::kReplace);
    const auto sink = [&file](std::span<const char> bytes) { return file.write(bytes); };
    if (file.is_open()) write_engine_report(shared_, sink);
    if (file.error() != 0)
        note_problem("PGHOT_REPORT: cannot write", path.view(), file.error(), "give another file name");
}

}    // namespace pghot
