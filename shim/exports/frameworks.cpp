// Functions by which PyTorch's allocators tell a profiler of their memory. The allocator of device
// memory (libc10_cuda.so) calls them for each block, and finds the shim's ones before those of
// libc10.so, to which these pass the call on.
#include "runtime_hooks/ledger/write/frameworks.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "shim/process/process.hpp"
#include "shim/support/loaded_objects.hpp"

namespace c10 {

// PyTorch's class Device as it is passed to a function: two bytes in one register.
struct Device {
  std::int8_t type;   // kind of the device (c10::DeviceType); 1: CUDA
  std::int8_t index;  // ordinal of the device
};

}  // namespace c10

namespace cuwarden::shim {
namespace {

// Returns the function of this name that another object than the shim exports first, such as
// libc10.so; null if none does.
[[gnu::cold, gnu::noinline]] void* in_other_object(std::string_view name) noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  void* found = nullptr;
  any_loaded_object([&](const LoadedObject& object) {
    if (!object.is_shim()) found = object.find(name);
    return found != nullptr;
  });
  return found;
}

// PyTorch's own function of one name. `Size`: type of its sizes, which differs between versions.
template <class Size>
class Original {
 public:
  constexpr explicit Original(std::string_view name) : name_(name) {}
  // Calls the function with these arguments; does nothing if no object exports one of the name.
  void operator()(void* address, std::int64_t bytes, Size allocated, Size reserved,
                  c10::Device device) {
    Function function = known_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function>(in_other_object(name_));
      if (function == nullptr) function = do_nothing;
      known_.store(function, std::memory_order_relaxed);
    }
    function(address, bytes, allocated, reserved, device);
  }

 private:
  using Function = void (*)(void*, std::int64_t, Size, Size, c10::Device);
  static void do_nothing(void*, std::int64_t, Size, Size, c10::Device) noexcept {}

  std::string_view name_;                  // the mangled name
  std::atomic<Function> known_ = nullptr;  // the function; null: not looked for yet
};

constinit Original<std::size_t> report_of_size_t{
    "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"};
constinit Original<std::int64_t> report_of_int64{
    "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"};

// Records a block with its call stack if `bytes` is positive: PyTorch hands it out. Ends its record
// if `bytes` is negative. `frame`: __builtin_frame_address(0) of the function that PyTorch has
// called. Leaves errno as it was.
void record_block(hooks::Session& session, const void* frame, DeviceAddress address,
                  std::int64_t bytes, DeviceOrdinal device) noexcept {
  const ErrnoGuard keep;
  const hooks::OwnWork work(frame);
  if (bytes < 0) {
    session.ledger.allocations.take(Space::framework_block, address);
    return;
  }
  ledger::NewRecord made;
  made.space = Space::framework_block;
  made.address = address;
  made.bytes.value = static_cast<std::uint64_t>(bytes);
  made.group =
      session.sites.group_unguarded({ledger::no_function, frame}, Kind::framework_block, device);
  made.time_ns = session.ledger.time.recently_ns();
  session.ledger.allocations.add(made);
  session.allocations.give_notice();
}

// Stores the allocator's figures in the ledger if they are of device memory, and records the block
// if blocks are recorded (CUWARDEN_TENSORS). The calling thread holds the lock of PyTorch's
// allocator. A process that records nothing now need not begin: without a CUDA call there is no
// device memory, and after the end none is counted.
//
// Once the process's Python interpreter has begun to end, ignores blocks that come back, until a
// block is handed out: the interpreter's end frees them, not a line of the program. The ledger thus
// keeps them as live.
inline void record(const void* frame, void* address, std::int64_t bytes, std::uint64_t allocated,
                   std::uint64_t reserved, c10::Device device) noexcept {
  constexpr std::int8_t cuda = 1;
  if (device.type != cuda || passes_through.load(std::memory_order_relaxed)) return;
  hooks::Session* const session = Process::get().session_if_recording();
  if (session == nullptr) return;
  if (session->sites.interpreter_has_ended()) {
    if (bytes < 0) return;
    // A program that embeds the interpreter goes on.
    session->sites.forget_interpreters_end();
  }
  const DeviceOrdinal ordinal{device.index};
  session->ledger.frameworks.pytorch(ordinal, reserved, allocated);
  if (session->settings.tensors && bytes != 0 && address != nullptr)
    record_block(*session, frame, {reinterpret_cast<std::uint64_t>(address)}, bytes, ordinal);
}

}  // namespace
}  // namespace cuwarden::shim

namespace c10 {

[[gnu::visibility("default")]] void reportMemoryUsageToProfiler(void* address, std::int64_t bytes,
                                                                std::size_t allocated,
                                                                std::size_t reserved,
                                                                Device device) {
  cuwarden::shim::record(__builtin_frame_address(0), address, bytes, allocated, reserved, device);
  cuwarden::shim::report_of_size_t(address, bytes, allocated, reserved, device);
}

// The function as PyTorch 1.9 to 1.13 have it.
[[gnu::visibility("default")]] void reportMemoryUsageToProfiler(void* address, std::int64_t bytes,
                                                                std::int64_t allocated,
                                                                std::int64_t reserved,
                                                                Device device) {
  cuwarden::shim::record(__builtin_frame_address(0), address, bytes,
                         static_cast<std::uint64_t>(allocated),
                         static_cast<std::uint64_t>(reserved), device);
  cuwarden::shim::report_of_int64(address, bytes, allocated, reserved, device);
}

}  // namespace c10
