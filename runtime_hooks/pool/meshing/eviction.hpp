// Eviction of a run to host memory. On a device without free memory, meshing then has the run's
// device memory to begin with.
#pragma once

#include <cstdint>

#include "runtime_hooks/pool/arena.hpp"

namespace cuwarden::pool {

// Moves the blocks of one run (pages whose memory is mapped together) to host memory, and back.
// Their addresses stay. Meanwhile the driver has the run's device memory for other pages. If the
// driver cannot give device memory back, the blocks stay in host memory. The device then reaches
// them over the bus, which is slower, until a later object brings them back.
//
// The caller holds the arena's lock for as long as the object lives.
class Arena::Eviction {
 public:
  // `arena` and `real` outlive the object. `verifies`: true if each copy is compared with its
  // original.
  Eviction(Arena& arena, const driver::RealDriver& real, bool verifies) noexcept
      : arena_(arena), real_(real), verifies_(verifies) {}
  // Frees the host memory, unless the blocks have stayed there.
  ~Eviction();
  Eviction(const Eviction&) = delete;
  Eviction& operator=(const Eviction&) = delete;

  // Chooses the largest run that shares no memory, and makes host memory of its size. To be called
  // before the pause of the program. `most_bytes`: most bytes of host memory. Meshing does not move
  // the chosen run while the object lives. Returns false, with nothing chosen, if there is no such
  // run, if another one is evicted already, or if the driver refuses.
  bool prepare(std::uint64_t most_bytes) noexcept;
  // Chooses the run that an earlier object has left in host memory. To be called before the pause
  // of the program. Returns false if there is none, or if the driver refuses.
  bool prepare_return() noexcept;
  // Moves the blocks to host memory, and gives the device memory back to the driver. To be called
  // in a pause of the program, after prepare(). Returns false, with the blocks in device memory, if
  // a call of the driver fails. They may be lost then (ArenaCounts::lost_bytes).
  bool evict() noexcept;
  // Moves the blocks back to new device memory. To be called in a pause of the program: the one of
  // evict(), or after prepare_return(). Returns false, with the blocks in host memory, if the
  // driver refuses. They may be lost then (ArenaCounts::lost_bytes).
  bool bring_back() noexcept;
  // Returns the bytes of device memory that the chosen run takes before evict(). 0 before
  // prepare().
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  Run& run() noexcept { return arena_.run(arena_.evicted_.run); }
  // Makes ready what evict() and bring_back() need of the run: host memory for the list of
  // addresses that are withheld if the run is lost, and scratch addresses, with the host memory at
  // their start. Returns false if host memory is lacking or the driver refuses.
  bool reserve() noexcept;
  // Maps the memory behind `handle` at the scratch address `at`. Returns false, with nothing
  // mapped, if the driver refuses.
  bool map_scratch(CUdeviceptr at, CUmemGenericAllocationHandle handle) noexcept;
  void unmap_scratch(CUdeviceptr at) noexcept;
  // Copies the run's memory, and waits for the copy. Returns false if that fails, or if the copies
  // are to be compared and differ.
  bool copy(std::uint64_t to, std::uint64_t from) noexcept;
  // Maps the memory behind `handle` at the run's addresses, in exchange for the one behind
  // `before`. Returns false if the driver refuses: the run then has the memory that it had, unless
  // it is lost.
  bool exchange(CUmemGenericAllocationHandle handle, CUmemGenericAllocationHandle before) noexcept;

  Arena& arena_;
  const driver::RealDriver& real_;
  const bool verifies_;
  std::uint64_t bytes_ = 0;                // bytes of the chosen run
  std::uint64_t parts_ = 0;                // parts of pages that were announced to Packing
  CUmemGenericAllocationHandle host_ = 0;  // the host memory; 0: there is none
  // Scratch addresses, twice as many as the run has: the host memory is mapped at their start, new
  // device memory behind it. 0: none are reserved.
  CUdeviceptr scratch_ = 0;
  bool is_host_mapped_ = false;  // true while the host memory is mapped at `scratch_`
  // True if the driver has refused to unmap a scratch address. Then they are never freed.
  bool is_scratch_stuck_ = false;
};

}  // namespace cuwarden::pool
