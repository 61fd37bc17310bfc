// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/recorder.h"

#include <cerrno>

namespace pghot {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;

bool write_to_file(void* self, std::span<const std::byte> bytes) {
    return static_cast<OutputFile*>(self)->write(bytes);
}

}    // namespace

int Recorder::open(const char* path, const Topology& topology, TimeNs now) {
    buffer_ = AnonymousMemory(kBufferBytes);
    if (!buffer_) {
        error_ = ENOMEM;
        return -ENOMEM;
    }
    if (const int error = file_.open(path, OutputFile::Existing::kReplace); error != 0) return error;
    writer_.emplace(buffer_.bytes(), RecordingSink{write_to_file, &file_});
    writer_->begin(now);
    writer_->write(topology);
    return 0;
}

}    // namespace pghot
