// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/base/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/base/units.h"
#include "runtime/policy/sample.h"

namespace pghot {

// Where samples come from. Used by the sampler thread alone.
class SampleSource {
public:
    // Begins to sample. A failure says what was tried and the errno; the ladder then tries the next source.
    virtual Status start(TimeNs now) = 0;
    // Hands on what has come since the last call, per thread in the order of time. Answers how full the fullest buffer
    // was, in percent, from which the caller finds how soon to come again.
    virtual unsigned drain(TimeNs now, FunctionRef<void(const Sample&)> use) = 0;
    // Housekeeping that needs /proc: threads that came or went. About every 100 ms.
    virtual void refresh(TimeNs now) = 0;
    // Ends sampling and gives everything back.
    virtual void stop() = 0;

protected:
    ~SampleSource() = default;
};

}    // namespace pghot
