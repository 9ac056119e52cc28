// Eviction of a run to host memory. On a device without free memory, meshing then has the run's
// device memory to begin with.
#pragma once

#include <cstdint>

#include "runtime_hooks/pool/arena.hpp"

namespace cuwarden::pool {

// Moves the blocks of one run (pages whose memory is mapped together) to host memory, and back.
// Their addresses stay. Meanwhile meshing can use the run's device memory for other pages. If the
// driver has no device memory for the blocks afterwards, they stay in host memory. The device then
// reaches them over the bus, which is slower, until a later object brings them back.
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

  // Chooses the largest run with blocks that shares no memory and takes `most_bytes` or less. Makes
  // host memory of the run's size. Meshing does not move the chosen run while the object lives. To
  // be called before the pause of the program. Returns false if there is no such run, or if another
  // one is evicted already. Returns false, too, if the device cannot map host memory, host memory
  // is lacking or the driver refuses; the run may then stay chosen until the object is destroyed.
  bool prepare(std::uint64_t most_bytes) noexcept;
  // Chooses the run that an earlier object has left in host memory, if the run still has blocks. To
  // be called before the pause of the program. Returns false if there is none, if host memory is
  // lacking, or if the driver refuses.
  bool prepare_return() noexcept;
  // Moves the blocks to host memory, and gives the device memory back to the driver. To be called
  // in a pause of the program, after prepare(). Returns false if a call of the driver fails, or if
  // a compared copy is not right. The blocks then still lie in device memory, unless they are lost
  // (ArenaCounts::lost_bytes).
  bool evict() noexcept;
  // Moves the blocks back to new device memory. To be called after evict(), in the same pause of
  // the program; or in a pause after prepare_return(). Returns false if a call of the driver fails,
  // or if a compared copy is not right. The blocks then still lie in host memory, unless they are
  // lost (ArenaCounts::lost_bytes).
  bool bring_back() noexcept;
  // Returns the bytes of the chosen run's memory; 0 before prepare() or prepare_return().
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  Run& run() noexcept { return arena_.run(arena_.evicted_.run); }
  // Prepares evict() and bring_back(). Announces the run's addresses to Packing, in case the run is
  // lost. Reserves scratch addresses, and maps `host_` at their start. Returns false if memory for
  // the list of addresses is lacking, or if the driver refuses.
  bool reserve() noexcept;
  // Maps the memory behind `handle` at the scratch address `at`. Returns false, with nothing
  // mapped, if the driver refuses.
  bool map_scratch(CUdeviceptr at, CUmemGenericAllocationHandle handle) noexcept;
  void unmap_scratch(CUdeviceptr at) noexcept;
  // Copies the run's memory from address to address, and waits for the copy. Returns false if the
  // driver refuses, or if a comparison (`verifies_`) does not find equal contents. Contents that
  // differ set ArenaCounts::differing_bytes.
  bool copy(std::uint64_t to, std::uint64_t from) noexcept;
  // Maps the memory behind `handle` at the run's addresses, in exchange for the memory behind
  // `before`. Returns false if the driver refuses: the run then has its memory `before` again,
  // unless the run is lost.
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
  // True if the driver has refused to unmap a scratch address. The scratch addresses then stay
  // reserved until the process ends.
  bool is_scratch_stuck_ = false;
};

}  // namespace cuwarden::pool
