// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pattern.h"
#include "pin.h"
#include "random.h"

namespace soak {

// One block of the heap, filled with its pattern; every byte is verified before the block goes. One owner at a time,
// which may be another thread than the one that allocated it.
class Block {
public:
    // By malloc, calloc, posix_memalign or aligned_alloc.
    Block(Random& random, size_t bytes);
    // Verifies everything, then frees.
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    size_t bytes() const { return bytes_; }

    void check_all() const { pattern_.check("block", at_, {0, bytes_}); }
    void check_pages(Random& random) const { pattern_.check_pages("block", at_, {0, bytes_}, random.next()); }
    void check_part(Random& random) const;
    // New contents, once the old ones were verified.
    void rewrite();

    // realloc. Pins, locks and advice stay over it; `check` decides between all bytes and a word of each page.
    enum class Check { kAll, kPages };
    void resize(Random& random, size_t bytes, Check check);

    // For a part of the block chosen at random, until the block is written or resized; blocks below three pages stay
    // as they are.
    void pin(Random& random);
    void protect(Random& random);
    // Until the block goes, or longer: what was locked and advised stays so in the heap, as with careless programs.
    void lock(Random& random);
    void advise(Random& random);

    // In a forked child.
    void leave_pin_to_parent();

private:
    Range some_pages(Random& random) const;
    void unprotect();
    void check(Random& random, Range range, Check how) const;

    char* at_;
    size_t bytes_;
    Pattern pattern_;
    std::unique_ptr<Pin> pin_;
    Range read_only_;    // offsets, whole pages
    Range locked_;
    bool keeps_lock_ = false;
};

}    // namespace soak
