// Pauses of the program for tests of meshing.
#pragma once

#include <cstdint>

#include "runtime_hooks/pool/arena.hpp"

namespace cuwarden::pool {

// Pauses nothing, since no thread uses the device in these tests. Each pause counts as 10 ns. On
// its clock, each reading is a nanosecond later than the one before, and a pause takes no time.
class FakePause final : public Pause {
 public:
  // `pauses`: number of pauses that may begin; later ones are refused. `batches`: number of batches
  // of moves after which a pause is over.
  explicit FakePause(int pauses = INT32_MAX, int batches = INT32_MAX)
      : most_pauses_(pauses), most_batches_(batches) {}

  bool begin() noexcept override {
    left_ = most_batches_;
    return asked_for_++ < most_pauses_;
  }
  bool is_over() noexcept override { return --left_ <= 0; }
  std::uint64_t end() noexcept override { return 10; }
  std::uint64_t now_ns() noexcept override { return ++now_ns_; }
  // Returns the number of pauses that meshing has asked for.
  int asked_for() const noexcept { return asked_for_; }

 private:
  const int most_pauses_, most_batches_;
  int asked_for_ = 0;
  int left_ = 0;  // number of batches that the pause still lasts
  std::uint64_t now_ns_ = 0;
};

}  // namespace cuwarden::pool
