// SPDX-License-Identifier: Apache-2.0
#include "runtime/config/job_name.h"

#include <fmt/compile.h>

#include <algorithm>
#include <charconv>

#include "runtime/config/environment.h"
#include "runtime/config/text.h"

namespace pghot {
namespace {

struct Launcher {
    std::string_view prefix;    // of the name, so that no two launchers' numbers meet
    std::string_view id;
    std::string_view step;    // second part of the identity; empty: there is none
    std::string_view size;    // processes of the launch; where it is missing it may be many
};
constexpr Launcher kLaunchers[] = {
    {"pmix.", "PMIX_NAMESPACE", "", "OMPI_COMM_WORLD_SIZE"},
    {"pals.", "PALS_APID", "", "PALS_SIZE"},
    {"flux.", "FLUX_JOB_ID", "", "FLUX_JOB_SIZE"},
    {"slurm.", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"},
};
constexpr uint64_t kFirstSpecialStep = 0xfffffff0;    // slurm.h: pending, extern, batch script, interactive

bool fits(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
           c == '-';
}

bool is_number(std::string_view text, uint64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

bool is_single(std::string_view size) {
    uint64_t number = 0;
    return is_number(size, number) && number <= 1;
}

// FNV-1a, 64 bits.
uint64_t hash_of(std::string_view text) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

// What a file name cannot hold becomes _, and what is too long keeps its beginning and the hash of all of it.
JobText name_of(std::string_view prefix, std::string_view id, std::string_view step) {
    constexpr size_t kHashBytes = 17;
    char text[2 * kSettingTextBytes];
    const std::string_view point(step.empty() ? "" : ".");
    const auto all = fmt::format_to_n(text, sizeof text, FMT_COMPILE("{}{}{}{}"), prefix, id, point, step);
    const std::string_view whole(text, std::min(all.size, sizeof text));
    char clean[sizeof JobText{}.data];
    constexpr size_t kRoom = sizeof clean - 1;
    size_t used = whole.size() > kRoom ? kRoom - kHashBytes : whole.size();
    std::transform(text, text + used, clean, [](char c) { return fits(c) ? c : '_'; });
    if (whole.size() > kRoom) {
        clean[used++] = '.';
        used = static_cast<size_t>(std::to_chars(clean + used, clean + kRoom, hash_of(whole), 16).ptr - clean);
    }
    JobText name;
    name.assign({clean, used});
    return name;
}

JobText job_of(const Launcher& launcher, const char* const* environment) {
    const std::string_view id = environment_value(environment, launcher.id);
    if (id.empty() || is_single(environment_value(environment, launcher.size))) return {};
    if (launcher.step.empty()) return name_of(launcher.prefix, id, {});
    const std::string_view step = environment_value(environment, launcher.step);
    uint64_t number = 0;
    if (!is_number(step, number) || number >= kFirstSpecialStep) return {};
    return name_of(launcher.prefix, id, step);
}

}    // namespace

JobText job_of_launcher(const char* const* environment, FunctionRef<int32_t()> parent) {
    if (environment == nullptr) return {};
    for (const Launcher& launcher : kLaunchers)
        if (const JobText name = job_of(launcher, environment); !name.empty()) return name;
    const std::string_view size = environment_value(environment, "PMI_SIZE");
    if (environment_value(environment, "PMI_RANK").empty() || size.empty() || is_single(size)) return {};
    char digits[16];
    const auto end = std::to_chars(digits, digits + sizeof digits, parent()).ptr;
    return name_of("pmi.", {digits, static_cast<size_t>(end - digits)}, {});
}

bool is_job_name(std::string_view text) {
    return !text.empty() && text.size() < sizeof JobText{}.data && text.front() != '.' &&
           std::all_of(text.begin(), text.end(), fits);
}

}    // namespace pghot
