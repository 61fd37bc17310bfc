// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "pattern.h"
#include "random.h"

namespace soak {

// Anonymous memory that the program maps itself, beside the heap: each page is zero or holds its pattern.
class Mapping {
public:
    Mapping(Random& random, size_t pages);
    ~Mapping();    // verifies everything
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    // One of: drop pages (MADV_DONTNEED), write pages, lock, change protection, grow or shrink (mremap), verify.
    void step(Random& random);
    void check_all() const;

private:
    struct Pages {
        size_t first;
        size_t end;
    };
    Pages some(Random& random) const;
    char* at(size_t page) const { return at_ + page * kPageBytes; }
    void check(Pages pages) const;
    void drop(Pages pages);
    void write(Pages pages);
    void hide(Random& random, Pages pages);
    void show();
    void lock(Pages pages);
    void resize(size_t pages);

    char* at_;
    Pattern pattern_;
    std::vector<bool> written_;    // one a page
    Pages hidden_{0, 0};           // no access, or read-only
};

}    // namespace soak
