// A request for meshing (Arena::mesh()): the memory that it is to save, and the pauses of the
// program for it.
#pragma once

#include <cstdint>
#include <utility>

namespace cuwarden::pool {

// Bytes of memory that Arena::mesh() is to save in one call, and conditions for the call.
struct MeshGoal {
  // Fewest bytes of device memory for which pages are moved. If a new plan of all pages would save
  // less, together with what was saved before, it is not carried out. 0: there is no such limit.
  std::uint64_t least_bytes = 0;
  // Once meshing has saved so many bytes of device memory, no further pause begins to save more. A
  // pause may still begin to bring blocks back from host memory, if so many bytes then stay saved.
  std::uint64_t needed_bytes = 0;
  // Once meshing has saved so many bytes of device memory, nothing more is moved.
  std::uint64_t enough_bytes = 0;
  // True if each copy is compared with its original in the pause.
  bool verifies = false;
  // True if the driver lacks memory that it needs for copies on the device, because the context has
  // given that memory back. A copy is then made before anything else, so that the driver takes the
  // memory while it is free.
  bool copies_need_memory = false;
  // Most bytes of the saved memory that the arena keeps for the beginning of its next mesh(); 0:
  // none. Only bytes beyond `needed_bytes` are kept, at most 16 MiB, and only if planned moves
  // are left over.
  std::uint64_t kept_bytes = 0;
  // Most bytes of host memory of each arena to which blocks may move during a pause, so that the
  // device has memory to begin with; 0: none.
  std::uint64_t most_host_bytes = 0;
  // True if new memory for many runs is made before the first pause, as far as there is room, so
  // that the pause is short. False if it is made for one run only before the pause, so that other
  // processes can use the device's free memory until then.
  bool prepares_memory = true;
};

// Pauses the program for Arena::mesh(), which moves blocks. In a pause no thread and no stream uses
// the device's memory. Meshing may ask for several pauses, one after the other.
class Pause {
 public:
  // Starts a pause of the program. Returns true if it has begun: end() must be called then. Returns
  // false if none can be had.
  virtual bool begin() noexcept = 0;
  // Returns true once the pause that begin() has started has lasted as long as it may. Meshing then
  // moves no further run of pages before it calls end().
  virtual bool is_over() noexcept = 0;
  // Ends the pause that begin() has started. Returns the pause's length in nanoseconds.
  virtual std::uint64_t end() noexcept = 0;
  // Returns the time on the clock of the pauses, in nanoseconds. 0 if they have no clock: then the
  // times of meshing outside of its pauses are not measured.
  virtual std::uint64_t now_ns() noexcept { return 0; }

 protected:
  ~Pause() = default;
};

// The rest of a pause that has begun already, for code that begins and ends pauses itself. begin()
// succeeds once, and end() changes nothing and returns 0: the owner of the whole pause ends it.
// now_ns() returns 0, since times are measured only outside of pauses.
class RestOfPause final : public Pause {
 public:
  // `whole`, the pause that has begun, outlives the object.
  explicit RestOfPause(Pause& whole) noexcept : whole_(whole) {}
  bool begin() noexcept override { return !std::exchange(has_begun_, true); }
  bool is_over() noexcept override { return whole_.is_over(); }
  std::uint64_t end() noexcept override { return 0; }

 private:
  Pause& whole_;
  bool has_begun_ = false;
};

// Adds the time for which the object lives to a sum, by the clock of the pauses.
class Timed {
 public:
  // `sum_ns`: nanoseconds. Both `Pause` and `sum_ns` outlive the object.
  Timed(Pause& clock, std::uint64_t& sum_ns) noexcept
      : clock_(clock), sum_ns_(sum_ns), begun_ns_(clock.now_ns()) {}
  ~Timed() { sum_ns_ += clock_.now_ns() - begun_ns_; }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Pause& clock_;
  std::uint64_t& sum_ns_;
  const std::uint64_t begun_ns_;
};

}  // namespace cuwarden::pool
