// SPDX-License-Identifier: Apache-2.0
// How often to sample: the ladder that keeps the cost, and the plateau where there is nothing to do.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runtime/policy/period_ladder.h"
#include "runtime/policy/plateau.h"

namespace pghot {
namespace {

constexpr uint64_t kOnePercent = 10 * kNsPerMs;    // of a core, a second

// A program whose samples cost the sampler and its threads so much; the period decides how many there are.
class Sampled {
public:
    explicit Sampled(uint32_t limit_permille) : ladder(limit_permille) {}

    void run_seconds(unsigned seconds) {
        for (unsigned i = 0; i < seconds; ++i) {
            now = now + kNsPerSecond;
            cost = cost_of_a_second();
            const unsigned before = rungs();
            ladder.step(now, cost, share_ns, may_go_down);
            changes += rungs() != before;
        }
    }
    SamplingCost cost_of_a_second() const {
        const uint64_t samples = samples_a_second >> ladder.period_rung();
        const uint64_t record = samples * ns_a_sample;
        return {.elapsed_ns = kNsPerSecond,
                .sampler_cpu_ns = record + (waking_ns >> ladder.wait_rung()),
                .record_cpu_ns = record,
                .program_cpu_ns = program_cpus * kNsPerSecond,
                .samples = samples};
    }
    unsigned rungs() const { return ladder.period_rung() * 100 + ladder.wait_rung(); }

    PeriodLadder ladder;
    TimeNs now{kNsPerSecond};
    SamplingCost cost{};
    uint64_t samples_a_second = 0;
    uint64_t ns_a_sample = 25;
    uint64_t waking_ns = 400000;    // 50 drains of 8 us
    uint64_t program_cpus = 64;
    uint64_t share_ns = kOnePercent;
    bool may_go_down = true;
    unsigned changes = 0;
};

TEST(PeriodLadder, ThePublishedRateStaysBelowOnePercent) {
    Sampled program(10);
    program.samples_a_second = 135000;    // 64 CPUs of 2,115
    program.run_seconds(60);
    EXPECT_EQ(program.rungs(), 0u);
}

TEST(PeriodLadder, GoesUpAsFarAsTheCostIsAboveForTwoSeconds) {
    Sampled program(10);
    program.samples_a_second = 2000000;    // 50 ms of sampler a second, five times the limit
    program.run_seconds(1);
    EXPECT_EQ(program.ladder.period_rung(), 0u);
    program.run_seconds(1);
    EXPECT_EQ(program.ladder.period_rung(), 3u);
    program.run_seconds(30);
    EXPECT_LE(program.cost.sampler_cpu_ns, kOnePercent);
}

TEST(PeriodLadder, ASingleDearSecondChangesNothing) {
    Sampled program(10);
    for (int i = 0; i < 20; ++i) {
        program.samples_a_second = 20000000;
        program.run_seconds(1);
        program.samples_a_second = 100000;
        program.run_seconds(1);
    }
    EXPECT_EQ(program.rungs(), 0u);
}

TEST(PeriodLadder, InterruptsAreBoundedByTheProgramsOwnTime) {
    Sampled program(10);
    program.program_cpus = 1;
    program.samples_a_second = 40000;    // 80 ms of interrupts a second on one CPU; the sampler's 1 ms is nothing
    program.run_seconds(30);
    EXPECT_EQ(program.ladder.period_rung(), 3u);
    EXPECT_LE(program.cost.samples * kInterruptNs, program.cost.program_cpu_ns / 100);
}

TEST(PeriodLadder, WakingLessOftenComesBeforeSamplingLess) {
    Sampled program(10);
    program.samples_a_second = 2115;
    program.share_ns = kOnePercent / 64;    // one of 64 ranks
    program.run_seconds(30);
    EXPECT_EQ(program.ladder.period_rung(), 0u) << "it is not the samples that cost";
    EXPECT_GE(program.ladder.wait_rung(), 2u);
    EXPECT_LE(program.cost.sampler_cpu_ns, program.share_ns);
}

TEST(PeriodLadder, ComesDownStepByStepWhenTheCostFalls) {
    Sampled program(10);
    program.samples_a_second = 8000000;
    program.run_seconds(5);
    const unsigned highest = program.ladder.period_rung();
    EXPECT_GE(highest, 4u);
    program.samples_a_second = 100000;
    program.run_seconds(1);
    EXPECT_GE(program.ladder.period_rung(), highest - 1) << "not all at once";
    program.run_seconds(60);
    EXPECT_EQ(program.rungs(), 0u);
}

TEST(PeriodLadder, StaysWhereItIsInTheDeadBand) {
    for (const uint64_t samples : {170000u, 250000u, 390000u}) {    // 42 to 98 % of the limit
        Sampled program(10);
        program.waking_ns = 0;
        program.program_cpus = 128;    // the interrupts are not what counts here
        program.samples_a_second = samples;
        program.run_seconds(100);
        EXPECT_EQ(program.rungs(), 0u) << samples;
    }
}

TEST(PeriodLadder, DoesNotFlapWhateverTheLoadIs) {
    for (uint64_t samples = 1000; samples < 100000000; samples = samples * 5 / 4) {
        Sampled program(10);
        program.samples_a_second = samples;
        program.run_seconds(10);
        const unsigned settled = program.changes;
        program.run_seconds(600);
        EXPECT_LE(program.changes - settled, 2u) << samples << " samples a second";
    }
}

TEST(PeriodLadder, ALoadThatComesAndGoesIsTriedLessAndLessOften) {
    Sampled program(10);
    for (int i = 0; i < 300; ++i) {    // high whenever it came down
        program.samples_a_second = program.ladder.period_rung() == 0 ? 1600000 : 100000;
        program.run_seconds(1);
    }
    EXPECT_LE(program.changes, 30u) << "three rungs a round, and a minute between rounds in the end";
}

TEST(PeriodLadder, DoesNotComeDownForWhatWillNotLast) {
    Sampled program(10);
    program.samples_a_second = 2000000;
    program.run_seconds(5);
    const unsigned before = program.rungs();
    program.samples_a_second = 10000;
    program.may_go_down = false;
    program.run_seconds(60);
    EXPECT_EQ(program.rungs(), before);
}

TEST(PeriodLadder, HasATopAndAnEmptyIntervalChangesNothing) {
    Sampled program(1);
    program.samples_a_second = 4000000000;
    program.run_seconds(100);
    EXPECT_EQ(program.ladder.period_rung(), PeriodLadder::kMostPeriod);
    const unsigned before = program.rungs();
    program.ladder.step(program.now, {}, kOnePercent, true);
    EXPECT_EQ(program.rungs(), before);
}

// ---- plateau

// Drains every 20 ms; the rung halves the samples.
class Phase {
public:
    // Samples a second at full rate, by what served them.
    void run_ms(uint64_t ms, uint64_t dram, uint64_t extmem, const PlateauSigns& once = {}) {
        PlateauSigns signs = once;
        for (uint64_t i = 0; i < ms; i += 20) {
            now = now + 20 * kNsPerMs;
            dram_ += dram * 20 >> plateau.rung();
            extmem_ += extmem * 20 >> plateau.rung();
            signs.dram = take(dram_);
            signs.extmem = take(extmem_);
            plateau.step(now, signs);
            signs = {};
            samples += signs.dram + signs.extmem;
        }
    }
    // Milliseconds until it is awake; 10000: it is not.
    uint64_t ms_until_awake(uint64_t dram, uint64_t extmem) {
        for (uint64_t ms = 0; ms < 10000; ms += 20) {
            if (plateau.rung() == 0) return ms;
            run_ms(20, dram, extmem);
        }
        return 10000;
    }

    Plateau plateau;
    TimeNs now{kNsPerSecond};
    uint64_t samples = 0;

private:
    static uint64_t take(uint64_t& thousandths) {
        const uint64_t whole = thousandths / 1000;
        thousandths %= 1000;
        return whole;
    }
    uint64_t dram_ = 0;
    uint64_t extmem_ = 0;
};

TEST(Plateau, AllAtHomeIsQuietAfterSomeSeconds) {
    Phase phase;
    phase.run_ms(2500, 4000, 0);
    EXPECT_EQ(phase.plateau.rung(), 0u);
    phase.run_ms(5500, 4000, 0);
    EXPECT_EQ(phase.plateau.rung(), 4u);
}

TEST(Plateau, PlansKeepItAwake) {
    Phase phase;
    for (int i = 0; i < 20; ++i) phase.run_ms(1000, 4000, 0, {.pages_planned = 512});
    EXPECT_EQ(phase.plateau.rung(), 0u);
}

TEST(Plateau, ASinglePageNowAndThenDoesNot) {
    Phase phase;
    for (int i = 0; i < 20; ++i) phase.run_ms(1000, 4000, 0, {.pages_planned = 3});
    EXPECT_EQ(phase.plateau.rung(), 4u);
}

TEST(Plateau, ASteadyPartInTheLowerTierIsQuietLaterAndLess) {
    Phase phase;
    phase.run_ms(10000, 2000, 2000);
    EXPECT_EQ(phase.plateau.rung(), 0u) << "what is sampled seldom takes time to get hot";
    phase.run_ms(20000, 2000, 2000);
    EXPECT_EQ(phase.plateau.rung(), Plateau::kSteadyRung);
}

TEST(Plateau, APartThatChangesIsNoPlateau) {
    Phase phase;
    for (int i = 0; i < 30; ++i) phase.run_ms(1000, 2000, i % 2 == 0 ? 1000 : 3000);
    EXPECT_EQ(phase.plateau.rung(), 0u);
}

TEST(Plateau, ASecondHotSetWakesItWithinASecond) {
    Phase phase;
    phase.run_ms(20000, 4000, 0);
    ASSERT_EQ(phase.plateau.rung(), 4u);
    EXPECT_LE(phase.ms_until_awake(0, 4000), 100u);
    Phase partly;
    partly.run_ms(20000, 4000, 20);
    ASSERT_EQ(partly.plateau.rung(), 4u);
    EXPECT_LE(partly.ms_until_awake(3600, 400), 1000u) << "a tenth of the samples";
}

TEST(Plateau, EverySignWakesItAtOnce) {
    for (const PlateauSigns& sign : {PlateauSigns{.pages_planned = 512}, PlateauSigns{.pages_returned = 64},
                                     PlateauSigns{.new_threads = 1}, PlateauSigns{.new_chunks = 32}}) {
        Phase phase;
        phase.run_ms(20000, 4000, 0);
        ASSERT_EQ(phase.plateau.rung(), 4u);
        phase.run_ms(20, 4000, 0, sign);
        EXPECT_EQ(phase.plateau.rung(), 0u);
        phase.run_ms(20000, 4000, 0);
        EXPECT_EQ(phase.plateau.rung(), 4u) << "and it goes quiet again";
    }
}

TEST(Plateau, StraySamplesDoNotWakeIt) {
    Phase phase;
    phase.run_ms(20000, 4000, 20);
    ASSERT_EQ(phase.plateau.rung(), 4u);
    for (int i = 0; i < 600; ++i) {
        phase.run_ms(1000, 4000, i % 3 == 0 ? 40 : 10);
        ASSERT_EQ(phase.plateau.rung(), 4u) << "second " << i;
    }
}

TEST(Plateau, WhoIsSampledSeldomIsLeftAsItIs) {
    Phase phase;
    phase.run_ms(60000, 200, 0);
    EXPECT_EQ(phase.plateau.rung(), 0u);
    phase.run_ms(60000, 300, 0);
    EXPECT_EQ(phase.plateau.rung(), 1u) << "half of 300 a second are too few to go on";
}

TEST(Plateau, AProgramThatPausesIsNotQuieterAfterwards) {
    Phase phase;
    phase.run_ms(60000, 0, 0);
    EXPECT_EQ(phase.plateau.rung(), 0u);
}

}    // namespace
}    // namespace pghot
