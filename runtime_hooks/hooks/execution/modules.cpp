// Modules and libraries: their code and variables take device memory. With lazy loading, which is
// the driver's default, most of the code is loaded by the first launches instead.
#include <algorithm>
#include <optional>

#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/hooks/execution/object_span.hpp"
#include "runtime_hooks/tracking/handle_set.hpp"

namespace cuwarden::hooks {
namespace {

tracking::ImplicitObject object_of(HookedCall&, CUmodule module) {
  return {Kind::module, Space::module, reinterpret_cast<std::uint64_t>(module)};
}
tracking::ImplicitObject object_of(HookedCall& call, CUlibrary library) {
  return {Kind::module, Space::library, reinterpret_cast<std::uint64_t>(library),
          call.execution().queries.current().device};
}

// Makes a call that loads a module or a library, stores its handle in *made, and records it.
template <class Handle, class Load>
CUresult load_once(HookedCall& call, const Handle* made, Load load) {
  ObjectSpan span(call, ObjectSpan::When::always);
  const CUresult result = load();
  if (call.recording() && result == CUDA_SUCCESS) span.made(object_of(call, *made));
  return result;
}

template <class Handle, class Load>
CUresult loaded(HookedCall& call, const Handle* made, Load load) {
  const auto attempt = [&] { return load_once(call, made, load); };
  return call.rescued(attempt(), {ledger::Asked::module}, attempt);
}

// Makes a call that asks for a part of a library, whose code it may load into the current context.
template <class Call>
CUresult asked(HookedCall& call, CUlibrary library, Call real_call) {
  const auto attempt = [&] {
    ObjectSpan span(call);
    const CUresult result = real_call();
    if (call.recording() && result == CUDA_SUCCESS) span.used(object_of(call, library));
    return result;
  };
  return call.rescued(attempt(), {ledger::Asked::module}, attempt);
}

// The values of a call's JIT options. The driver overwrites some of them with results: the size of
// a log buffer becomes the size of the log. So a repeated call needs the program's values back.
class JitValues {
 public:
  JitValues(void** values, unsigned count)
      : values_(values), count_(values == nullptr ? 0 : count) {
    if (fits()) std::copy_n(values_, count_, kept_);
  }
  // False if the options are more than the object can keep.
  bool fits() const { return count_ <= most; }
  // Gives the options the values that they had at the construction. Options that the driver has not
  // changed may be in memory that cannot be written to.
  void restore() const {
    for (unsigned i = 0; i < count_; ++i)
      if (values_[i] != kept_[i]) values_[i] = kept_[i];
  }

 private:
  static constexpr unsigned most = 64;  // cuda.h has 35 options
  void** const values_;
  const unsigned count_;
  void* kept_[most];
};

// Loads code with JIT options. Options that could not be kept are a reason not to repeat the call.
template <class Handle, class Load>
CUresult loaded(HookedCall& call, const Handle* made, const JitValues& options, Load load) {
  const CUresult result = load_once(call, made, load);
  if (!options.fits()) return result;
  return call.rescued(result, {ledger::Asked::module}, [&] {
    options.restore();
    return load_once(call, made, load);
  });
}

template <class Handle, class Call>
CUresult unloaded(HookedCall& call, Handle handle, Call real_call) {
  std::optional<ObjectEnd> end;
  if (call.recording()) end.emplace(call, object_of(call, handle), ObjectSpan::When::always);
  const CUresult result = real_call();
  if (end) end->done(result);
  // The driver may give the handles of the unloaded kernels to other kernels later.
  if (result == CUDA_SUCCESS) {
    launched_kernels.forget_all();
    loaded_kernels.forget_all();
  }
  return result;
}

}  // namespace

#define OF_MODULE CUWARDEN_HOOK_BY
#include "runtime_hooks/driver/hooks.def"

CUresult cuLibraryGetModule(HookedCall& call, CUmodule* pMod, CUlibrary library) {
  const CUresult result =
      asked(call, library, [&] { return call.real().cuLibraryGetModule(pMod, library); });
  if (call.recording() && result == CUDA_SUCCESS)
    call.execution().objects.owners.set(reinterpret_cast<std::uint64_t>(*pMod),
                                        {Space::library, reinterpret_cast<std::uint64_t>(library)});
  return result;
}

}  // namespace cuwarden::hooks
