// SPDX-License-Identifier: Apache-2.0
#include "runtime/config/file_name.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "runtime/config/environment.h"

namespace pghot {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool fits_file_name(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
}

// A rank has at most nine digits everywhere; what is longer is not one and would make a strange file name.
bool is_rank(std::string_view text) {
    return !text.empty() && text.size() <= 9 && std::all_of(text.begin(), text.end(), is_digit);
}

// Appends within `storage`, keeping one byte for the terminator.
class FileName {
public:
    explicit FileName(std::span<char> storage) : storage_(storage) {}
    void add(char c) {
        if (size_ + 1 >= storage_.size()) {
            fits_ = false;
            return;
        }
        storage_[size_++] = c;
    }
    void add(std::string_view text) {
        for (char c : text) add(c);
    }
    void add_host(std::string_view host) {
        for (char c : host) add(fits_file_name(c) ? c : '_');
    }
    void add(int32_t number) {
        char digits[12];
        const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
        add(std::string_view(digits, static_cast<size_t>(end - digits)));
    }
    std::string_view finish() {
        if (!fits_ || storage_.empty()) return {};
        storage_[size_] = '\0';
        return {storage_.data(), size_};
    }

private:
    std::span<char> storage_;
    size_t size_ = 0;
    bool fits_ = true;
};

}    // namespace

std::string_view mpi_rank(const char* const* environment) {
    if (environment == nullptr) return {};
    for (std::string_view name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
        const std::string_view rank = environment_value(environment, name);
        if (is_rank(rank)) return rank;
    }
    return {};
}

std::string_view expand_file_name(std::string_view pattern, const FileNameParts& parts, std::span<char> storage) {
    FileName name(storage);
    for (size_t i = 0; i < pattern.size(); ++i) {
        const char code = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
        switch (code) {
            case 'p':
                name.add(parts.pid);
                break;
            case 'r':
                name.add(parts.rank.empty() ? std::string_view("0") : parts.rank);
                break;
            case 'h':
                name.add_host(parts.host);
                break;
            case '%':
                name.add('%');
                break;
            default:
                name.add(pattern[i]);
                continue;
        }
        ++i;
    }
    return name.finish();
}

}    // namespace pghot
