// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/scenario.h"

#include <algorithm>
#include <bit>
#include <memory>

namespace pghot::sim {
namespace {

double seconds_of(int64_t ns) { return static_cast<double>(ns) / kNsPerSecond; }

double share(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The job while it runs.
class Job {
public:
    explicit Job(const Scenario& scenario) : scenario_(scenario) {
        for (unsigned rank = 0; rank < scenario.ranks; ++rank) {
            Program program = scenario.program(rank);
            program.settings.budget_word = &budget_word_;
            program.settings.seed += rank;
            Rank& added = ranks_.emplace_back();
            added.simulator = std::make_unique<Simulator>(program.topology, program.settings);
            for (Thread& thread : program.threads) added.simulator->add(std::move(thread));
            for (const auto& wanted : program.wanted) wanted_ += wanted.count;
            added.wanted = std::move(program.wanted);
            pages_ += program.settings.pages;
        }
        start_ = now();
    }

    Result run() {
        const uint64_t look_ms = pages_ > 8000000 ? 500 : 100;    // counting pages is what takes long
        uint64_t late_samples = 0;
        uint64_t late_home = 0;
        for (uint64_t ms = 0; !ended(ms); ms += look_ms) {
            if (ms % 1000 == 0 && scenario_.every_second) scenario_.every_second(static_cast<unsigned>(ms / 1000));
            advance(now() + look_ms * kNsPerMs);
            look();
            if (!is_late(ms)) {
                late_samples = sum(&Simulator::samples);
                late_home = sum(&Simulator::samples_home);
            }
        }
        finish();
        result_.late_dram = share(sum(&Simulator::samples_home) - late_home, result_.samples - late_samples);
        return result_;
    }

private:
    struct Rank {
        std::unique_ptr<Simulator> simulator;
        std::vector<Program::Wanted> wanted;
    };

    TimeNs now() const { return ranks_[0].simulator->now(); }
    uint64_t sum(uint64_t (Simulator::*count)() const) const {
        uint64_t all = 0;
        for (const Rank& rank : ranks_) all += (*rank.simulator.*count)();
        return all;
    }
    bool ended(uint64_t ms) const {
        if (scenario_.samples != 0) return sum(&Simulator::samples) >= scenario_.samples;
        return static_cast<double>(ms) >= scenario_.seconds * 1000;
    }

    bool is_late(uint64_t ms) const {
        if (scenario_.samples != 0) return sum(&Simulator::samples) > scenario_.samples / 10 * 9;
        return static_cast<double>(ms) > scenario_.seconds * 900;
    }

    // Ranks take turns, each time beginning with another one: who comes first to the budget word is no rank's
    // privilege.
    void advance(TimeNs end) {
        const uint64_t step = ranks_.size() == 1 ? static_cast<uint64_t>(end - now()) : kNsPerMs / 2;
        while (now() < end) {
            const TimeNs until = now() + step;
            const size_t first = turn_++ * 37 % ranks_.size();
            for (size_t i = 0; i < ranks_.size(); ++i) ranks_[(first + i) % ranks_.size()].simulator->run_until(until);
        }
    }

    uint64_t wanted_home() const {
        uint64_t pages = 0;
        for (const Rank& rank : ranks_) {
            const Simulator& simulator = *rank.simulator;
            for (const auto& [first, count, node] : rank.wanted)
                pages += node == Program::kAnyTop ? count - simulator.pages_on(2, first, count)
                                                  : simulator.pages_on(node, first, count);
        }
        return pages;
    }

    void look() {
        result_.home = share(wanted_home(), wanted_);
        const double seconds = seconds_of(now() - start_);
        if (std::isnan(result_.seconds_to_90) && result_.home >= 0.90) result_.seconds_to_90 = seconds;
        if (std::isnan(result_.seconds_to_99) && result_.home >= 0.99) result_.seconds_to_99 = seconds;
        if (std::isnan(result_.least_share) && result_.home >= 0.5) result_.least_share = least_share();
    }

    double least_share() const {
        uint64_t least = ~0ull;
        uint64_t most = 0;
        for (const Rank& rank : ranks_) {
            least = std::min(least, rank.simulator->pages_moved());
            most = std::max(most, rank.simulator->pages_moved());
        }
        return share(least, most);
    }

    void finish() {
        std::chrono::nanoseconds plan{};
        uint64_t plans = 0;
        for (const Rank& rank : ranks_) {
            const Simulator& simulator = *rank.simulator;
            const HeatTable& heat = simulator.policy().heat();
            result_.calls += simulator.calls().size();
            result_.pages_alone += simulator.policy().counters().pages_planned[static_cast<size_t>(MoveRule::kPage)];
            result_.evictions += simulator.policy().evictions();
            result_.table_bytes += HeatTable::bytes_for(heat.chunks());
            result_.table_pages += heat.chunks() * kPagesPerChunk;
            result_.most_moves = std::max(result_.most_moves, simulator.most_moves_of_a_page());
            plan += simulator.plan_cost().sum;
            plans += simulator.plan_cost().calls;
            const auto most = std::chrono::duration<double, std::micro>(simulator.plan_cost().most).count();
            result_.plan_us_most = std::max(result_.plan_us_most, most);
        }
        if (plans != 0)
            result_.plan_us = std::chrono::duration<double, std::micro>(plan).count() / static_cast<double>(plans);
        result_.seconds = seconds_of(now() - start_);
        result_.pages_moved = sum(&Simulator::pages_moved);
        result_.samples = sum(&Simulator::samples);
        result_.dram = share(sum(&Simulator::samples_home), result_.samples);
    }

    const Scenario& scenario_;
    std::atomic<uint64_t> budget_word_{0};
    std::vector<Rank> ranks_;
    TimeNs start_;
    uint64_t wanted_ = 0;
    uint64_t pages_ = 0;
    size_t turn_ = 0;
    Result result_;
};

}    // namespace

Shuffle::Shuffle(uint64_t count)
    : count_(count), half_bits_(static_cast<unsigned>(std::bit_width(std::max<uint64_t>(count, 4) - 1) + 1) / 2) {}

// Four rounds of a Feistel network over the next even power of two, repeated until the number falls inside.
uint64_t Shuffle::operator()(uint64_t number) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    do {
        uint64_t left = number >> half_bits_;
        uint64_t right = number & mask;
        for (uint64_t round = 1; round <= 4; ++round) {
            const uint64_t mixed = (right + round) * 0x9e3779b97f4a7c15ull;
            left ^= (mixed >> 32) & mask;
            std::swap(left, right);
        }
        number = left << half_bits_ | right;
    } while (number >= count_);
    return number;
}

// Rejection-inversion (Hoermann and Derflinger 1996): the integral of 1/x^exponent is inverted, and the little by which
// a bar of the histogram differs from the area under the curve is rejected.
std::function<uint64_t(Random&)> power_law(uint64_t first, uint64_t count, double exponent, uint64_t run) {
    const double e = 1 - exponent;
    const auto integral = [e](double x) { return (std::pow(x, e) - 1) / e; };
    const auto inverse = [e](double y) { return std::pow(1 + y * e, 1 / e); };
    const auto height = [exponent](double x) { return std::pow(x, -exponent); };
    const double low = integral(1.5) - 1;
    const double high = integral(static_cast<double>(count) + 0.5);
    const Shuffle shuffle(count / run);
    return [=](Random& random) {
        for (;;) {
            const double area = std::uniform_real_distribution(low, high)(random);
            const double rank = std::clamp(std::round(inverse(area)), 1.0, static_cast<double>(count));
            if (area < integral(rank + 0.5) - height(rank)) continue;
            const auto page = static_cast<uint64_t>(rank) - 1;
            const uint64_t in_runs = page / run < count / run ? shuffle(page / run) * run + page % run : page;
            return first + in_runs;
        }
    };
}

Result run(const Scenario& scenario) { return Job(scenario).run(); }

}    // namespace pghot::sim
