// SPDX-License-Identifier: Apache-2.0
// Runs a program some of whose kernel calls are refused, without changing the program or needing privilege (seccomp
// user notification, Linux 5.0 and later):
//
//   refuse [--log FILE] RULE... -- COMMAND [ARGUMENT...]
//   refuse --list [--log FILE] -- COMMAND [ARGUMENT...]     refuses nothing and counts every call of every thread
//
// RULE is THREAD/CALL:WHEN=ANSWER.
//   THREAD  the name of the thread that calls, or "any". A program that renames itself begins a new count.
//   CALL    a system call; of move_pages, "query_pages" is the form that only asks
//   WHEN    first, every, odd (1st, 3rd, 5th ...), a number, or a number and + for that call and all later ones
//   ANSWER  an error name: the call is not made and fails with it. For read, write and getdents64 also
//             short             a few bytes only are read, written or listed
//           and for move_pages and query_pages, without the call being made unless it says so:
//             statuses:ERROR    every page's status is this error, and the call succeeds
//             untouched         the call succeeds and writes no status
//             left:N            N pages left behind, and no status written
//             half              half of the pages are moved, the others counted as left behind, no status written
//
// Exit status: COMMAND's, 128 + N after signal N, 125 when it could not be supervised (77 where this kernel cannot).
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr unsigned kPidfdThread = O_EXCL;    // PIDFD_THREAD, Linux 6.9: the descriptor table of one thread
constexpr size_t kShortBytes = 24;
constexpr size_t kShortListing = 320;    // room for one name of any length
constexpr int kBroken = 125, kCannotHere = 77;

#define CALL(name) \
    { #name, SYS_##name }
constexpr std::pair<std::string_view, int> kCalls[] = {
    CALL(access),
    CALL(arch_prctl),
    CALL(brk),
    CALL(clock_gettime),
    CALL(clock_nanosleep),
    CALL(clone),
    CALL(clone3),
    CALL(close),
    CALL(close_range),
    CALL(dup2),
    CALL(execve),
    CALL(exit),
    CALL(exit_group),
    CALL(fallocate),
    CALL(fcntl),
    CALL(flock),
    CALL(fstat),
    CALL(ftruncate),
    CALL(futex),
    CALL(get_mempolicy),
    CALL(getcwd),
    CALL(getdents64),
    CALL(getpid),
    CALL(getrandom),
    CALL(getrusage),
    CALL(gettid),
    CALL(ioctl),
    CALL(lseek),
    CALL(madvise),
    CALL(mbind),
    CALL(membarrier),
    CALL(memfd_create),
    CALL(mmap),
    CALL(move_pages),
    CALL(mprotect),
    CALL(mremap),
    CALL(munmap),
    CALL(newfstatat),
    CALL(open),
    CALL(openat),
    CALL(perf_event_open),
    CALL(poll),
    CALL(prctl),
    CALL(pread64),
    CALL(prlimit64),
    CALL(read),
    CALL(readlink),
    CALL(rseq),
    CALL(rt_sigaction),
    CALL(rt_sigpending),
    CALL(rt_sigprocmask),
    CALL(rt_sigtimedwait),
    CALL(sched_getaffinity),
    CALL(sched_setaffinity),
    CALL(sched_yield),
    CALL(set_mempolicy),
    CALL(set_robust_list),
    CALL(set_tid_address),
    CALL(uname),
    CALL(unlink),
    CALL(write),
};
#undef CALL

[[noreturn]] void give_up(const std::string& why, int status = kBroken) {
    std::fprintf(stderr, "refuse: %s\n", why.c_str());
    std::exit(status);
}

std::string name_of_call(int number) {
    for (const auto& [name, known] : kCalls)
        if (known == number) return std::string(name);
    return std::to_string(number);
}

int number_of_call(std::string_view wanted) {
    if (wanted == "query_pages") return SYS_move_pages;
    for (const auto& [name, number] : kCalls)
        if (name == wanted) return number;
    give_up("no such call: " + std::string(wanted));
}

int number_of_error(std::string_view wanted) {
    for (int error = 1; error < 134; ++error) {
        const char* name = strerrorname_np(error);
        if (name != nullptr && wanted == name) return error;
    }
    give_up("no such error: " + std::string(wanted));
}

struct Rule {
    enum class Kind { kError, kShort, kStatuses, kUntouched, kLeft, kHalf };

    std::string text;
    std::string thread;
    std::string call_name;
    int call = 0;
    uint64_t first = 1, last = UINT64_MAX, step = 1;
    Kind kind = Kind::kError;
    long number = 0;    // of the error, or of pages left behind
    uint64_t seen = 0, refused = 0;

    bool is_due() const { return seen >= first && seen <= last && (seen - first) % step == 0; }
};

void read_when(std::string_view when, Rule& rule) {
    if (when == "every") return;
    if (when == "odd") {
        rule.step = 2;
        return;
    }
    if (when == "first") when = "1";
    rule.first = std::strtoull(std::string(when).c_str(), nullptr, 10);
    if (rule.first == 0) give_up("no such time: " + std::string(when));
    if (when.back() != '+') rule.last = rule.first;
}

void read_answer(std::string_view answer, Rule& rule) {
    constexpr std::string_view kStatuses = "statuses:", kLeft = "left:";
    const auto is = [&](Rule::Kind kind, long number) { rule.kind = kind, rule.number = number; };
    if (answer == "short") return is(Rule::Kind::kShort, 0);
    if (answer == "untouched") return is(Rule::Kind::kUntouched, 0);
    if (answer == "half") return is(Rule::Kind::kHalf, 0);
    if (answer.starts_with(kStatuses))
        return is(Rule::Kind::kStatuses, number_of_error(answer.substr(kStatuses.size())));
    if (answer.starts_with(kLeft))
        return is(Rule::Kind::kLeft, std::atol(std::string(answer.substr(kLeft.size())).c_str()));
    is(Rule::Kind::kError, number_of_error(answer));
}

Rule read_rule(std::string_view text) {
    const size_t slash = text.find('/'), colon = text.find(':'), equals = text.find('=');
    if (slash == std::string_view::npos || colon == std::string_view::npos || equals == std::string_view::npos)
        give_up("not THREAD/CALL:WHEN=ANSWER: " + std::string(text));
    Rule rule;
    rule.text = text;
    rule.thread = text.substr(0, slash);
    rule.call_name = text.substr(slash + 1, colon - slash - 1);
    rule.call = number_of_call(rule.call_name);
    read_when(text.substr(colon + 1, equals - colon - 1), rule);
    read_answer(text.substr(equals + 1), rule);
    return rule;
}

struct Options {
    std::vector<Rule> rules;
    bool list = false;
    std::string log;
    char** command = nullptr;
};

Options read_options(int count, char** arguments) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string_view argument = arguments[i];
        if (argument == "--") {
            options.command = arguments + i + 1;
            break;
        }
        if (argument == "--list")
            options.list = true;
        else if (argument == "--log" && i + 1 < count)
            options.log = arguments[++i];
        else
            options.rules.push_back(read_rule(argument));
    }
    if (options.command == nullptr || options.command[0] == nullptr)
        give_up("usage: refuse [--log FILE] RULE... -- COMMAND...", 2);
    return options;
}

// Calls that rules name go to the supervisor, all when they are listed; exit_group never, as nobody answers it.
std::vector<sock_filter> make_filter(const Options& options) {
    std::vector<sock_filter> filter{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    for (const Rule& rule : options.rules) {
        filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(rule.call), 0, 1));
        filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
    }
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, options.list ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW));
    return filter;
}

struct Child {
    pid_t pid;
    int listener;
};

// The child shares the descriptor table until it executes the command, so that the listener is in both without another
// call: every one might be among those that wait for the supervisor.
Child start(const Options& options) {
    const std::vector<sock_filter> filter = make_filter(options);
    const sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
    void* shared = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) give_up("no memory");
    auto* listener = new (shared) std::atomic<int>(-1);
    const auto pid = static_cast<pid_t>(syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0));
    if (pid < 0) give_up("no process");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        const long made = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
        *listener = made < 0 ? -1 - errno : static_cast<int>(made);
        if (made >= 0) execvp(options.command[0], options.command);
        _exit(kBroken);
    }
    for (int patience = 0; *listener == -1 && patience < 100000; ++patience) usleep(100);
    if (*listener < 0)
        give_up("this kernel lets nobody supervise calls: " + std::string(strerrordesc_np(-1 - *listener)),
                kCannotHere);
    return {pid, *listener};
}

std::string thread_name(int tid) {
    std::ifstream file("/proc/" + std::to_string(tid) + "/comm");
    std::string name;
    std::getline(file, name);
    return name;
}

bool copy_out(int tid, uint64_t to, const void* from, size_t bytes) {
    const iovec here{const_cast<void*>(from), bytes}, there{reinterpret_cast<void*>(to), bytes};
    return process_vm_writev(tid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

bool copy_in(int tid, void* to, uint64_t from, size_t bytes) {
    const iovec here{to, bytes}, there{reinterpret_cast<void*>(from), bytes};
    return process_vm_readv(tid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

// What the caller gets: the call itself when empty, else a value or -errno.
using Answer = std::optional<long>;

// Our copy of a descriptor of one thread, which may have a descriptor table of its own.
int copy_of_descriptor(int tid, int descriptor) {
    const auto thread = static_cast<int>(syscall(SYS_pidfd_open, tid, kPidfdThread));
    if (thread < 0) give_up("descriptors of single threads need Linux 6.9", kCannotHere);
    const auto copy = static_cast<int>(syscall(SYS_pidfd_getfd, thread, descriptor, 0));
    close(thread);
    return copy;
}

Answer make_short(const seccomp_notif& call) {
    const int descriptor = copy_of_descriptor(static_cast<int>(call.pid), static_cast<int>(call.data.args[0]));
    if (descriptor < 0) return {};
    char bytes[kShortListing];
    const bool lists = call.data.nr == SYS_getdents64;
    const size_t wanted = std::min<size_t>(call.data.args[2], lists ? sizeof bytes : kShortBytes);
    const auto tid = static_cast<int>(call.pid);
    long done = -EFAULT;
    if (call.data.nr == SYS_write) {
        if (copy_in(tid, bytes, call.data.args[1], wanted)) done = write(descriptor, bytes, wanted);
    } else {
        done = lists ? syscall(SYS_getdents64, descriptor, bytes, wanted) : read(descriptor, bytes, wanted);
        if (done > 0 && !copy_out(tid, call.data.args[1], bytes, static_cast<size_t>(done))) done = -EFAULT;
    }
    close(descriptor);
    return done;
}

Answer write_statuses(const seccomp_notif& call, long error) {
    const std::vector<int> statuses(call.data.args[1], static_cast<int>(-error));
    if (!copy_out(static_cast<int>(call.pid), call.data.args[4], statuses.data(), statuses.size() * sizeof(int)))
        return {};
    return 0;
}

Answer move_half(const seccomp_notif& call) {
    const size_t pages = call.data.args[1], half = pages / 2;
    std::vector<uint64_t> addresses(pages);
    std::vector<int> nodes(pages), statuses(pages);
    const auto tid = static_cast<int>(call.pid);
    if (!copy_in(tid, addresses.data(), call.data.args[2], pages * sizeof(uint64_t))) return {};
    if (!copy_in(tid, nodes.data(), call.data.args[3], pages * sizeof(int))) return {};
    if (syscall(SYS_move_pages, tid, half, addresses.data(), nodes.data(), statuses.data(), call.data.args[5]) < 0)
        return {};
    return static_cast<long>(pages - half);
}

Answer answer_of(const Rule& rule, const seccomp_notif& call) {
    switch (rule.kind) {
        case Rule::Kind::kError:
            return -rule.number;
        case Rule::Kind::kShort:
            return make_short(call);
        case Rule::Kind::kStatuses:
            return write_statuses(call, rule.number);
        case Rule::Kind::kUntouched:
            return 0;
        case Rule::Kind::kLeft:
            return rule.number;
        case Rule::Kind::kHalf:
            return move_half(call);
    }
    return {};
}

class Supervisor {
public:
    explicit Supervisor(Options& options) : options_(options) {}

    // Until the child has ended; its wait status.
    int run(const Child& child);
    void write_log() const;

private:
    bool answer_one(int listener);
    Answer judge(const seccomp_notif& call);

    Options& options_;
    std::map<std::string, std::map<std::string, uint64_t>> calls_;    // of each thread name
};

Answer Supervisor::judge(const seccomp_notif& call) {
    const std::string thread = thread_name(static_cast<int>(call.pid));
    const bool asks = call.data.nr == SYS_move_pages && call.data.args[3] == 0;
    const std::string name = asks ? "query_pages" : name_of_call(call.data.nr);
    if (options_.list) ++calls_[thread][name];
    for (Rule& rule : options_.rules) {
        if (rule.call_name != name || (rule.thread != "any" && rule.thread != thread)) continue;
        ++rule.seen;
        if (!rule.is_due()) continue;
        const Answer answer = answer_of(rule, call);
        rule.refused += answer.has_value();
        return answer;
    }
    return {};
}

bool Supervisor::answer_one(int listener) {
    seccomp_notif call{};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return errno == EINTR || errno == ENOENT;
    seccomp_notif_resp response{};
    response.id = call.id;
    const Answer answer = judge(call);
    if (!answer)
        response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    else if (*answer < 0)
        response.error = static_cast<int>(*answer);
    else
        response.val = *answer;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);    // ENOENT: the thread has ended meanwhile
    return true;
}

int Supervisor::run(const Child& child) {
    pollfd files[2] = {{child.listener, POLLIN, 0},
                       {static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0)), POLLIN, 0}};
    if (files[1].fd < 0) give_up("pidfd_open is refused here", kCannotHere);
    bool ended = false;
    while (!ended) {
        if (poll(files, 2, -1) < 0) continue;
        if ((files[0].revents & POLLIN) != 0 && !answer_one(child.listener)) give_up("the listener is broken");
        if ((files[0].revents & (POLLHUP | POLLERR)) != 0) files[0].fd = -1;
        ended = files[1].revents != 0;
    }
    int status = 0;
    waitpid(child.pid, &status, 0);
    return status;
}

void Supervisor::write_log() const {
    if (options_.log.empty()) return;
    std::ofstream out(options_.log);
    out << "{\"rules\":[";
    const char* comma = "";
    for (const Rule& rule : options_.rules) {
        out << comma << "{\"rule\":\"" << rule.text << "\",\"seen\":" << rule.seen << ",\"refused\":" << rule.refused
            << "}";
        comma = ",";
    }
    out << "],\"calls\":{";
    comma = "";
    for (const auto& [thread, counts] : calls_) {
        out << comma << "\"" << thread << "\":{";
        comma = "";
        for (const auto& [name, count] : counts) out << std::exchange(comma, ",") << "\"" << name << "\":" << count;
        out << "}";
        comma = ",";
    }
    out << "}}\n";
}

}    // namespace

int main(int count, char** arguments) {
    Options options = read_options(count, arguments);
    Supervisor supervisor(options);
    const int status = supervisor.run(start(options));
    supervisor.write_log();
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
