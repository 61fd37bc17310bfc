// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/sampling_rate.h"

#include "runtime/kernel/syscalls.h"

namespace pghot {
namespace {

constexpr uint64_t kLongestPeriod = 134217712;    // of the IBS op counter: 27 bits, the low four zero

uint64_t grown(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

}    // namespace

SamplingRate::SamplingRate(const Counters& counters, const Tunables& tunables)
    : counters_(counters),
      base_period_(tunables.ibs_period),
      limit_ns_(tunables.sampler_cpu.tenths * (kNsPerSecond / 1000)),
      ladder_(tunables.sampler_cpu.tenths) {
    second_ = read_totals(sys::now());
}

uint64_t SamplingRate::period() const {
    return std::min(base_period_ << (ladder_.period_rung() + plateau_.rung()), kLongestPeriod);
}

void SamplingRate::note_drain(TimeNs now, const PromotionPolicy& policy) {
    PlateauSigns total;
    total.dram = counters_.get(Counter::hwhint_dram_accesses);
    total.extmem = counters_.get(Counter::hwhint_extmem_accesses);
    for (const uint64_t pages : policy.counters().pages_planned) total.pages_planned += pages;
    total.pages_returned = policy.counters().pages_returned;
    total.new_threads = counters_.get(Counter::rings_opened);
    total.new_chunks = policy.heat().chunks();
    plateau_.step(now, {.dram = total.dram - seen_.dram,
                        .extmem = total.extmem - seen_.extmem,
                        .pages_planned = total.pages_planned - seen_.pages_planned,
                        .pages_returned = total.pages_returned - seen_.pages_returned,
                        .new_threads = total.new_threads - seen_.new_threads,
                        .new_chunks = grown(total.new_chunks, seen_.new_chunks)});
    seen_ = total;
}

SamplingRate::Totals SamplingRate::read_totals(TimeNs now) const {
    return {.time = now,
            .sampler_cpu_ns = sys::thread_cpu_ns(),
            .process_cpu_ns = sys::process_cpu_ns(),
            .mover_cpu_ns = counters_.get(Counter::mover_cpu_ns),
            .samples = counters_.get(Counter::hwhint_total_events) + counters_.get(Counter::lost_samples)};
}

void SamplingRate::end_second(TimeNs now, Job& job) {
    const Totals total = read_totals(now);
    SamplingCost cost{.elapsed_ns = static_cast<uint64_t>(now - second_.time),
                      .sampler_cpu_ns = total.sampler_cpu_ns - second_.sampler_cpu_ns,
                      .record_cpu_ns = record_cpu_ns_,
                      .samples = total.samples - second_.samples};
    const uint64_t ours = cost.sampler_cpu_ns + grown(total.mover_cpu_ns, second_.mover_cpu_ns);
    cost.program_cpu_ns = grown(total.process_cpu_ns - second_.process_cpu_ns, ours);
    second_ = total;
    record_cpu_ns_ = 0;
    if (cost.elapsed_ns == 0) return;
    job.beat(now, cost.sampler_cpu_ns * kNsPerSecond / cost.elapsed_ns);
    ladder_.step(now, cost, job.sampler_share(limit_ns_, now), plateau_.rung() == 0);
}

}    // namespace pghot
