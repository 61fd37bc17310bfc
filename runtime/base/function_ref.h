// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace pghot {

template <typename Signature>
class FunctionRef;

// A reference to something callable that lives at least as long as the call it is passed to: two words, never
// allocates.
template <typename Result, typename... Arguments>
class FunctionRef<Result(Arguments...)> {
public:
    // The requires clause keeps copies out, which clang-tidy does not see.
    // NOLINTBEGIN(bugprone-forwarding-reference-overload)
    template <typename Callable>
    requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef>) FunctionRef(Callable&& callable)
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
          call_([](void* object, Arguments... arguments) -> Result {
              return (*static_cast<std::remove_reference_t<Callable>*>(object))(std::forward<Arguments>(arguments)...);
          }) {}
    // NOLINTEND(bugprone-forwarding-reference-overload)
    Result operator()(Arguments... arguments) const { return call_(object_, std::forward<Arguments>(arguments)...); }

private:
    void* object_;
    Result (*call_)(void*, Arguments...);
};

}    // namespace pghot
