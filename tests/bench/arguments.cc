// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/arguments.h"

#include <getopt.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <fmt/core.h>

namespace tier_bench {
namespace {

constexpr double kMost = 0x1p62;    // above any size or count, below what a cast to uint64_t takes

std::optional<uint64_t> parse_scaled(const char* text, uint64_t kilo) {
    char* end = nullptr;
    double value = std::strtod(text, &end);
    if (end == text) return std::nullopt;
    if (*end != 0) {
        uint64_t scale = 1;
        for (const char suffix : {'K', 'M', 'G'}) {
            scale *= kilo;
            if (*end == suffix) value *= static_cast<double>(scale);
        }
        const bool is_suffix = *end == 'K' || *end == 'M' || *end == 'G';
        if (!is_suffix || end[1] != 0) return std::nullopt;
    }
    if (!(value >= 0 && value < kMost)) return std::nullopt;
    return static_cast<uint64_t>(value);
}

// As a user would write it: 134217728 is 128M.
std::string scaled(uint64_t value, uint64_t kilo) {
    const char* suffix = "";
    for (const char* next : {"K", "M", "G"}) {
        if (value == 0 || value % kilo != 0) break;
        value /= kilo;
        suffix = next;
    }
    return fmt::format("{}{}", value, suffix);
}

}    // namespace

void Arguments::text(const char* name, std::string values, std::string now, std::function<bool(const char*)> take,
                     const char* help) {
    settings_.push_back({Kind::kValue, name, std::move(values), std::move(now), std::move(take), help});
}

void Arguments::bytes(const char* name, uint64_t& out, const char* help) {
    const auto take = [&out](const char* given) {
        const auto value = parse_scaled(given, 1024);
        if (value) out = *value;
        return value.has_value();
    };
    text(name, "SIZE", scaled(out, 1024), take, help);
}

void Arguments::count(const char* name, uint64_t& out, const char* help) {
    const auto take = [&out](const char* given) {
        const auto value = parse_scaled(given, 1000);
        if (value) out = *value;
        return value.has_value();
    };
    text(name, "COUNT", scaled(out, 1000), take, help);
}

void Arguments::integer(const char* name, int& out, int least, const char* help) {
    const auto take = [&out, least](const char* given) {
        char* end = nullptr;
        const long value = std::strtol(given, &end, 10);
        if (end == given || *end != 0 || value < least || value > 1'000'000) return false;
        out = static_cast<int>(value);
        return true;
    };
    text(name, "N", std::to_string(out), take, help);
}

void Arguments::real(const char* name, double& out, const char* help) {
    const auto take = [&out](const char* given) {
        char* end = nullptr;
        const double value = std::strtod(given, &end);
        if (end == given || *end != 0 || !std::isfinite(value) || value < 0) return false;
        out = value;
        return true;
    };
    text(name, "X", fmt::format("{}", out), take, help);
}

void Arguments::flag(const char* name, bool& out, const char* help) {
    const auto take = [&out](const char*) { return out = true; };
    settings_.push_back({Kind::kFlag, name, "", "", take, help});
}

void Arguments::question(const char* name, std::function<std::string()> answer, const char* help) {
    const auto take = [answer = std::move(answer)](const char*) {
        fmt::print("{}\n", answer());
        return true;
    };
    settings_.push_back({Kind::kQuestion, name, "", "", take, help});
}

void Arguments::print_help() const {
    fmt::print("{}: {}\n", program_, purpose_);
    for (const Setting& setting : settings_) {
        const std::string now = setting.now.empty() ? "" : fmt::format(" (default {})", setting.now);
        fmt::print("  --{:<32} {}{}\n", fmt::format("{} {}", setting.name, setting.values), setting.help, now);
    }
    fmt::print(
        "K, M, G are powers of 1024 for sizes and of 1000 for counts. One JSON object on stdout. Exit status: 0 done, "
        "1 memory or\na CPU could not be had, 2 usage.\n");
}

Parsed Arguments::parse(int argc, char** argv) const {
    std::vector<option> rows;
    for (const Setting& setting : settings_)
        rows.push_back({setting.name, setting.kind == Kind::kValue ? required_argument : no_argument, nullptr, 0});
    rows.push_back({"help", no_argument, nullptr, 0});
    rows.push_back({nullptr, 0, nullptr, 0});
    for (int which = 0, letter = 0; (letter = getopt_long(argc, argv, "", rows.data(), &which)) != -1;) {
        if (letter == '?') return Parsed::kUsageError;    // getopt has said why
        if (static_cast<size_t>(which) == settings_.size()) {
            print_help();
            return Parsed::kDone;
        }
        const Setting& setting = settings_[static_cast<size_t>(which)];
        if (!setting.take(optarg)) {
            fmt::print(stderr, "{}: --{}: cannot use '{}', wanted: {}\n", program_, setting.name, optarg,
                       setting.values);
            return Parsed::kUsageError;
        }
        if (setting.kind == Kind::kQuestion) return Parsed::kDone;
    }
    if (optind != argc) {
        fmt::print(stderr, "{}: what is '{}'? (--help)\n", program_, argv[optind]);
        return Parsed::kUsageError;
    }
    for (const auto& wrong : rules_) {
        const char* text = wrong();
        if (text == nullptr) continue;
        fmt::print(stderr, "{}: {}\n", program_, text);
        return Parsed::kUsageError;
    }
    return Parsed::kRun;
}

}    // namespace tier_bench
