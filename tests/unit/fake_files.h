// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>

#include "runtime/kernel/filesystem.h"

namespace pghot {

// An invented machine: files by path. A file whose text is empty exists and is empty.
class FakeFiles final : public FileSystem {
public:
    std::map<std::string, std::string> files;

    long read(const char* path, std::span<char> out) override {
        const auto file = files.find(path);
        if (file == files.end()) return -ENOENT;
        const size_t bytes = std::min(out.size(), file->second.size());
        std::copy_n(file->second.data(), bytes, out.data());
        return static_cast<long>(bytes);
    }
    int lines(const char* path, std::span<char> buffer, FunctionRef<bool(std::string_view)> visit) override {
        const auto file = files.find(path);
        if (file == files.end()) return -ENOENT;
        std::string_view rest = file->second;
        while (!rest.empty()) {
            const size_t end = std::min(rest.find('\n'), rest.size());
            if (!visit(rest.substr(0, std::min(end, buffer.size())))) return 0;
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        return 0;
    }
    int list(const char* path, FunctionRef<void(std::string_view)> visit) override {
        const std::string folder = std::string(path) + "/";
        std::string last;
        for (const auto& [name, text] : files) {
            if (!name.starts_with(folder)) continue;
            const std::string entry = name.substr(folder.size(), name.find('/', folder.size()) - folder.size());
            if (entry != last) visit(entry);
            last = entry;
        }
        return last.empty() ? -ENOENT : 0;
    }

    // A machine of `nodes` nodes; CPU lists and distance rows by node, an empty CPU list for a node without CPUs.
    void add_node(int node, const std::string& cpus, const std::string& distances, uint64_t mib) {
        const std::string folder = "/sys/devices/system/node/node" + std::to_string(node);
        const std::string number = std::to_string(node);
        files[folder + "/cpulist"] = cpus + "\n";
        files[folder + "/distance"] = distances + "\n";
        files[folder + "/meminfo"] = "Node " + number + " MemTotal:       " + std::to_string(mib * 1024) +
                                     " kB\nNode " + number + " MemFree:        " + std::to_string(mib * 512) + " kB\n";
        auto append = [&](const std::string& file) {
            std::string& list = files["/sys/devices/system/node/" + file];
            if (!list.empty()) list.back() = ',';
            list += number + "\n";
        };
        append("has_memory");
        if (!cpus.empty()) append("has_cpu");
    }
    void add_tier(int tier, const std::string& nodes) {
        files["/sys/devices/virtual/memory_tiering/memory_tier" + std::to_string(tier) + "/nodelist"] = nodes + "\n";
    }
};

}    // namespace pghot
