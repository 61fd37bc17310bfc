// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/simulator.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

namespace pghot::sim {
namespace {

std::chrono::nanoseconds cpu_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}    // namespace

Topology published_machine(unsigned cpus) {
    Topology topology;
    topology.node_count = 3;
    topology.cpu_count = static_cast<uint16_t>(cpus);
    topology.node_of_cpu.fill(-1);
    for (unsigned cpu = 0; cpu < cpus; ++cpu) topology.node_of_cpu[cpu] = static_cast<int16_t>(cpu % 2);
    for (unsigned i = 0; i < 3; ++i)
        topology.nodes[i] = {.online_memory = true, .has_cpus = i < 2, .allowed = true, .lower_tier = i == 2};
    topology.distance[0] = {10, 12, 50};
    topology.distance[1] = {12, 10, 50};
    topology.distance[2] = {255, 255, 10};
    return topology;
}

std::function<uint64_t(Random&)> uniform(uint64_t first, uint64_t count) {
    return [=](Random& random) { return first + random() % count; };
}

std::function<uint64_t(Random&)> sweep(uint64_t first, uint64_t count, double pages_per_sample) {
    return [=, position = 0.0](Random& random) mutable {
        position += std::exponential_distribution<double>(1 / pages_per_sample)(random);
        position = std::fmod(position, static_cast<double>(count));
        return first + std::min(static_cast<uint64_t>(position), count - 1);
    };
}

std::function<uint64_t(Random&)> zipf(std::vector<uint64_t> order, double exponent) {
    std::vector<double> sum(order.size());
    double total = 0;
    for (size_t i = 0; i < order.size(); ++i) sum[i] = total += std::pow(static_cast<double>(i + 1), -exponent);
    return [order = std::move(order), sum = std::move(sum), total](Random& random) {
        const double point = std::uniform_real_distribution(0.0, total)(random);
        const auto rank = std::lower_bound(sum.begin(), sum.end(), point) - sum.begin();
        return order[std::min(static_cast<size_t>(rank), order.size() - 1)];
    };
}

Simulator::Simulator(const Topology& topology, const Settings& settings)
    : topology_(topology),
      settings_(settings),
      random_(settings.seed),
      heat_storage_(
          HeatTable::bytes_for(settings.heat_chunks != 0 ? settings.heat_chunks : settings.pages / kPagesPerChunk + 1)),
      policy_(topology_, settings.policy, heat_storage_, &blocks_),
      budget_(settings.budget_word != nullptr ? *settings.budget_word : own_budget_word_, settings.rate_limit_mbps,
              kBatchPages * kPageBytes),
      node_(settings.pages, 2),
      moves_of_page_(settings.pages, 0),
      was_demoted_(settings.pages, false) {
    on_node_[2] = settings.pages;
    policy_.set_economy(settings.economy);
}

ObjectRange Simulator::Blocks::object_at(uintptr_t address) const {
    for (const auto& [first_page, pages] : blocks_) {
        if (address < Simulator::address(first_page) || address >= Simulator::address(first_page + pages)) continue;
        const uintptr_t end = Simulator::address(first_page + pages);
        return {(Simulator::address(first_page) + kChunkBytes - 1) / kChunkBytes, end / kChunkBytes};
    }
    return {};
}

void Simulator::run_until(TimeNs end) {
    loads_ = loads_from_dram_ = 0;
    while (now_ < end) {
        now_ = std::min({end, next_drain_, next_plan_});
        move_until(now_);
        if (now_ == next_drain_) {
            sample_until(now_);
            next_drain_ = next_drain_ + settings_.drain_ms * kNsPerMs;
        }
        if (now_ == next_plan_) {
            plan();
            next_plan_ = next_plan_ + settings_.plan_ms * kNsPerMs;
        }
    }
}

// ---- the program

// How much faster the program runs than with all memory on the expander, by what its last samples found at home.
double Simulator::pace() {
    const auto taken = static_cast<double>(samples_ - paced_samples_);
    const auto home = static_cast<double>(samples_home_ - paced_home_);
    paced_samples_ = samples_;
    paced_home_ = samples_home_;
    if (taken > 0) pace_ = taken / (taken - home + home * settings_.dram_cost);
    return pace_;
}

// One thread after the other, as rings are drained: time goes back at each.
void Simulator::sample_until(TimeNs end) {
    const double faster = pace();
    for (Running& running : threads_) {
        std::exponential_distribution<double> gap(running.thread.samples_per_second * faster / kNsPerSecond);
        while (running.next < end) {
            take_sample(running.thread, running.next);
            running.next = running.next + 1 + static_cast<uint64_t>(gap(random_));
        }
    }
}

void Simulator::take_sample(const Thread& thread, TimeNs time) {
    const uint64_t page = thread.page(random_);
    const bool store = std::uniform_real_distribution(0.0, 1.0)(random_) < thread.store_share;
    const ServedBy level = is_lower(page) ? ServedBy::kExtMem : ServedBy::kDram;
    samples_home_ += level == ServedBy::kDram;
    if (!store) {
        ++loads_;
        loads_from_dram_ += level == ServedBy::kDram;
    }
    feed({.address = address(page) + random_() % kPageBytes,
          .time = time,
          .tid = thread.cpu,
          .cpu = thread.cpu,
          .node = topology_.node_of(thread.cpu),
          .served_by = store ? ServedBy::kNoLevel : level,
          .store = store,
          .remote = !store && level == ServedBy::kDram && node_[page] != topology_.node_of(thread.cpu).value});
}

void Simulator::feed(const Sample& sample) {
    policy_.record(sample);
    ++samples_;
}

void Simulator::place(uint64_t first, uint64_t count, int16_t node) {
    for (uint64_t page = first; page < first + count; ++page) --on_node_[static_cast<size_t>(node_[page])];
    on_node_[static_cast<size_t>(node)] += count;
    std::fill_n(node_.begin() + static_cast<ptrdiff_t>(first), count, node);
}

void Simulator::reuse(uint64_t first, uint64_t count) {
    place(first, count, 2);
    policy_.forget(address(first), address(first + count));
}

// ---- the mover

void Simulator::plan() {
    read_room();
    // As the library.
    constexpr size_t kQueue = 1024;
    constexpr size_t kRound = 512;
    if (queue_.size() >= kQueue) return;
    std::vector<Move> moves(std::min(kQueue - queue_.size(), kRound));
    const auto start = cpu_time();
    moves.resize(policy_.plan(now_, moves));
    const auto took = cpu_time() - start;
    ++plan_cost_.calls;
    plan_cost_.sum += took;
    plan_cost_.most = std::max(plan_cost_.most, took);
    queue_.insert(queue_.end(), moves.begin(), moves.end());
}

void Simulator::move_until(TimeNs end) {
    while (mover_now_ < end) {
        if (batch_.started) {
            if (batch_.done > end) return;
            mover_now_ = batch_.done;
            finish_batch();
            continue;
        }
        if (batch_.moves.empty() && !fill_batch()) {
            mover_now_ = end;
            return;
        }
        const auto answer = budget_.take(batch_.pages * kPageBytes, mover_now_);
        if (!answer.granted) {
            // Timer slack: up to a millisecond late, at random.
            mover_now_ = answer.retry_at + random_() % kNsPerMs;
            continue;
        }
        calls_.push_back({mover_now_, batch_.pages * kPageBytes});
        batch_.started = true;
        batch_.done = mover_now_ + settings_.call_ns + batch_.pages * settings_.page_ns;
    }
}

// Moves of one kind and target that follow each other in the queue, up to 8 MiB.
bool Simulator::fill_batch() {
    while (!queue_.empty()) {
        const Move& move = queue_.front();
        if (!batch_.moves.empty() &&
            (batch_.moves.front().target != move.target || batch_.moves.front().kind != move.kind))
            break;
        if (batch_.pages + move.pages > kBatchPages) break;
        const uint64_t first = (move.address - kBase) / kPageBytes;
        for (uint64_t page = first; page < first + move.pages; ++page)
            batch_.pages += is_moved(asked_about(move, page));
        batch_.moves.push_back(move);
        queue_.pop_front();
    }
    return !batch_.moves.empty();
}

// What becomes of a page that the kernel lets go.
PageOutcome Simulator::asked_about(const Move& move, uint64_t page) const {
    if (!is_ours(page)) return PageOutcome::kAbsent;
    const bool lower = is_lower(page);
    switch (move.kind) {
        case MoveKind::kPromote:
            return lower ? PageOutcome::kPromoted : PageOutcome::kAtTarget;
        case MoveKind::kDemote:
            return lower ? PageOutcome::kAtTarget : PageOutcome::kDemoted;
        case MoveKind::kRehome:
            break;
    }
    if (lower) return PageOutcome::kElsewhere;
    return node_[page] == move.target.value ? PageOutcome::kAtTarget : PageOutcome::kRehomed;
}

bool Simulator::is_moved(PageOutcome outcome) {
    return outcome == PageOutcome::kPromoted || outcome == PageOutcome::kDemoted || outcome == PageOutcome::kRehomed;
}

void Simulator::finish_batch() {
    for (const Move& move : batch_.moves) {
        const uint64_t first = (move.address - kBase) / kPageBytes;
        for (uint64_t page = first; page < first + move.pages; ++page) {
            PageOutcome outcome = asked_about(move, page);
            const NodeId to = move.target.valid() ? move.target : NodeId{2};
            if (is_moved(outcome) && std::uniform_real_distribution(0.0, 1.0)(random_) < settings_.busy_share)
                outcome = PageOutcome::kBusy;
            if (is_moved(outcome) && is_full(to)) outcome = PageOutcome::kNoMemory;
            if (is_moved(outcome)) note_moved(page, to);
            report(move, page, outcome);
        }
    }
    batch_ = {};
}

void Simulator::report(const Move& move, uint64_t page, PageOutcome outcome) {
    policy_.report({.address = address(page),
                    .pages = 1,
                    .outcome = outcome,
                    .time = mover_now_,
                    .target = move.target,
                    .kind = move.kind});
}

void Simulator::note_moved(uint64_t page, NodeId to) {
    const bool down = topology_.is_lower(to);
    pages_promoted_again_ += is_lower(page) && was_demoted_[page];
    pages_demoted_ += down;
    if (down) was_demoted_[page] = true;
    place(page, 1, to.value);
    ++moves_of_page_[page];
    ++pages_moved_;
}

bool Simulator::is_full(NodeId node) const {
    const auto i = static_cast<size_t>(node.value);
    return i < settings_.node_pages.size() && settings_.node_pages[i] != 0 && on_node_[i] >= settings_.node_pages[i];
}

void Simulator::read_room() {
    std::vector<NodeRoom> rooms;
    for (size_t i = 0; i < settings_.node_pages.size(); ++i) {
        const uint64_t there = settings_.node_pages[i];
        if (there == 0) continue;
        const uint64_t room = (there - std::min(on_node_[i], there)) * kPageBytes;
        rooms.push_back({NodeId{static_cast<int16_t>(i)}, room, room});
    }
    policy_.capacity().read(rooms, tick_of(now_));
}

// ---- what came of it

uint64_t Simulator::pages_on(int16_t node, uint64_t first, uint64_t count) const {
    const auto begin = node_.begin() + static_cast<ptrdiff_t>(first);
    return static_cast<uint64_t>(std::count(begin, begin + static_cast<ptrdiff_t>(count), node));
}

unsigned Simulator::most_moves_of_a_page() const {
    return moves_of_page_.empty() ? 0 : *std::max_element(moves_of_page_.begin(), moves_of_page_.end());
}

double Simulator::dram_share() const {
    return loads_ == 0 ? 0 : static_cast<double>(loads_from_dram_) / static_cast<double>(loads_);
}

}    // namespace pghot::sim
