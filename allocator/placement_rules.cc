// SPDX-License-Identifier: Apache-2.0
#include "allocator/placement_rules.h"

#include <algorithm>

#include "runtime/base/topology.h"

namespace pghot {

uint64_t PlacementRules::smallest_rule_bytes() const {
    uint64_t smallest = UINT64_MAX;
    for (const SizeRule& rule : all_size_rules()) smallest = std::min(smallest, rule.at_least_bytes);
    return smallest;
}

uint8_t PlacementRules::placement_for(uint64_t usable_bytes) const {
    for (const SizeRule& rule : all_size_rules())
        if (usable_bytes >= rule.at_least_bytes) return rule.placement;
    return 0;
}

namespace {

// Reads a text from front to back; spaces between tokens do not matter. The first problem stays.
class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}

    bool at_end() {
        skip_spaces();
        return at_ == text_.size();
    }
    bool at_rule_end() { return at_end() || text_[at_] == ';'; }

    bool take(std::string_view token) {
        skip_spaces();
        std::string_view rest = text_;
        rest.remove_prefix(at_);
        if (!rest.starts_with(token)) return false;
        at_ += token.size();
        return true;
    }

    // A word that ends where the text does, or before something that no word contains.
    bool take_word(std::string_view word) {
        const size_t before = at_;
        if (take(word) && (at_ == text_.size() || !is_letter(text_[at_]))) return true;
        at_ = before;
        return false;
    }

    bool at_digit() {
        skip_spaces();
        return at_ < text_.size() && is_digit(text_[at_]);
    }

    // False when there are no digits or the value does not fit.
    bool take_number(uint64_t& value) {
        if (!at_digit()) return false;
        value = 0;
        for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
            const uint64_t digit = static_cast<uint64_t>(text_[at_] - '0');
            if (value > (UINT64_MAX - digit) / 10) return false;
            value = value * 10 + digit;
        }
        return true;
    }

    PlacementTextError error(const char* problem) { return error_at(problem, position()); }
    static PlacementTextError error_at(const char* problem, size_t position) { return {problem, position}; }
    size_t position() {
        skip_spaces();
        return at_;
    }

private:
    static bool is_digit(char c) { return c >= '0' && c <= '9'; }
    static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
    void skip_spaces() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    }

    std::string_view text_;
    size_t at_ = 0;
};

constexpr PlacementTextError kNoError{};

PlacementTextError read_size(Reader& reader, uint64_t& bytes) {
    const size_t begin = reader.position();
    if (!reader.take_number(bytes)) return Reader::error_at("write a size, for example size>=256M", begin);
    unsigned shift = 0;
    if (reader.take("K"))
        shift = 10;
    else if (reader.take("M"))
        shift = 20;
    else if (reader.take("G"))
        shift = 30;
    else if (reader.take("T"))
        shift = 40;
    if (bytes > (UINT64_MAX >> shift)) return Reader::error_at("write a size below 2^64 bytes", begin);
    bytes <<= shift;
    if (bytes < kMinRuleBytes) return Reader::error_at("write a size of at least 64K", begin);
    return kNoError;
}

PlacementTextError read_node(Reader& reader, uint64_t& node) {
    const size_t begin = reader.position();
    if (reader.take_number(node) && node < kMaxNodes) return kNoError;
    return Reader::error_at("write a node number from 0 to 63", begin);
}

PlacementTextError read_node_range(Reader& reader, uint64_t& nodes) {
    const size_t begin = reader.position();
    uint64_t first = 0, last = 0;
    if (auto error = read_node(reader, first); error.problem != nullptr) return error;
    last = first;
    if (reader.take("-"))
        if (auto error = read_node(reader, last); error.problem != nullptr) return error;
    if (last < first) return Reader::error_at("write the lower node first", begin);
    for (uint64_t node = first; node <= last; ++node) nodes |= uint64_t{1} << node;
    return kNoError;
}

PlacementTextError read_attribute(Reader& reader, Placement& placement) {
    if (reader.take_word("pinned"))
        placement.pinned = true;
    else if (reader.take_word("movable"))
        placement.pinned = false;
    else
        return reader.error("write pinned or movable after the comma");
    return kNoError;
}

// What follows the name of the place: nodes of an interleave, attributes.
PlacementTextError read_rest(Reader& reader, Placement& placement, bool nodes_may_follow) {
    while (reader.take(",")) {
        const bool is_node = nodes_may_follow && reader.at_digit();
        nodes_may_follow = is_node;
        const auto error = is_node ? read_node_range(reader, placement.nodes) : read_attribute(reader, placement);
        if (error.problem != nullptr) return error;
    }
    return reader.at_rule_end() ? kNoError : reader.error("write ; between rules");
}

PlacementTextError read_placement(Reader& reader, Placement& placement) {
    bool nodes_may_follow = false;
    if (reader.take_word("local")) {
        placement.place = BirthPlace::kLocal;
    } else if (reader.take_word("dram")) {
        placement.place = BirthPlace::kDram;
    } else if (reader.take_word("slow")) {
        placement.place = BirthPlace::kSlow;
    } else if (reader.take_word("node")) {
        placement.place = BirthPlace::kNode;
        if (!reader.take(":")) return reader.error("write node:N with a node number");
        uint64_t node = 0;
        if (auto error = read_node(reader, node); error.problem != nullptr) return error;
        placement.nodes = uint64_t{1} << node;
    } else if (reader.take_word("interleave")) {
        placement.place = BirthPlace::kInterleave;
        if (reader.take(":")) {
            if (auto error = read_node_range(reader, placement.nodes); error.problem != nullptr) return error;
            nodes_may_follow = true;
        }
    } else {
        return reader.error("write local, dram, slow, node:N or interleave");
    }
    return read_rest(reader, placement, nodes_may_follow);
}

// Index of `placement`, which is added when it is new. Never fails: there are no more placements than rules.
uint8_t index_of(const Placement& placement, PlacementRules& rules, uint8_t first) {
    for (uint8_t i = first; i < rules.placement_count; ++i)
        if (rules.placements[i] == placement) return i;
    rules.placements[rules.placement_count] = placement;
    return rules.placement_count++;
}

// Size rules that end where everything else does need no arenas of their own.
void fold_into_default(PlacementRules& rules) {
    for (size_t i = 0; i < rules.size_rule_count; ++i)
        if (rules.placements[rules.size_rules[i].placement] == rules.placements[0]) rules.size_rules[i].placement = 0;
}

}    // namespace

PlacementTextError parse_placement_rules(std::string_view text, PlacementRules& rules) {
    Reader reader(text);
    PlacementRules read;
    bool default_read = false;
    while (!reader.at_end()) {
        if (reader.take(";")) continue;
        if (default_read) return reader.error("move this before the rule without a size, which takes everything");
        Placement placement;
        if (reader.take_word("size")) {
            if (!reader.take(">=")) return reader.error("write size>=, no other comparison is known");
            SizeRule rule;
            const size_t size_at = reader.position();
            if (auto error = read_size(reader, rule.at_least_bytes); error.problem != nullptr) return error;
            if (rule.at_least_bytes >= read.smallest_rule_bytes())
                return Reader::error_at("put larger sizes first: an earlier rule takes all of these", size_at);
            if (!reader.take(":")) return reader.error("write : and a placement after the size");
            if (read.size_rule_count == kMaxSizeRules) return reader.error("use at most 15 rules with a size");
            if (auto error = read_placement(reader, placement); error.problem != nullptr) return error;
            rule.placement = index_of(placement, read, 1);
            read.size_rules[read.size_rule_count++] = rule;
        } else if (reader.take_word("site")) {
            return reader.error("use size>= rules: rules by call site are not known to this version");
        } else {
            if (auto error = read_placement(reader, placement); error.problem != nullptr) return error;
            read.placements[0] = placement;
            default_read = true;
        }
    }
    fold_into_default(read);
    rules = read;
    return kNoError;
}

}    // namespace pghot
