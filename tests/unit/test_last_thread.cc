// SPDX-License-Identifier: Apache-2.0
// A process whose main has left by pthread_exit ends with its last worker, although threads of the engine run: all that
// it printed arrives, and its exit handlers have the stack they would have had. Ten such processes, since what goes
// wrong here is which of two threads ends last. The engine runs on a recording, so that any machine will do.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/engine/engine.h"
#include "runtime/kernel/output_file.h"
#include "runtime/sources/recording.h"

namespace {

using namespace pghot;

constexpr int kProcesses = 10;
constexpr size_t kHandlerStackBytes = 1 << 20;    // fits the stack of any thread of the program, with room to spare
constexpr const char* kWanted = "worker\nhandler\n";

void write_empty_recording(const char* path) {
    OutputFile file;
    file.open(path, OutputFile::Existing::kReplace);
    std::byte buffer[256];
    const auto sink = [](void* self, std::span<const std::byte> bytes) {
        return static_cast<OutputFile*>(self)->write(bytes);
    };
    RecordingWriter writer(buffer, {sink, &file});
    writer.begin(TimeNs{0});
    writer.flush();
}

void exit_handler() {
    volatile char large[kHandlerStackBytes];
    for (size_t i = 0; i < sizeof large; i += 4096) large[i] = 1;
    puts("handler");
}

void* last_worker(void* engine) {
    while (!static_cast<EngineShared*>(engine)->ready.raised()) usleep(1000);
    puts("worker");    // into the buffer, which exit() flushes
    return nullptr;
}

[[noreturn]] void leave_main(const char* recording) {
    EngineSettings settings;
    settings.tunables.lower_nodes.insert(0);    // whatever this machine is, there is a lower tier
    settings.tunables.sources.order[0] = SourceKind::kReplay;
    settings.tunables.sources.replay_file.assign(recording);
    EngineShared* engine = start_engine(settings);
    if (engine == nullptr) abort();
    atexit(exit_handler);
    pthread_t thread;
    if (pthread_create(&thread, nullptr, last_worker, engine) != 0) abort();
    pthread_exit(nullptr);
}

// What a process printed and how it ended.
bool ends_right(const char* recording) {
    int ends[2];
    if (pipe(ends) != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        leave_main(recording);
    }
    close(ends[1]);
    std::string output;
    char buffer[256];
    for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
        output.append(buffer, static_cast<size_t>(got));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0 && output == kWanted) return true;
    printf("status %d, output '%s'\n", status, output.c_str());
    return false;
}

}    // namespace

int main() {
    char recording[] = "/tmp/pghot_recording_XXXXXX";
    close(mkstemp(recording));
    write_empty_recording(recording);
    int right = 0;
    for (int i = 0; i < kProcesses; ++i) right += ends_right(recording);
    unlink(recording);
    printf("%d of %d processes ended right\n", right, kProcesses);
    return right == kProcesses ? 0 : 1;
}
