// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "runtime/engine/census.h"
#include "runtime/engine/drain_pace.h"
#include "runtime/engine/job.h"
#include "runtime/engine/movable_memory.h"
#include "runtime/engine/recorder.h"
#include "runtime/engine/sampling_rate.h"
#include "runtime/engine/shared.h"
#include "runtime/kernel/file_bytes.h"
#include "runtime/kernel/memory.h"
#include "runtime/policy/economy_meter.h"
#include "runtime/policy/promotion_policy.h"
#include "runtime/sources/ibs_source.h"
#include "runtime/sources/replay.h"

namespace pghot {

// The loop of pghot-sampler: samples into the heat table, plans to the mover, counters and one-second rows into the
// statistics page. Owns rings, tables, policy and snapshot. All its files are in its private descriptor table.
// Large: lives in memory of its own, not on the stack.
class Sampler {
public:
    explicit Sampler(EngineShared& shared);

    // Everything up to the first drain. Afterwards the state in the statistics page says whether run() makes sense.
    EngineState set_up();
    // Returns when the engine stops, or when the program's last thread has ended.
    void run();
    // The last drain, the mover's last outcomes, the final row and the report file.
    void finish();

private:
    static constexpr size_t kSamplesPerBatch = 256;
    static constexpr size_t kPlansPerRound = 512;    // single pages take one each

    int own_descriptors();
    void open_statistics();
    long refusal_to_move() const;
    bool replay_is_asked() const;
    bool make_tables();
    bool choose_source();
    bool try_source(SourceKind kind);
    bool try_ibs();
    bool try_replay();
    void open_recording();
    void join_job();
    void set_period();
    void say_recording_problem();
    bool wait_for_mover();
    void expire_plans();
    EngineState give_up(EngineState state, Status status);
    void say_reason(const Status& status);
    void note_problem(std::string_view what, std::string_view path, int error, std::string_view advice);
    void check_settings();
    void note_rivals();

    bool drain(TimeNs now);
    void use(const Sample& sample);
    void record_batch();
    void take_outcomes();
    void plan(TimeNs now);
    void send(const Move& move);
    void take_stock(TimeNs now);
    void take_census(TimeNs now);
    void read_free_memory(TimeNs now);
    bool is_own(const Move& move);
    void keep_house(TimeNs now);
    void end_second(TimeNs now);
    void count_ledger();
    void weigh_moves();
    void share_second(TimeNs now);
    bool program_is_gone();
    void write_report_file();

    Counters& counters() { return shared_.statistics->counters; }
    // A replayed sample is another process's: its plans are counted, never carried out.
    bool replaying() const { return replay_.has_value(); }
    bool observing() const { return replaying() || shared_.settings.tunables.mode == Mode::kObserve; }

    EngineShared& shared_;
    bool has_own_descriptors_ = false;
    KernelFiles files_;
    AnonymousMemory heat_memory_;
    AnonymousMemory range_memory_;
    AnonymousMemory ring_memory_;
    std::optional<MovableMemory> memory_;
    std::optional<PromotionPolicy> policy_;
    std::optional<EconomyMeter> economy_;
    std::optional<IbsSource> ibs_;
    FileBytes replay_file_;
    AnonymousMemory replay_memory_;
    std::optional<ReplaySource> replay_;
    Recorder recorder_;
    SampleSource* source_ = nullptr;
    std::array<Sample, kSamplesPerBatch> batch_{};    // recorded together: their places in the table are fetched ahead
    size_t batched_ = 0;
    Job job_;
    std::optional<SamplingRate> rate_;    // of ibs_
    uint64_t period_ = 0;
    bool period_is_fixed_ = false;
    DrainPace pace_;
    unsigned fullest_ = 0;
    TimeNs next_house_{};
    TimeNs next_second_{};
    TimeNs next_free_read_{};
    TimeNs next_census_{};
    Census census_;
    std::array<Move, kPlansPerRound> planned_{};
    SecondRow totals_{};    // at the end of the last row
};

}    // namespace pghot
