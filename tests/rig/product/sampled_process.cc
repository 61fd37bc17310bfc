// SPDX-License-Identifier: Apache-2.0
// What programs do with signals, identities and children, done while they are sampled and their memory is moved:
//   sampled_process blocked SECONDS      signals that every thread blocks and one waits for
//   sampled_process handled SECONDS      timers and children's ends, handled by the program's threads
//   sampled_process identities SECONDS   changes of the user, which the C library asks of every thread by a signal
//   sampled_process forks CHILDREN       children that check the memory they were born with
//   sampled_process exec ROUNDS          the program begins anew, from a thread other than main
//   sampled_process small-stack SECONDS  the thread that makes the process grow has the smallest stack
//   sampled_process no-environment SECONDS  the program clears its environment and goes on in a child
//   sampled_process exit-soon MILLISECONDS  another thread than main ends the process, however far tiering has come
// A thread reads memory of the lower tier all the time, new memory as soon as the old has come home. Prints one JSON
// object: {"rounds": regions of which half came home, ...}.
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "region.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;
constexpr size_t kRegionBytes = 16 << 20;    // four times the third cache of the emulated machine
constexpr int kLowerNode = 2;

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "sampled_process: %s (%s)\n", what, std::strerror(errno));
    _exit(3);
}

void require(bool condition, const char* what) {
    if (!condition) fail(what);
}

bool has_come_home(const Region& region) {
    const auto pages = region.pages_per_node();
    const auto left = pages.find(kLowerNode);
    return left == pages.end() || left->second < kRegionBytes / 4096 / 2;
}

// Keeps the sampler and the mover busy until it is told to stop.
class Stirring {
public:
    Stirring() : thread_([this] { stir(); }) {}
    ~Stirring() { stop(); }
    Stirring(const Stirring&) = delete;
    Stirring& operator=(const Stirring&) = delete;
    int rounds() const { return rounds_; }
    void stop() {
        end_ = true;
        if (thread_.joinable()) thread_.join();
    }

private:
    void stir() {
        while (!end_) {
            Region region(kRegionBytes, kLowerNode, Region::Policy::kReset);
            free(std::malloc(1 << 20));    // tiering starts at an allocation
            while (!end_ && !has_come_home(region))
                for (int i = 0; i < 20 && !end_; ++i) region.read_once();
            if (!end_) ++rounds_;
        }
    }
    std::atomic<int> rounds_{0};
    std::atomic<bool> end_{false};
    std::thread thread_;
};

void wait_until_stirred(const Stirring& stirring, int rounds) {
    const auto limit = Clock::now() + seconds(120);
    while (stirring.rounds() < rounds) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        require(Clock::now() < limit, "memory does not come home");
    }
}

constexpr int kSignals[] = {SIGTERM, SIGUSR1, SIGCHLD, SIGPROF, SIGALRM, SIGIO};

sigset_t set_of(int signal_number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    return set;
}

// One thread that does not block them is enough to end the process, or to lose the signal.
void blocked(int duration) {
    sigset_t all;
    sigemptyset(&all);
    for (const int each : kSignals) sigaddset(&all, each);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    Stirring stirring;
    wait_until_stirred(stirring, 1);
    const auto end = Clock::now() + seconds(duration);
    int received = 0;
    const int descriptor = signalfd(-1, &all, SFD_CLOEXEC);
    while (Clock::now() < end) {
        for (const int each : kSignals) {
            const sigset_t one = set_of(each);
            const timespec limit{60, 0};
            kill(getpid(), each);
            require(sigtimedwait(&one, nullptr, &limit) == each, "a blocked signal did not wait for sigtimedwait");
            kill(getpid(), each);
            int taken = 0;
            require(sigwait(&one, &taken) == 0 && taken == each, "a blocked signal did not wait for sigwait");
            kill(getpid(), each);
            signalfd_siginfo info;
            require(
                read(descriptor, &info, sizeof info) == sizeof info && info.ssi_signo == static_cast<unsigned>(each),
                "a blocked signal did not wait for signalfd");
            received += 3;
        }
    }
    stirring.stop();
    std::printf("{\"rounds\":%d,\"received\":%d}\n", stirring.rounds(), received);
}

std::atomic<int> handled{0}, handled_elsewhere{0};
int waiting_thread = 0;

void count(int) {
    if (syscall(SYS_gettid) == waiting_thread)
        ++handled;
    else
        ++handled_elsewhere;
}

// Every thread of the program but this one blocks everything: what is handled elsewhere was a thread of the library's.
void handled_signals(int duration) {
    waiting_thread = static_cast<int>(syscall(SYS_gettid));
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    Stirring stirring;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    wait_until_stirred(stirring, 1);
    for (const int each : {SIGPROF, SIGALRM, SIGCHLD}) {
        struct sigaction action {};
        action.sa_handler = count;
        sigaction(each, &action, nullptr);
    }
    const itimerval tick{{0, 20000}, {0, 20000}}, never{};
    setitimer(ITIMER_PROF, &tick, nullptr);
    setitimer(ITIMER_REAL, &tick, nullptr);
    int children = 0;
    for (const auto end = Clock::now() + seconds(duration); Clock::now() < end; ++children) {
        const pid_t child = fork();
        if (child == 0) _exit(children % 100);
        int status = 0;
        while (waitpid(child, &status, 0) < 0) require(errno == EINTR, "waitpid");
        require(WEXITSTATUS(status) == children % 100, "a child's status");
    }
    setitimer(ITIMER_PROF, &never, nullptr);
    setitimer(ITIMER_REAL, &never, nullptr);
    stirring.stop();
    std::printf("{\"rounds\":%d,\"handled\":%d,\"elsewhere\":%d,\"children\":%d}\n", stirring.rounds(), handled.load(),
                handled_elsewhere.load(), children);
}

// The lines "Uid:" of all threads, ours among them.
std::set<std::string> users_of_threads(int& threads) {
    std::set<std::string> users;
    DIR* folder = opendir("/proc/self/task");
    require(folder != nullptr, "/proc/self/task");
    threads = 0;
    while (const dirent* entry = readdir(folder)) {
        if (entry->d_name[0] == '.') continue;
        std::ifstream status(std::string("/proc/self/task/") + entry->d_name + "/status");
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("Uid:")) users.insert(line), ++threads;
    }
    closedir(folder);
    return users;
}

void identities(int duration) {
    constexpr uid_t kNobody = 65534;
    Stirring stirring;
    wait_until_stirred(stirring, 1);
    int changes = 0;
    for (const auto end = Clock::now() + seconds(duration); Clock::now() < end; changes += 2) {
        require(seteuid(kNobody) == 0 && geteuid() == kNobody, "seteuid");
        require(seteuid(0) == 0 && setegid(0) == 0, "seteuid back");
    }
    require(setresgid(kNobody, kNobody, 0) == 0 && setresuid(kNobody, kNobody, 0) == 0, "setresuid");
    int threads = 0;
    const size_t users = users_of_threads(threads).size();
    wait_until_stirred(stirring, stirring.rounds() + 1);    // sampling goes on
    stirring.stop();
    require(setresuid(0, 0, 0) == 0 && setresgid(0, 0, 0) == 0, "setresuid back");    // for the report
    std::printf("{\"rounds\":%d,\"changes\":%d,\"users\":%zu,\"threads\":%d}\n", stirring.rounds(), changes, users,
                threads);
}

void check_inheritance(const std::string& text, const unsigned char* block, size_t bytes) {
    require(text == std::string(1000, 'i'), "a child's string");
    for (size_t i = 0; i < bytes; ++i) require(block[i] == static_cast<unsigned char>(i * 7), "a child's memory");
    std::free(std::realloc(std::malloc(5000), 3000000));
}

void forks(int children) {
    constexpr size_t kBytes = 300000;
    const std::string text(1000, 'i');
    const std::unique_ptr<unsigned char[]> block(new unsigned char[kBytes]);
    for (size_t i = 0; i < kBytes; ++i) block[i] = static_cast<unsigned char>(i * 7);
    Stirring stirring;
    wait_until_stirred(stirring, 1);
    for (int i = 0; i < children; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            check_inheritance(text, block.get(), kBytes);
            if (i % 2 == 0) _exit(7);
            exit(7);
        }
        int status = 0;
        require(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7, "a child's end");
    }
    stirring.stop();
    std::printf("{\"rounds\":%d,\"children\":%d}\n", stirring.rounds(), children);
}

[[noreturn]] void exec_rounds(const char* program, int rounds) {
    auto* stirring = new Stirring;
    wait_until_stirred(*stirring, 1);
    std::thread([=] {
        const std::string left = std::to_string(rounds - 1);
        if (rounds > 1)
            execl(program, program, "exec", left.c_str(), nullptr);
        else
            std::printf("{\"rounds\":%d}\n", stirring->rounds());
        exit(rounds > 1 ? 4 : 0);
    }).detach();
    for (;;) pause();
}

void* grow_on_little_room(void* stirring) {
    std::array<void*, 64> blocks;
    for (void*& block : blocks) block = std::malloc(1 << 20);    // PGHOT_START_MIN is below that
    for (void* block : blocks) std::free(block);
    *static_cast<std::unique_ptr<Stirring>*>(stirring) = std::make_unique<Stirring>();
    return nullptr;
}

void small_stack(int duration) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    require(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) == 0, "the smallest stack");
    std::unique_ptr<Stirring> stirring;
    pthread_t thread;
    require(pthread_create(&thread, &attributes, grow_on_little_room, &stirring) == 0,
            "a thread with the smallest stack");
    pthread_join(thread, nullptr);
    std::this_thread::sleep_for(seconds(duration));
    stirring->stop();
    std::printf("{\"rounds\":%d}\n", stirring->rounds());
}

// Both the parent and the child, which has an engine of its own, report.
void no_environment(int duration) {
    clearenv();
    int status = 1;
    const pid_t child = fork();
    Stirring stirring;
    std::this_thread::sleep_for(seconds(duration));
    stirring.stop();
    if (child == 0) exit(0);
    require(waitpid(child, &status, 0) == child && status == 0, "the child's end");
    std::printf("{\"rounds\":%d}\n", stirring.rounds());
}

[[noreturn]] void exit_soon(int milliseconds) {
    auto* stirring = new Stirring;    // goes on during exit
    std::thread([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        std::printf("{\"rounds\":%d}\n", stirring->rounds());
        exit(9);
    }).detach();
    for (;;) pause();
}

}    // namespace

int main(int argument_count, char** arguments) {
    if (argument_count < 3) return 2;
    const std::string what = arguments[1];
    const int amount = std::atoi(arguments[2]);
    if (what == "blocked") return blocked(amount), 0;
    if (what == "handled") return handled_signals(amount), 0;
    if (what == "identities") return identities(amount), 0;
    if (what == "forks") return forks(amount), 0;
    if (what == "exec") exec_rounds(arguments[0], amount);
    if (what == "exit-soon") exit_soon(amount);
    if (what == "small-stack") return small_stack(amount), 0;
    if (what == "no-environment") return no_environment(amount), 0;
    return 2;
}
