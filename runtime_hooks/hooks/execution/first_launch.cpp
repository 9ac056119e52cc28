#include "runtime_hooks/hooks/execution/first_launch.hpp"

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/hooks/execution/kernel_memory.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"

namespace cuwarden::hooks {
namespace {

const char* name_of([[maybe_unused]] const driver::RealDriver& real,
                    [[maybe_unused]] CUfunction kernel) {
  const char* name = nullptr;
#if CUDA_VERSION >= 12030
  if (real.cuFuncGetName != nullptr && real.cuFuncGetName(&name, kernel) != CUDA_SUCCESS)
    name = nullptr;
#endif
  return name != nullptr ? name : "";
}

// Free bytes that the driver does not hand out.
constexpr std::uint64_t kept_by_driver_bytes = 4 << 20;

}  // namespace

// The device is read before the kernel's attributes, because reading these may load the kernel.
FirstLaunch::FirstLaunch(HookedCall& call, CUfunction kernel, std::uint64_t block_threads) noexcept
    : call_(call), kernel_(kernel), block_threads_(block_threads), span_(call) {
  if (!call.recording()) return;
  const ErrnoGuard keep;
  const ExecutionParts parts = call.execution();
  here_ = parts.queries.current();
  if (parts.implicit.may_read(parts.time.recently_ns())) span_.begin(here_.device);
  // The question may load the kernel's code, so the base may be wrong from here on.
  if (!span_.has_begun()) parts.implicit.bases.was_not_measured(here_.device);
  const auto local = local_bytes();
  local_needed_ = local.value_or(0);
  // Managed memory moves to the device while the kernel runs. The kernel's code, which the question
  // has loaded, is therefore measured before the launch.
  if (local && parts.totals.live_bytes_on(here_.device, Kind::managed) != 0) measure_code();
  // Three kinds of launches may take gigabytes and are rare, so they are measured even if the
  // device was read a moment ago. One kind needs more local memory than all launches before.
  // Another may make the heap. The third follows a call in which the driver gave memory back.
  auto* const launches = parts.implicit.launches_of(here_.device, here_.context);
  if (!span_.has_begun() && launches != nullptr &&
      (local_needed_ > launches->local_bytes.load(std::memory_order_relaxed) ||
       launches->may_read_for_heap() || parts.devices.lent_context_bytes(here_.device) != 0))
    span_.begin(here_.device);
  base_ = parts.implicit.bases.of(here_.device);
}

void FirstLaunch::measure_code() noexcept {
  base_ = call_.execution().implicit.bases.of(here_.device);
  const auto taken = span_.taken();
  if (!taken) return;
  code_loaded(std::max<std::int64_t>(*taken, 0));
  is_code_measured_ = true;
}

std::optional<std::uint64_t> FirstLaunch::local_bytes() const noexcept {
  const driver::RealDriver& real = call_.real();
  const driver::RelaxedCaptures relaxed(real);
  int bytes = 0;
  if (!relaxed || real.cuFuncGetAttribute == nullptr ||
      real.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel_) !=
          CUDA_SUCCESS ||
      bytes < 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

rescue::Need FirstLaunch::done(CUresult result) noexcept {
  if (!call_.recording()) return {};
  const ErrnoGuard keep;
  const auto taken = span_.taken();
  if (result == CUDA_SUCCESS) {
    call_.keeps_bases();
    if (was_captured(taken)) return {};
    succeeded(taken);
    launched_kernels.add(kernel_);
    return {};
  }
  // Computed first, since book_given_back() changes the values that it depends on.
  const std::uint64_t lacked = bytes_that_lacked(result);
  const bool gave_back = taken && *taken < 0 && result == CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t given_back = gave_back ? static_cast<std::uint64_t>(-*taken) : 0;
  if (gave_back) span_.book_given_back(given_back, here_.context);
  // The kernel's code may have been loaded even though the launch failed.
  if (taken && *taken > 0) code_loaded(taken);
  return {ledger::Asked::launch, here_.device, lacked, given_back};
}

// A launch seems to have been captured if captures were begun in the process, the kernel needs more
// local memory than kernels before it, and the launch took no memory. The next launch of the kernel
// then counts as its first. At most 256 launches of a context are judged so, in case they took no
// memory for another reason.
bool FirstLaunch::was_captured(std::optional<std::int64_t> taken) const noexcept {
  constexpr std::uint32_t most = 256;
  const ExecutionParts parts = call_.execution();
  if (!parts.captures.seen() || !taken || *taken != 0) return false;
  auto* const launches = parts.implicit.launches_of(here_.device, here_.context);
  if (launches == nullptr ||
      local_needed_ <= launches->local_bytes.load(std::memory_order_relaxed) ||
      launches->captured_count.fetch_add(1, std::memory_order_relaxed) >= most)
    return false;
  if (local_needed_ > launches->captured_local_bytes.load(std::memory_order_relaxed)) {
    raise_to(launches->captured_local_bytes, local_needed_);
    // The name is taken now, since the kernel may be gone later.
    parts.implicit.book(here_.device, {.largest_local_bytes = local_needed_,
                                       .largest_local_kernel = name_of(call_.real(), kernel_)});
  }
  return true;
}

std::uint64_t FirstLaunch::bytes_that_lacked(CUresult result) const noexcept {
  auto* const launches = call_.execution().implicit.launches_of(here_.device, here_.context);
  if (launches == nullptr) return 0;
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return local_needed_ > launches->local_bytes.load(std::memory_order_relaxed)
               ? local_needed_ * resident_threads(call_.real(), here_.device)
               : 0;
  return result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
             ? heap_that_lacked(launches->heap_bytes.load(std::memory_order_relaxed))
             : 0;
}

// If the heap of device-side malloc does not fit, the driver answers LAUNCH_OUT_OF_RESOURCES
// instead of OUT_OF_MEMORY (measured). If a block needs more registers than there are, the driver
// answers the same, so that cause is ruled out first.
std::uint64_t FirstLaunch::heap_that_lacked(std::uint64_t set_bytes) const noexcept {
  const driver::RealDriver& real = call_.real();
  const std::uint64_t heap = std::min(set_bytes, most_heap_bytes);
  int most_threads = 0;
  if (heap == 0 || block_threads_ == 0 || real.cuFuncGetAttribute == nullptr ||
      real.cuFuncGetAttribute(&most_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel_) !=
          CUDA_SUCCESS ||
      block_threads_ > static_cast<std::uint64_t>(std::max(most_threads, 0)))
    return 0;
  const auto reading = driver::read_current_device(real);
  return reading && heap + heap_management_bytes + kept_by_driver_bytes > reading->free_bytes ? heap
                                                                                              : 0;
}

void FirstLaunch::code_loaded(std::optional<std::int64_t> bytes) noexcept {
  call_.execution().objects.took_more(
      {.caller = call_.caller(),
       .here = here_,
       .base = base_,
       .taken = bytes,
       .is_doubtful = span_.is_doubtful()},
      tracking::ImplicitObjects::code_of(reinterpret_cast<std::uint64_t>(kernel_), here_.device));
  if (bytes && *bytes > 0) span_.note_reading();
}

void FirstLaunch::succeeded(std::optional<std::int64_t> taken) noexcept {
  const ExecutionParts parts = call_.execution();
  ImplicitMemory::Launches* const launches =
      parts.implicit.launches_of(here_.device, here_.context);
  if (launches == nullptr) return;
  const std::uint64_t needed = local_needed_;
  const std::uint64_t before = launches->local_bytes.load(std::memory_order_relaxed);
  const bool may_have_heap = launches->heap_bytes.load(std::memory_order_relaxed) != 0;
  ledger::ImplicitChange change;
  const std::uint64_t again =
      taken ? std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(*taken, 0)),
                       parts.devices.lent_context_bytes(here_.device))
            : 0;
  if (taken)
    change = launch_memory_by_use(
        call_.real(), here_.device, *taken - static_cast<std::int64_t>(again),
        needed > before ? needed - before : 0, launches->heap_bytes.load(std::memory_order_relaxed),
        launches->any.load(std::memory_order_relaxed) && !is_code_measured_);
  change.taken_again_bytes = again;
  if (change.heap_bytes != 0) launches->heap_bytes.store(0, std::memory_order_relaxed);
  launches->any.store(true, std::memory_order_relaxed);
  if (needed > before) {
    raise_to(launches->local_bytes, needed);
    change.largest_local_bytes = needed;
    change.largest_local_kernel = name_of(call_.real(), kernel_);
  }
  const std::int64_t code = is_code_measured_ ? 0 : std::max<std::int64_t>(change.module_bytes, 0);
  change.module_bytes = is_code_measured_ ? 0 : change.module_bytes - code;
  if (taken && *taken != code)
    span_.book(change, here_.context);
  else if (change.largest_local_bytes != 0)
    parts.implicit.book(here_.device, change);
  // Memory that was not measured may be far more than code.
  if (!taken &&
      (needed > before || may_have_heap || parts.devices.lent_context_bytes(here_.device) != 0))
    parts.implicit.bases.memory_may_change();
  if (!is_code_measured_ && (!taken || code != 0))
    code_loaded(taken ? std::optional(code) : std::nullopt);
}

}  // namespace cuwarden::hooks
