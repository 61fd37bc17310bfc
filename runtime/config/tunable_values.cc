// SPDX-License-Identifier: Apache-2.0
#include "runtime/config/tunable_values.h"

#include <fmt/compile.h>

#include <charconv>
#include <limits>
#include <optional>

#include "runtime/config/job_name.h"
#include "runtime/config/text.h"

namespace pghot {
namespace {

constexpr int kNotAChoice = -1;

constexpr std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

// Takes the decimal digits at the front of `text`. Nothing without a digit, or beyond 64 bits.
std::optional<uint64_t> take_number(std::string_view& text) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return {};
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return number;
}

// What the letters after a number multiply it by: K M G T (or k m g t), alone or with B or iB, are powers of 1024.
std::optional<uint64_t> size_factor(std::string_view suffix) {
    if (suffix.empty() || suffix == "B") return 1;
    const std::string_view rest = tail(suffix, 1);
    if (!rest.empty() && rest != "B" && rest != "iB") return {};
    switch (suffix.front()) {
        case 'K':
        case 'k':
            return uint64_t{1} << 10;
        case 'M':
        case 'm':
            return uint64_t{1} << 20;
        case 'G':
        case 'g':
            return uint64_t{1} << 30;
        case 'T':
        case 't':
            return uint64_t{1} << 40;
        default:
            return {};
    }
}

std::optional<uint64_t> factor_of(std::string_view suffix, std::string_view unit) {
    if (unit == "bytes") return size_factor(suffix);
    if (suffix.empty()) return 1;
    if (unit != "ms") return {};
    if (suffix == "ms") return 1;
    if (suffix == "s") return 1000;
    return {};
}

std::optional<uint64_t> read_number(std::string_view text, std::string_view unit) {
    text = trimmed(text);
    const auto number = take_number(text);
    if (!number) return {};
    const auto factor = factor_of(trimmed(text), unit);
    if (!factor || *number > std::numeric_limits<uint64_t>::max() / *factor) return {};
    return *number * *factor;
}

// "1", "0.5", "2.5%": at most one digit after the point.
std::optional<uint32_t> read_tenths(std::string_view text) {
    const auto whole = take_number(text);
    if (!whole || *whole > 1000000) return {};
    auto tenths = static_cast<uint32_t>(*whole * 10);
    if (text.size() >= 2 && text[0] == '.' && text[1] >= '0' && text[1] <= '9') {
        tenths += static_cast<uint32_t>(text[1] - '0');
        text.remove_prefix(2);
    }
    if (text == "%") text.remove_prefix(1);
    if (!text.empty()) return {};
    return tenths;
}

// "FIRST-LAST" of tunables.def, with " step N" behind or "0 or " before it.
struct Range {
    uint64_t first = 0;
    uint64_t last = 0;
    uint64_t step = 1;
    bool or_zero = false;
    bool contains(uint64_t number) const {
        if (number == 0 && or_zero) return true;
        return number >= first && number <= last && number % step == 0;
    }
};

std::optional<Range> parse_range(Domain domain) {
    constexpr std::string_view kStep = " step ";
    constexpr std::string_view kOrZero = "0 or ";
    std::string_view text = domain.range;
    const bool or_zero = text.starts_with(kOrZero);
    if (or_zero) text = tail(text, kOrZero.size());
    uint64_t step = 1;
    if (const size_t at = text.find(kStep); at != text.npos) {
        step = read_number(tail(text, at + kStep.size()), "").value_or(1);
        text = head(text, at);
    }
    const size_t dash = text.find('-');
    if (dash == text.npos) return {};
    const auto first = read_number(head(text, dash), domain.unit);
    const auto last = read_number(tail(text, dash + 1), domain.unit);
    if (!first || !last) return {};
    return Range{*first, *last, step, or_zero};
}

template <typename Number>
bool read_in_range(std::string_view text, Domain domain, Number& value) {
    const auto number = read_number(text, domain.unit);
    const auto range = parse_range(domain);
    if (!number || !range || !range->contains(*number)) return false;
    if (*number > std::numeric_limits<Number>::max()) return false;
    value = static_cast<Number>(*number);
    return true;
}

// Index of `text` among a|b|c, or kNotAChoice.
int choice_of(std::string_view text, std::string_view choices) {
    text = trimmed(text);
    for (int index = 0;; ++index) {
        const size_t bar = choices.find('|');
        if (head(choices, bar) == text) return index;
        if (bar == choices.npos) return kNotAChoice;
        choices.remove_prefix(bar + 1);
    }
}

std::string_view choice_name(unsigned index, std::string_view choices) {
    for (; index > 0; --index) choices = tail(choices, choices.find('|') + 1);
    return head(choices, choices.find('|'));
}

template <typename Choice>
bool read_choice(std::string_view text, Domain domain, Choice& value) {
    const int index = choice_of(text, domain.range);
    if (index == kNotAChoice) return false;
    value = static_cast<Choice>(index);
    return true;
}

// Takes the text up to the next comma, without blanks around it.
std::string_view take_item(std::string_view& list) {
    const size_t comma = list.find(',');
    const std::string_view item = trimmed(head(list, comma));
    list = tail(list, comma == list.npos ? list.size() : comma + 1);
    return item;
}

// One item "5" or "2-4" of a list.
template <size_t kBits>
bool insert_item(std::string_view item, NumberSet<kBits>& set) {
    const auto first = take_number(item);
    auto last = first;
    if (!item.empty()) {
        if (item.front() != '-') return false;
        item.remove_prefix(1);
        last = take_number(item);
    }
    if (!first || !last || !item.empty() || *first > *last || *last >= kBits) return false;
    for (uint64_t number = *first; number <= *last; ++number) set.insert(number);
    return true;
}

template <size_t kBits>
bool read_set(std::string_view text, NumberSet<kBits>& value) {
    NumberSet<kBits> set;
    text = trimmed(text);
    if (text.empty() || text.back() == ',') return false;
    while (!text.empty())
        if (!insert_item(take_item(text), set)) return false;
    value = set;
    return true;
}

std::optional<SourceKind> source_of(std::string_view name) {
    if (name == "ibs") return SourceKind::kIbs;
    if (name == "none") return SourceKind::kNone;
    return {};
}

bool read_replay(std::string_view file, SourceList& value) {
    SourceList list;
    list.order[0] = SourceKind::kReplay;
    list.count = 1;
    if (file.empty() || !list.replay_file.assign(file)) return false;
    value = list;
    return true;
}

std::string_view source_name(SourceKind kind) {
    switch (kind) {
        case SourceKind::kIbs:
            return "ibs";
        case SourceKind::kHintFaults:
            return "hintfaults";
        case SourceKind::kReplay:
            return "replay";
        case SourceKind::kNone:
            break;
    }
    return "none";
}

std::string_view copied(std::span<char> storage, std::string_view text) {
    const size_t size = text.size() < storage.size() ? text.size() : storage.size();
    for (size_t i = 0; i < size; ++i) storage[i] = text[i];
    return {storage.data(), size};
}

std::string_view formatted(std::span<char> storage, uint64_t number, std::string_view suffix) {
    const auto end = fmt::format_to_n(storage.data(), storage.size(), FMT_COMPILE("{}{}"), number, suffix);
    return {storage.data(), end.size < storage.size() ? end.size : storage.size()};
}

// Writes "2-4,8" item by item; a list that does not fit ends in "..." rather than in half a number.
template <size_t kBits>
std::string_view write_set(std::span<char> storage, const NumberSet<kBits>& set) {
    constexpr std::string_view kMore = "...";
    constexpr size_t kItemBytes = 2 * 20 + 2;    // two 64-bit numbers, a dash, a comma
    size_t used = 0;
    for (size_t first = 0; first < kBits; ++first) {
        if (!set.contains(first)) continue;
        if (storage.size() - used < kItemBytes + kMore.size()) {
            used += copied(storage.subspan(used), kMore).size();
            break;
        }
        size_t last = first;
        while (set.contains(last + 1)) ++last;
        if (used > 0) storage[used++] = ',';
        used += formatted(storage.subspan(used), first, "").size();
        if (last > first) {
            storage[used++] = '-';
            used += formatted(storage.subspan(used), last, "").size();
        }
        first = last;
    }
    return {storage.data(), used};
}

}    // namespace

bool read_value(std::string_view text, Domain domain, bool& value) { return read_choice(text, domain, value); }
bool read_value(std::string_view text, Domain domain, uint32_t& value) { return read_in_range(text, domain, value); }
bool read_value(std::string_view text, Domain domain, uint64_t& value) { return read_in_range(text, domain, value); }
bool read_value(std::string_view text, Domain domain, Mode& value) { return read_choice(text, domain, value); }
bool read_value(std::string_view text, Domain domain, Scope& value) { return read_choice(text, domain, value); }

bool read_value(std::string_view text, Domain, Target& value) {
    text = trimmed(text);
    if (text == "caller") return value = Target{Target::Kind::kCaller, kNoNode}, true;
    if (text == "alternate") return value = Target{Target::Kind::kAlternate, kNoNode}, true;
    const auto number = read_number(text, "");
    if (!number || *number >= kMaxNodes) return false;
    value = Target{Target::Kind::kNode, NodeId{static_cast<int16_t>(*number)}};
    return true;
}

bool read_value(std::string_view text, Domain, SourceList& value) {
    constexpr std::string_view kReplay = "replay:";
    text = trimmed(text);
    if (text.starts_with(kReplay)) return read_replay(tail(text, kReplay.size()), value);
    if (text.empty() || text.back() == ',') return false;
    SourceList list;
    list.count = 0;
    while (!text.empty()) {
        const auto kind = source_of(take_item(text));
        if (!kind || list.count == list.order.size()) return false;
        list.order[list.count++] = *kind;
    }
    value = list;
    return true;
}

bool read_value(std::string_view text, Domain, NodeMask& value) { return read_set(text, value); }
bool read_value(std::string_view text, Domain, CpuMask& value) { return read_set(text, value); }
bool read_value(std::string_view text, Domain, PathText& value) { return value.assign(text); }

bool read_value(std::string_view text, Domain, JobText& value) {
    text = trimmed(text);
    return is_job_name(text) && value.assign(text);
}

bool read_value(std::string_view text, Domain domain, Percent& value) {
    const size_t dash = domain.range.find('-');
    const auto first = read_tenths(head(domain.range, dash));
    const auto last = read_tenths(tail(domain.range, dash + 1));
    const auto tenths = read_tenths(trimmed(text));
    if (!tenths || !first || !last || *tenths < *first || *tenths > *last) return false;
    value = Percent{*tenths};
    return true;
}

std::string_view write_value(std::span<char> storage, Domain, bool value) { return copied(storage, value ? "1" : "0"); }

std::string_view write_value(std::span<char> storage, Domain domain, uint32_t value) {
    return write_value(storage, domain, uint64_t{value});
}

std::string_view write_value(std::span<char> storage, Domain domain, uint64_t value) {
    constexpr std::array<std::string_view, 5> kSuffix{"", "K", "M", "G", "T"};
    size_t power = 0;
    while (domain.unit == "bytes" && value != 0 && value % 1024 == 0 && power + 1 < kSuffix.size()) {
        value /= 1024;
        ++power;
    }
    return formatted(storage, value, kSuffix[power]);
}

std::string_view write_value(std::span<char> storage, Domain domain, Mode value) {
    return copied(storage, choice_name(static_cast<unsigned>(value), domain.range));
}

std::string_view write_value(std::span<char> storage, Domain domain, Scope value) {
    return copied(storage, choice_name(static_cast<unsigned>(value), domain.range));
}

std::string_view write_value(std::span<char> storage, Domain, const Target& value) {
    switch (value.kind) {
        case Target::Kind::kCaller:
            return copied(storage, "caller");
        case Target::Kind::kAlternate:
            return copied(storage, "alternate");
        case Target::Kind::kNode:
            break;
    }
    return formatted(storage, static_cast<uint64_t>(value.node.value), "");
}

std::string_view write_value(std::span<char> storage, Domain, const SourceList& value) {
    size_t used = 0;
    for (SourceKind kind : value.view()) {
        if (used > 0) used += copied(storage.subspan(used), ",").size();
        used += copied(storage.subspan(used), source_name(kind)).size();
        if (kind != SourceKind::kReplay) continue;
        used += copied(storage.subspan(used), ":").size();
        used += copied(storage.subspan(used), value.replay_file.view()).size();
    }
    return {storage.data(), used};
}

std::string_view write_value(std::span<char> storage, Domain, const NodeMask& value) {
    return write_set(storage, value);
}
std::string_view write_value(std::span<char> storage, Domain, const CpuMask& value) {
    return write_set(storage, value);
}
std::string_view write_value(std::span<char> storage, Domain, const PathText& value) {
    return copied(storage, value.view());
}
std::string_view write_value(std::span<char> storage, Domain, const JobText& value) {
    return copied(storage, value.view());
}

std::string_view write_value(std::span<char> storage, Domain, Percent value) {
    constexpr std::array<std::string_view, 10> kTenths{"", ".1", ".2", ".3", ".4", ".5", ".6", ".7", ".8", ".9"};
    return formatted(storage, value.tenths / 10, kTenths[value.tenths % 10]);
}

}    // namespace pghot
