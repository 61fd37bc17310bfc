// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target on every kept input, so that what a fuzzer once found stays found without a fuzzer.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<uint8_t> bytes_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(Corpus, EveryKeptInputIsHandled) {
    int inputs = 0;
    for (const auto& entry : std::filesystem::directory_iterator(PGHOT_CORPUS)) {
        SCOPED_TRACE(entry.path().string());
        const auto bytes = bytes_of(entry.path());
        EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0);
        ++inputs;
    }
    EXPECT_GT(inputs, 0) << "no input in " << PGHOT_CORPUS;
}

TEST(Corpus, EveryPrefixOfEveryKeptInputIsHandled) {
    for (const auto& entry : std::filesystem::directory_iterator(PGHOT_CORPUS)) {
        const auto bytes = bytes_of(entry.path());
        for (size_t size = 0; size <= bytes.size() && size < 4096; ++size) {
            const std::vector<uint8_t> prefix(bytes.begin(), bytes.begin() + static_cast<long>(size));
            ASSERT_EQ(LLVMFuzzerTestOneInput(prefix.data(), size), 0) << entry.path() << " cut to " << size;
        }
    }
}

}    // namespace
