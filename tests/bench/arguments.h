// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace tier_bench {

enum class Parsed { kRun, kDone, kUsageError };

// The command line of one program: --name VALUE pairs and flags, declared by the code that uses them. A setting's
// default is what its variable holds when it is declared; help text and parser are made from the same rows. The
// variables must outlive the object. One thread.
class Arguments {
public:
    // `purpose` is one line for --help.
    Arguments(std::string program, std::string purpose) : program_(std::move(program)), purpose_(std::move(purpose)) {}

    void bytes(const char* name, uint64_t& out, const char* help);    // K, M, G are powers of 1024
    void count(const char* name, uint64_t& out, const char* help);    // K, M, G are powers of 1000
    void integer(const char* name, int& out, int least, const char* help);
    void real(const char* name, double& out, const char* help);    // not negative
    void flag(const char* name, bool& out, const char* help);
    // Prints `text()` and ends: --model.
    void question(const char* name, std::function<std::string()> text, const char* help);
    // A value that `take` can read; false when it cannot. `values` says what it takes, `now` the default.
    void text(const char* name, std::string values, std::string now, std::function<bool(const char*)> take,
              const char* help);

    template <typename Enum>
    void choice(const char* name, Enum& out, std::initializer_list<std::pair<const char*, Enum>> choices,
                const char* help) {
        std::string values, now;
        for (const auto& [text, value] : choices) {
            values += (values.empty() ? "" : "|") + std::string(text);
            if (value == out) now = text;
        }
        const std::vector<std::pair<std::string, Enum>> table(choices.begin(), choices.end());
        const auto take = [table, &out](const char* given) {
            for (const auto& [text, value] : table) {
                if (text != given) continue;
                out = value;
                return true;
            }
            return false;
        };
        text(name, values, now, take, help);
    }

    // A rule about several settings: `wrong` answers what is wrong, or null.
    void rule(std::function<const char*()> wrong) { rules_.push_back(std::move(wrong)); }

    // Reads argv. Prints help (kDone), or one line that names the setting and the value (kUsageError).
    Parsed parse(int argc, char** argv) const;

private:
    enum class Kind { kValue, kFlag, kQuestion };
    struct Setting {
        Kind kind;
        const char* name;
        std::string values;
        std::string now;
        std::function<bool(const char*)> take;
        const char* help;
    };
    void print_help() const;

    std::string program_;
    std::string purpose_;
    std::vector<Setting> settings_;
    std::vector<std::function<const char*()>> rules_;
};

}    // namespace tier_bench
