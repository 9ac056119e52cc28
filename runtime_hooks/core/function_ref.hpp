// A reference to a callable that the caller owns and keeps alive during the call: no copy, no heap.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace cuwarden {

// A reference to a callable. FunctionRef<int(long)>, for example, refers to a callable that takes a
// long and returns an int. The callable must outlive the reference.
template <class Signature>
class FunctionRef;

// A reference to a callable that takes `Parameters` and returns a `Result`. The callable must
// outlive the reference.
template <class Result, class... Parameters>
class FunctionRef<Result(Parameters...)> {
 public:
  // Refers to `callable`, which must outlive the reference. Copies nothing.
  template <class Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef>)
      // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the constraint leaves copies out
      FunctionRef(Callable&& callable)
  noexcept
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Parameters... parameters) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(object))(
              std::forward<Parameters>(parameters)...);
        }) {}

  // Calls the callable with these parameters, and returns its result.
  Result operator()(Parameters... parameters) const {
    return call_(object_, std::forward<Parameters>(parameters)...);
  }

 private:
  void* object_;                          // address of the callable; never null
  Result (*call_)(void*, Parameters...);  // calls the callable whose address is passed first
};

}  // namespace cuwarden
