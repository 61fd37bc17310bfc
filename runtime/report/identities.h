// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/base/counters.h"

namespace pghot {

// The counters at one moment, as plain numbers.
struct CounterValues {
    std::array<uint64_t, kCounters> value{};
    constexpr uint64_t operator[](Counter which) const { return value[static_cast<unsigned>(which)]; }
    constexpr uint64_t& operator[](Counter which) { return value[static_cast<unsigned>(which)]; }
};

inline CounterValues values_of(const Counters& counters) {
    CounterValues values;
    for (unsigned i = 0; i < kCounters; ++i) values.value[i] = counters.get(static_cast<Counter>(i));
    return values;
}

// When an identity holds. Counters that two threads write agree only after both have ended; while the engine runs even
// those of one thread may be read between two of its additions, so a false then is no proof of an error.
enum class IdentityScope : uint8_t { kAlways, kAfterStop };

// A sum that the counters must satisfy. Every sample and every planned page has exactly one fate: a false one in the
// report of a stopped engine is a bug of ours.
struct Identity {
    std::string_view name;    // the equation, as in the report
    IdentityScope scope;
    bool (*holds)(const CounterValues&);
};

inline constexpr std::array kIdentities{
    Identity{"hwhint_total_events = useful + dropped + unusable", IdentityScope::kAlways,
             [](const CounterValues& c) {
                 return c[Counter::hwhint_total_events] == c[Counter::hwhint_useful_events] +
                                                               c[Counter::hwhint_dropped_events] +
                                                               c[Counter::hwhint_unusable_events];
             }},
    Identity{"hwhint_useful_events = dram + extmem + cache + nolevel", IdentityScope::kAlways,
             [](const CounterValues& c) {
                 return c[Counter::hwhint_useful_events] ==
                        c[Counter::hwhint_dram_accesses] + c[Counter::hwhint_extmem_accesses] +
                            c[Counter::hwhint_cache_accesses] + c[Counter::hwhint_nolevel_accesses];
             }},
    Identity{"pghot_recorded_accesses = hintfaults + hwhints", IdentityScope::kAlways,
             [](const CounterValues& c) {
                 return c[Counter::pghot_recorded_accesses] ==
                        c[Counter::pghot_recorded_hintfaults] + c[Counter::pghot_recorded_hwhints];
             }},
    Identity{"pgpromote_candidate = page + chunk + huge rule", IdentityScope::kAlways,
             [](const CounterValues& c) {
                 return c[Counter::pgpromote_candidate] == c[Counter::pages_by_page_rule] +
                                                               c[Counter::pages_by_chunk_rule] +
                                                               c[Counter::pages_by_huge_rule];
             }},
    // What can befall a page of any kind of plan is counted once for all kinds.
    Identity{"candidates = moved + at target + elsewhere + absent + stale + expired + fail + dropped + observed",
             IdentityScope::kAfterStop,
             [](const CounterValues& c) {
                 const uint64_t candidates = c[Counter::pgpromote_candidate] + c[Counter::pgdemote_candidate] +
                                             c[Counter::numa_pages_candidate];
                 const uint64_t moved =
                     c[Counter::pgpromote_success] + c[Counter::pgdemote_success] + c[Counter::numa_pages_migrated];
                 const uint64_t failed =
                     c[Counter::pgpromote_fail] + c[Counter::pgdemote_fail] + c[Counter::numa_pages_fail];
                 return candidates == moved + failed + c[Counter::pages_at_target] + c[Counter::pages_elsewhere] +
                                          c[Counter::pages_absent] + c[Counter::pages_stale] +
                                          c[Counter::pages_expired] + c[Counter::plans_dropped] +
                                          c[Counter::pages_observed];
             }},
    Identity{"pgpromote_fail = busy + nomem + access + fault + other", IdentityScope::kAlways,
             [](const CounterValues& c) {
                 return c[Counter::pgpromote_fail] ==
                        c[Counter::pgpromote_fail_busy] + c[Counter::pgpromote_fail_nomem] +
                            c[Counter::pgpromote_fail_access] + c[Counter::pgpromote_fail_fault] +
                            c[Counter::pgpromote_fail_other];
             }},
};

}    // namespace pghot
