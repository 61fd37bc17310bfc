// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "runtime/kernel/memory.h"
#include "runtime/kernel/output_file.h"
#include "runtime/sources/recording.h"

namespace pghot {

// The recording of a run (PGHOT_RECORD): samples, plans, outcomes, mappings, in the order the sampler meets them. Does
// nothing until it was opened. Owned by the sampler; the file is in its descriptor table.
class Recorder {
public:
    Recorder() = default;
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    // 0 or -errno.
    int open(const char* path, const Topology& topology, TimeNs now);
    template <typename Record>
    void write(const Record& record) {
        if (writer_) writer_->write(record);
    }
    void flush() {
        if (writer_) writer_->flush();
    }
    // Of opening or writing the file: 0 or an errno. After the first one nothing more is written.
    int error() const { return error_ != 0 ? error_ : file_.error(); }

private:
    int error_ = 0;    // of the buffer
    OutputFile file_;
    AnonymousMemory buffer_;
    std::optional<RecordingWriter> writer_;
};

}    // namespace pghot
