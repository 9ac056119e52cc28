// Checks what meshing relies on: that two addresses of one page show the same contents, and (with
// CUWARDEN_MESH=verify) that each copy is right. All memory is read in pauses of the program.
#include <algorithm>
#include <new>
#include <span>

#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/pool/contents.hpp"
#include "runtime_hooks/pool/meshing/arena_meshing.hpp"

namespace cuwarden::pool {
namespace {

// Addresses at which the memory of a handle is mapped a second time, for the length of a scope.
// Converts to true if it is.
class SecondAddress {
 public:
  SecondAddress(const driver::RealDriver& real, DeviceOrdinal device, std::uint64_t first,
                std::uint64_t bytes) noexcept
      : real_(real), bytes_(bytes) {
    is_mapped_ =
        real.cuMemRetainAllocationHandle(&handle_, reinterpret_cast<void*>(first)) ==
            CUDA_SUCCESS &&
        real.cuMemAddressReserve(&start_, whole_addresses(bytes), 0, 0, 0) == CUDA_SUCCESS &&
        real.cuMemMap(start_, bytes, 0, handle_, 0) == CUDA_SUCCESS;
    has_access_ = is_mapped_ && Peers::grant(real, start_, bytes, device, 0) == CUDA_SUCCESS;
  }
  ~SecondAddress() {
    const bool is_unmapped = !is_mapped_ || real_.cuMemUnmap(start_, bytes_) == CUDA_SUCCESS;
    if (start_ != 0 && is_unmapped) real_.cuMemAddressFree(start_, whole_addresses(bytes_));
    if (handle_ != 0) real_.cuMemRelease(handle_);
  }
  SecondAddress(const SecondAddress&) = delete;
  SecondAddress& operator=(const SecondAddress&) = delete;
  explicit operator bool() const noexcept { return has_access_; }
  std::uint64_t start() const noexcept { return start_; }

 private:
  const driver::RealDriver& real_;
  const std::uint64_t bytes_;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr start_ = 0;
  bool is_mapped_ = false, has_access_ = false;
};

}  // namespace

// The part lies between two blocks, or before the first one or behind the last one.
std::pair<std::uint64_t, std::uint64_t> Arena::Meshing::free_part(
    std::uint64_t page) const noexcept {
  const std::uint64_t first = arena_.address_of(page);
  std::uint64_t begun = first, ended = first + page_bytes;
  bool is_found = false;
  arena_.packing_.each_taken(first, page_bytes, [&](std::uint64_t begin, std::uint64_t end) {
    if (is_found) return;
    is_found = begin > begun;
    (is_found ? ended : begun) = is_found ? begin : end;
  });
  return {begun, ended};
}

// Measured on an H200: once a context has given its local memory back, copies and fills on the
// device fail until 414 MiB are free again. The copy is made where no page shares the memory.
bool Arena::Meshing::have_copies_their_memory(Pause& pause) noexcept {
  constexpr std::uint64_t least = 512;
  for (std::size_t at = next_; at != candidates_.size(); ++at) {
    const Run& run = arena_.run(candidates_[at].run);
    const auto [begun, ended] = free_part(run.first);
    if (run.is_shared || ended - begun < 2 * least) continue;
    if (!pause.begin()) return false;
    const bool is_made =
        real_.cuMemcpyDtoDAsync_v2(begun, begun + least, least, nullptr) == CUDA_SUCCESS &&
        real_.cuStreamSynchronize(nullptr) == CUDA_SUCCESS;
    arena_.counts_.pause_ns += pause.end();
    ++arena_.counts_.pauses;
    return is_made;
  }
  return true;
}

// A second address must take no memory of the device. Others may take some meanwhile, so that this
// is tried several times, and again before the next move. Memory that other pages share is not
// written to.
bool Arena::Meshing::is_coherent() noexcept {
  if (arena_.is_coherent_) return true;
  const Run& run = arena_.run(candidates_[next_].run);
  if (run.is_shared) return false;
  const std::uint64_t first = arena_.address_of(run.first), bytes = run.bytes();
  constexpr std::uint64_t most_written = 4096;
  const auto [free_start, free_end] = free_part(run.first);
  const std::uint64_t written = std::min(free_end - free_start, most_written);
  constexpr int most_tries = 3;
  for (int tries = 0; tries < most_tries; ++tries) {
    const auto before = driver::read_current_device(real_);
    const SecondAddress second(real_, arena_.device(), first, bytes);
    const auto after = driver::read_current_device(real_);
    if (!before || !after) return false;
    if (!second) break;
    Contents outcome = compare(real_, first, second.start(), page_bytes);
    if (outcome == Contents::equal && written != 0)
      outcome =
          write_and_compare(real_, free_start, second.start() + (free_start - first), written);
    if (outcome == Contents::different) arena_.counts_.differing_bytes = page_bytes;
    if (outcome != Contents::equal) return false;
    if (after->free_bytes + bytes > before->free_bytes) {
      arena_.counts_.unshared_bytes = 0;
      return arena_.is_coherent_ = true;
    }
  }
  arena_.counts_.unshared_bytes = bytes;
  return false;
}

std::uint64_t Arena::meshable_bytes(const driver::RealDriver& real) noexcept try {
  const Locked held(lock_, Locked::ForLong{});
  if (!held || has_ended() || is_closing() || counts_.differing_bytes != 0) return 0;
  return Meshing(*this, real, Meshing::Plan::into_new_memory, false).gain();
} catch (const std::bad_alloc&) {
  return 0;
}

bool Arena::Meshing::is_copied_right(const Candidate& candidate) noexcept {
  for (const Move& move : std::span(moves_).subspan(candidate.first_move, candidate.moves)) {
    const std::uint64_t start = arena_.address_of(move.page), from = copied_from(candidate, move),
                        to = copied_to(candidate, move);
    Contents outcome = Contents::equal;
    arena_.packing_.each_taken(
        start, span_ * page_bytes, [&](std::uint64_t first, std::uint64_t end) {
          if (outcome == Contents::equal)
            outcome = compare(real_, from + (first - start), to + (first - start), end - first);
        });
    if (outcome == Contents::different) arena_.counts_.differing_bytes = page_bytes;
    if (outcome != Contents::equal) return false;
  }
  return true;
}

}  // namespace cuwarden::pool
