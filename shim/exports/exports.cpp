// hooks.def as the functions that the program sees: one line each. The meaning of each call is in
// runtime_hooks/hooks.
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/driver/submission_gate.hpp"
#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/hooks/execution/first_launch.hpp"
#include "runtime_hooks/hooks/execution/launch_arguments.hpp"
#include "runtime_hooks/hooks/memory/pool_answers.hpp"
#include "runtime_hooks/serving/pool_memory.hpp"
#include "shim/interpose/caller_tables.hpp"
#include "shim/interpose/driver_table.hpp"
#include "shim/process/process.hpp"

namespace cuwarden::shim {

// Hooks that only the shim can implement (SHIM rows): look-ups are in lookup.cpp, cuInit is below.
#define SHIM(result, name, parameters, arguments) result name CUWARDEN_WITH_CALL parameters;
#include "runtime_hooks/driver/hooks.def"

CUresult cuInit(hooks::HookedCall& call, unsigned int Flags) {
  const CUresult result = call.real().cuInit(Flags);
  if (call.recording() && result == CUDA_SUCCESS) Process::get().driver_initialised();
  return result;
}

namespace {

// Results of calls of functions that the driver or runtime does not have. They can be called only
// by a program that was linked against a newer one, with lazy binding.
constexpr CUresult missing_in_driver = CUDA_ERROR_NOT_FOUND;
constexpr cudaError_t missing_in_runtime = cudaErrorSymbolNotFound;

// Handles a submission (a launch of a kernel or graph that was launched before, a copy or a fill)
// that has failed, with its result. It may lack memory, too: the context had to give some back, or
// it is in another context. `again` repeats it. Returns the result for the program.
[[gnu::cold, gnu::noinline]] CUresult submission_failed(const driver::RealDriver& real,
                                                        driver::Row row, ledger::Asked asked,
                                                        CUresult result,
                                                        FunctionRef<CUresult()> again) {
  if (result != CUDA_ERROR_OUT_OF_MEMORY || passes_through.load(std::memory_order_relaxed))
    return result;
  hooks::HookedCall call(real, Process::get().session(), row);
  // The driver may have taken back the memory that earlier launches got for their kernels.
  hooks::launched_kernels.forget_all();
  return call.rescued(result, {asked}, again);
}

// Returns the executable graph among the arguments of a driver function that launches graphs.
constexpr CUgraphExec graph_among(CUgraphExec exec, CUstream) { return exec; }

// True if the function of this name submits a single copy or fill. A refused call of it has queued
// nothing, so that it may be repeated. A batch may have queued its first operations.
consteval bool is_single_copy_or_fill(std::string_view name) {
  return (name.starts_with("cuMemcpy") || name.starts_with("cuMemset")) &&
         name.find("Batch") == name.npos;
}

// Returns the pools that answer the program's question. Null within a hooked call, which asks for
// itself, and while nothing is recorded.
[[gnu::noinline]] serving::ServingPools* asked_by_program() {
  hooks::forget_left_driver_call(__builtin_frame_address(0));
  if (hooks::call_state.driver_depth != 0) return nullptr;
  if (serving::ServingPools* const pools = serving::serving_pools.load(std::memory_order_acquire))
    return pools;
  const ErrnoGuard keep;
  hooks::Session* const session = Process::get().session();
  return session == nullptr ? nullptr : &session->pools;
}

// The runtime's frees fail without reaching the driver once the process is ending. The program did
// free the memory, so it is no leak.
template <driver::Row row, class First, class... Rest>
void note_free_at_end(First first, Rest...) {
  if constexpr (std::is_pointer_v<First>) {
    const auto address = reinterpret_cast<std::uint64_t>(first);
    using enum driver::Row;
    if constexpr (row == cudaFree || row == cudaFreeHost || row == cudaFreeAsync ||
                  row == cudaFreeAsync_ptsz)
      Process::get().freed_at_end(Space::pointer, address);
    else if constexpr (row == cudaHostUnregister)
      Process::get().freed_at_end(Space::registered, address);
    else if constexpr (row == cudaFreeArray)
      Process::get().freed_at_end(Space::array, address);
    else if constexpr (row == cudaFreeMipmappedArray)
      Process::get().freed_at_end(Space::mipmapped_array, address);
  }
}
template <driver::Row row>
void note_free_at_end() {}

}  // namespace
}  // namespace cuwarden::shim

#define CUWARDEN_EXPORT extern "C" [[gnu::visibility("default")]]
#define CUWARDEN_CALL(...) (call __VA_OPT__(, ) __VA_ARGS__)

// Defines the two functions that record a call: one for calls through the exported symbol, one for
// calls through a pointer from a lookup.
#define CUWARDEN_RECORDING_FUNCTIONS(result, name, parameters, body)          \
  namespace recording::linked {                                               \
  CUWARDEN_RECORDING(result, name, CUWARDEN_WITH_NEXT parameters, next, body) \
  }                                                                           \
  namespace recording::looked_up {                                            \
  CUWARDEN_RECORDING(result, name, parameters, real_driver(), body)           \
  }

// A driver's hook. A call through the exported symbol goes on to the function that the caller would
// reach without the shim, which may be a wrapper's. A call through a pointer from a lookup goes on
// to libcuda's own function. The part that records is a function of its own, so that a call that
// only goes through needs no frame.
#define CUWARDEN_DRIVER_HOOK(result, name, parameters, arguments, body)                            \
  namespace cuwarden::shim {                                                                       \
  CUWARDEN_RECORDING_FUNCTIONS(result, name, parameters, body)                                     \
  namespace looked_up {                                                                            \
  result CUDAAPI name parameters {                                                                 \
    CUWARDEN_RECORD_OR_PASS(name, arguments, recording::looked_up, arguments, real_driver())       \
  }                                                                                                \
  }                                                                                                \
  }                                                                                                \
  CUWARDEN_EXPORT result CUDAAPI name parameters {                                                 \
    using namespace cuwarden::shim;                                                                \
    const cuwarden::driver::RealDriver& next = next_driver_for(__builtin_return_address(0));       \
    CUWARDEN_RECORD_OR_PASS(name, arguments, recording::linked, CUWARDEN_AND_NEXT arguments, next) \
  }

#define CUWARDEN_WITH_NEXT(...) (__VA_ARGS__ __VA_OPT__(, ) const driver::RealDriver& next)
#define CUWARDEN_AND_NEXT(...) (__VA_ARGS__ __VA_OPT__(, ) next)
#define CUWARDEN_RECORDING(result, name, parameters, below, body)              \
  [[gnu::noinline]] static result name parameters {                            \
    hooks::forget_left_driver_call(__builtin_frame_address(0));                \
    const driver::RealDriver& real = below;                                    \
    if (real.name == nullptr) return missing_in_driver;                        \
    driver::DriverCall inside;                                                 \
    hooks::HookedCall call(real, Process::get().session(), driver::Row::name); \
    return inside.returned(body);                                              \
  }

// Functions that submit work at the gate, whatever the thread: at_gate::linked::name for calls
// through the exported symbol, and at_gate::looked_up::name for calls through a pointer from a
// lookup.
#define CUWARDEN_AT_GATE_FUNCTIONS(result, name, parameters, arguments)          \
  namespace cuwarden::shim::at_gate {                                            \
  namespace linked {                                                             \
  CUWARDEN_AT_GATE(result, name, CUWARDEN_WITH_NEXT parameters, arguments, next) \
  }                                                                              \
  namespace looked_up {                                                          \
  CUWARDEN_AT_GATE(result, name, parameters, arguments, real_driver())           \
  }                                                                              \
  }
#define CUWARDEN_AT_GATE(result, name, parameters, arguments, below) \
  [[gnu::noinline]] static result name parameters {                  \
    const cuwarden::driver::RealDriver& real = below;                \
    if (real.name == nullptr) return missing_in_driver;              \
    cuwarden::driver::Submission at_the_gate;                        \
    return at_the_gate.returned(real.name arguments);                \
  }

// Returns the answer of a submission. One that failed may be repeated by rungs, but no copy or fill
// that may have begun.
#define CUWARDEN_ANSWERED(functions, name, asked, answer, way, arguments_there)         \
  if (answer == CUDA_SUCCESS) [[likely]]                                                \
    return answer;                                                                      \
  if constexpr (cuwarden::ledger::Asked::asked == cuwarden::ledger::Asked::copy &&      \
                !cuwarden::shim::is_single_copy_or_fill(#name))                         \
    return answer;                                                                      \
  else                                                                                  \
    return cuwarden::shim::submission_failed(                                           \
        functions, cuwarden::driver::Row::name, cuwarden::ledger::Asked::asked, answer, \
        [&] { return cuwarden::shim::at_gate::way::name arguments_there; });

// A submission. Its cost is the cache lines of code and data that the usual case reads, since the
// driver's own work evicts them from the first-level caches between two calls. All other cases are
// therefore in at_gate::name: the thread has to pass the gate or has no counters yet, or the driver
// has no such function.
#define CUWARDEN_SUBMISSION(functions, name, arguments, asked, way, arguments_there) \
  cuwarden::driver::CallingThreads::Thread* const mine =                             \
      cuwarden::driver::calling_threads.free_to_submit();                            \
  CUresult answer;                                                                   \
  if (mine != nullptr && (functions).name != nullptr) [[likely]] {                   \
    cuwarden::driver::DriverCall inside(*mine);                                      \
    answer = inside.returned((functions).name arguments);                            \
  } else {                                                                           \
    answer = cuwarden::shim::at_gate::way::name arguments_there;                     \
  }                                                                                  \
  CUWARDEN_ANSWERED(functions, name, asked, answer, way, arguments_there)

// Launches are many and short. A launch of a kernel that was launched before goes through and is
// not counted. `functions`: the driver's functions as they are known now; for pointers from a
// lookup they are not looked up here.
#define CUWARDEN_LAUNCH(name, arguments, way, arguments_there, functions)           \
  const CUfunction kernel = cuwarden::hooks::kernel_among arguments;                \
  if (!cuwarden::tracking::launched_kernels.expected_slot_has(kernel) &&            \
      !cuwarden::shim::passes_through.load(std::memory_order_relaxed)) [[unlikely]] \
    return cuwarden::shim::launching::way::name arguments_there;                    \
  CUWARDEN_SUBMISSION(functions, name, arguments, launch, way, arguments_there)

#define CUWARDEN_MAYBE_FIRST_LAUNCH(result, name, parameters, arguments, way, arguments_there, \
                                    below)                                                     \
  [[gnu::noinline]] static result name parameters {                                            \
    hooks::forget_left_driver_call(__builtin_frame_address(0));                                \
    const driver::RealDriver& real = below;                                                    \
    if (real.name == nullptr) return missing_in_driver;                                        \
    const CUfunction kernel = hooks::kernel_among arguments;                                   \
    if (hooks::launched_kernels.has(kernel)) {                                                 \
      const CUresult answer = at_gate::way::name arguments_there;                              \
      CUWARDEN_ANSWERED(real, name, launch, answer, way, arguments_there)                      \
    }                                                                                          \
    driver::DriverCall inside;                                                                 \
    hooks::HookedCall call(real, Process::get().session(), driver::Row::name);                 \
    return inside.returned(hooks::first_launch(call, kernel, hooks::block_threads arguments,   \
                                               [&] { return real.name arguments; }));          \
  }

#define LAUNCH(result, name, parameters, arguments)                                           \
  CUWARDEN_AT_GATE_FUNCTIONS(result, name, parameters, arguments)                             \
  namespace cuwarden::shim {                                                                  \
  namespace launching::linked {                                                               \
  CUWARDEN_MAYBE_FIRST_LAUNCH(result, name, CUWARDEN_WITH_NEXT parameters, arguments, linked, \
                              CUWARDEN_AND_NEXT arguments, next)                              \
  }                                                                                           \
  namespace launching::looked_up {                                                            \
  CUWARDEN_MAYBE_FIRST_LAUNCH(result, name, parameters, arguments, looked_up, arguments,      \
                              real_driver())                                                  \
  }                                                                                           \
  namespace looked_up {                                                                       \
  result CUDAAPI name parameters {                                                            \
    CUWARDEN_LAUNCH(name, arguments, looked_up, arguments, detail::functions)                 \
  }                                                                                           \
  }                                                                                           \
  }                                                                                           \
  CUWARDEN_EXPORT result CUDAAPI name parameters {                                            \
    const cuwarden::driver::RealDriver& next =                                                \
        cuwarden::shim::next_driver_for(__builtin_return_address(0));                         \
    CUWARDEN_LAUNCH(name, arguments, linked, CUWARDEN_AND_NEXT arguments, next)               \
  }

// A graph that was launched before, and that has no memory nodes, takes no more memory. Its
// launches go through and are not counted. `below`: the driver's functions, which are looked up if
// that was not done; `functions`: the same as they are known now.
#define CUWARDEN_GRAPH_LAUNCH(name, arguments, way, arguments_there, functions, below) \
  if (!cuwarden::tracking::submitted_graphs.expected_slot_has(                         \
          cuwarden::shim::graph_among arguments)) [[unlikely]] {                       \
    CUWARDEN_RECORD_OR_PASS(name, arguments, recording::way, arguments_there, below)   \
  }                                                                                    \
  CUWARDEN_SUBMISSION(functions, name, arguments, graph, way, arguments_there)

#define GRAPH_LAUNCH(result, name, parameters, arguments)                                          \
  CUWARDEN_AT_GATE_FUNCTIONS(result, name, parameters, arguments)                                  \
  namespace cuwarden::shim {                                                                       \
  CUWARDEN_RECORDING_FUNCTIONS(result, name, parameters, hooks::name CUWARDEN_CALL arguments)      \
  namespace looked_up {                                                                            \
  result CUDAAPI name parameters {                                                                 \
    CUWARDEN_GRAPH_LAUNCH(name, arguments, looked_up, arguments, detail::functions, real_driver()) \
  }                                                                                                \
  }                                                                                                \
  }                                                                                                \
  CUWARDEN_EXPORT result CUDAAPI name parameters {                                                 \
    using namespace cuwarden::shim;                                                                \
    const cuwarden::driver::RealDriver& next = next_driver_for(__builtin_return_address(0));       \
    CUWARDEN_GRAPH_LAUNCH(name, arguments, linked, CUWARDEN_AND_NEXT arguments, next, next)        \
  }

// Queries are many and short. Without a pool the driver's answer is passed on as it is.
#define CUWARDEN_QUERY(name, arguments, below)                                       \
  const cuwarden::driver::RealDriver& real = below;                                  \
  if (real.name == nullptr) [[unlikely]]                                             \
    return cuwarden::shim::missing_in_driver;                                        \
  cuwarden::driver::DriverCall inside;                                               \
  const CUresult answer = inside.returned(real.name arguments);                      \
  if (!cuwarden::serving::answers_differ.load(std::memory_order_relaxed)) [[likely]] \
    return answer;                                                                   \
  cuwarden::serving::ServingPools* const pools = cuwarden::shim::asked_by_program(); \
  return pools == nullptr ? answer : cuwarden::hooks::name##_of_pool CUWARDEN_ANSWER arguments;
#define CUWARDEN_ANSWER(...) (cuwarden::shim::real_driver(), *pools, answer, __VA_ARGS__)

#define CUWARDEN_WAIT(name, arguments, below)       \
  const cuwarden::driver::RealDriver& real = below; \
  if (real.name == nullptr) [[unlikely]]            \
    return cuwarden::shim::missing_in_driver;       \
  cuwarden::driver::DriverCall inside;              \
  return inside.returned(real.name arguments);

#define CUWARDEN_UNRECORDED_HOOK(result, name, parameters, arguments, body)               \
  namespace cuwarden::shim::looked_up {                                                   \
  result CUDAAPI name parameters { body(name, arguments, cuwarden::shim::real_driver()) } \
  }                                                                                       \
  CUWARDEN_EXPORT result CUDAAPI name parameters {                                        \
    body(name, arguments, cuwarden::shim::next_driver_for(__builtin_return_address(0)))   \
  }
#define QUERY(result, name, parameters, arguments) \
  CUWARDEN_UNRECORDED_HOOK(result, name, parameters, arguments, CUWARDEN_QUERY)
#define SUBMIT(result, name, parameters, arguments)                                       \
  CUWARDEN_AT_GATE_FUNCTIONS(result, name, parameters, arguments)                         \
  namespace cuwarden::shim::looked_up {                                                   \
  result CUDAAPI name parameters {                                                        \
    CUWARDEN_SUBMISSION(detail::functions, name, arguments, copy, looked_up, arguments)   \
  }                                                                                       \
  }                                                                                       \
  CUWARDEN_EXPORT result CUDAAPI name parameters {                                        \
    const cuwarden::driver::RealDriver& next =                                            \
        cuwarden::shim::next_driver_for(__builtin_return_address(0));                     \
    CUWARDEN_SUBMISSION(next, name, arguments, copy, linked, CUWARDEN_AND_NEXT arguments) \
  }
#define WAIT(result, name, parameters, arguments) \
  CUWARDEN_UNRECORDED_HOOK(result, name, parameters, arguments, CUWARDEN_WAIT)

#define CUWARDEN_RECORD_OR_PASS(name, arguments, recording, arguments_there, below)            \
  if (!passes_through.load(std::memory_order_relaxed)) return recording::name arguments_there; \
  const auto& real = below;                                                                    \
  return real.name != nullptr ? real.name arguments : missing_in_driver;

#define HOOK(result, name, parameters, arguments) \
  CUWARDEN_DRIVER_HOOK(result, name, parameters, arguments, hooks::name CUWARDEN_CALL arguments)
#define SHIM(result, name, parameters, arguments) \
  CUWARDEN_DRIVER_HOOK(result, name, parameters, arguments, shim::name CUWARDEN_CALL arguments)
#define COUNT(result, name, parameters, arguments) \
  CUWARDEN_DRIVER_HOOK(result, name, parameters, arguments, call.real().name arguments)

#define RUNTIME(result, name, parameters, arguments)                                            \
  CUWARDEN_EXPORT result CUDARTAPI name parameters {                                            \
    using namespace cuwarden;                                                                   \
    hooks::forget_left_runtime_call(__builtin_frame_address(0));                                \
    constexpr driver::Row row = driver::Row::name;                                              \
    const driver::RealRuntime& real = shim::next_runtime_for(__builtin_return_address(0), row); \
    if (real.name == nullptr) return shim::missing_in_runtime;                                  \
    if (shim::passes_through.load(std::memory_order_relaxed)) return real.name arguments;       \
    const hooks::RuntimeCall call(row);                                                         \
    const result answer = real.name arguments;                                                  \
    if (answer == cudaErrorCudartUnloading) shim::note_free_at_end<row> arguments;              \
    return answer;                                                                              \
  }
#include "runtime_hooks/driver/hooks.def"

namespace cuwarden::shim {

void* const exported_functions[driver::row_count] = {
#define HOOKED(result, name, parameters, arguments) reinterpret_cast<void*>(::name),
#define RUNTIME HOOKED
#include "runtime_hooks/driver/hooks.def"
};

void* const looked_up_functions[driver::row_count] = {
#define HOOKED(result, name, parameters, arguments) reinterpret_cast<void*>(looked_up::name),
#define RUNTIME(result, name, parameters, arguments) nullptr,
#include "runtime_hooks/driver/hooks.def"
};

}  // namespace cuwarden::shim
