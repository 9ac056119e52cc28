// Chooses the plans that save the memory of one request, and carries them out one after the other.
#include <algorithm>
#include <optional>
#include <utility>

#include "runtime_hooks/pool/meshing/arena_meshing.hpp"
#include "runtime_hooks/pool/meshing/eviction.hpp"

namespace cuwarden::pool {
namespace {

// Most times that a plan of all pages is made for a request.
constexpr int most_tries = 4;
// A plan of neighbours is made again once blocks take a 64th less than at the last one that saved
// too little, or the arena holds a 64th more.
constexpr std::uint64_t much_changed = 64;
// If no more than so many bytes are still needed, the pause in which a run is evicted saves them,
// too. If more are needed, that pause saves as many as the run takes, and later pauses save the
// rest: memory is prepared before these begin.
constexpr std::uint64_t little_bytes = std::uint64_t{64} << 20;

}  // namespace

// The passes of meshing for one request. The arena's lock is held.
class Arena::Passes {
 public:
  Passes(Arena& arena, const driver::RealDriver& real, Pause& pause, const MeshGoal& goal) noexcept
      : arena_(arena),
        real_(real),
        pause_(pause),
        goal_(goal),
        gained_(arena.release_start_memory(real)),
        copies_need_memory_(goal.copies_need_memory) {}

  // Makes and carries out plans until enough is saved or no plan saves more. Returns the bytes
  // saved, without those that the arena keeps for its next passes.
  std::uint64_t run() {
    try {
      // Moves that save too little are no reason to refuse the request: a plan of all pages
      // follows.
      const bool is_over = (!is_enough() && !arena_.left_over_.runs.empty() && move_left_over()) ||
                           (!is_enough() && neighbours_may_save() && move_neighbours());
      if (!is_over && !is_enough()) move_all();
    } catch (...) {
      if (gained_ == 0) throw;
    }
    if (arena_.evicted_.is_on_host && !differs()) bring_back_evicted();
    if (!arena_.left_over_.runs.empty() && gained_ > goal_.needed_bytes && !differs())
      gained_ -=
          arena_.take_start_memory(real_, std::min(goal_.kept_bytes, gained_ - goal_.needed_bytes));
    return gained_;
  }

 private:
  using Plan = Meshing::Plan;
  // The result of a plan. refused: no plan can be carried out. unmoved: the plan moves nothing, or
  // there are no scratch addresses for it. moved: moves were made, as far as that was possible.
  enum class Outcome : std::uint8_t { refused, unmoved, moved };

  // A pass whose plan and end are timed. Its end gives memory and addresses back.
  class Pass {
   public:
    Pass(Passes& passes, Plan plan) : passes_(passes) {
      const Timed timed(passes_.pause_, passes_.arena_.counts_.plan_ns);
      meshing_.emplace(passes_.arena_, passes_.real_, plan, passes_.goal_.verifies);
    }
    ~Pass() {
      const Timed timed(passes_.pause_, passes_.arena_.counts_.release_ns);
      meshing_.reset();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    Meshing& operator*() noexcept { return *meshing_; }

   private:
    Passes& passes_;
    std::optional<Meshing> meshing_;
  };

  bool is_enough() const noexcept { return gained_ >= goal_.needed_bytes; }
  bool differs() const noexcept { return arena_.counts_.differing_bytes != 0; }

  // Carries out the moves that an earlier plan has left over, if they save enough. Returns true if
  // no further pass may follow: no pause could be had, or a move has failed.
  bool move_left_over() {
    Pass pass(*this, Plan::left_over);
    Meshing& meshing = *pass;
    const bool is_over =
        saves_enough(meshing) && (move(meshing) == Outcome::refused || meshing.was_stopped());
    meshing.keep_rest();
    return is_over;
  }
  // Moves pages with their neighbours, if that saves enough. Returns true if no further pass may
  // follow.
  bool move_neighbours() {
    bool lacked_room = false;
    if (move_neighbours_by_a_plan(lacked_room)) return true;
    if (is_enough() || !lacked_room) return false;
    return move_beside_eviction() && !is_enough() && move_left_over();
  }
  // Makes and carries out one plan that moves pages with their neighbours. Returns true if no
  // further pass may follow. Sets `lacked_room` if room for new memory was lacking.
  bool move_neighbours_by_a_plan(bool& lacked_room) {
    Pass pass(*this, Plan::neighbours);
    Meshing& meshing = *pass;
    if (!saves_enough(meshing)) {
      arena_.neighbours_plan_ = {.taken_bytes = arena_.packing_.taken_bytes(),
                                 .held_bytes = arena_.counts_.held_bytes,
                                 .gain = meshing.gain()};
      return false;
    }
    const bool is_over = move(meshing) == Outcome::refused || meshing.was_stopped();
    meshing.keep_rest();
    lacked_room = meshing.lacked_room();
    return is_over;
  }
  // True if a plan of neighbours may save what is needed. False if the last one could save too
  // little, and not much has changed since.
  bool neighbours_may_save() const noexcept {
    const auto [taken, held, gain] = arena_.neighbours_plan_;
    return gained_ + gain >= goal_.needed_bytes ||
           arena_.packing_.taken_bytes() < taken - taken / much_changed ||
           arena_.counts_.held_bytes > held + held / much_changed;
  }
  // Moves pages of all runs into new memory. If there is too little room for that, moves some
  // beside an evicted run; if that saves nothing, moves some into memory of the arena. Then tries
  // again.
  void move_all() {
    for (int tries = 0; tries < most_tries && !is_enough(); ++tries) {
      if (!move_into_new_memory(tries == 0 ? goal_.least_bytes : 0) || is_enough() || differs())
        return;
      const std::uint64_t before = gained_;
      if (move_beside_eviction()) {
        if (is_enough() || differs() || move_left_over()) return;
        continue;
      }
      Pass pass(*this, Plan::into_own_memory);
      Meshing& meshing = *pass;
      move(meshing);
      if (gained_ == before || is_enough() || differs()) return;
    }
  }
  // Moves pages of all runs into new memory, unless all passes together would then save less than
  // `least` bytes. Returns true if room for new memory was lacking, or if nothing was moved for
  // want of moves or addresses.
  bool move_into_new_memory(std::uint64_t least) {
    Pass pass(*this, Plan::into_new_memory);
    Meshing& meshing = *pass;
    Outcome outcome = Outcome::refused;
    if (gained_ + meshing.gain() >= least) outcome = move(meshing);
    meshing.keep_rest();
    return outcome == Outcome::unmoved || (outcome == Outcome::moved && meshing.lacked_room());
  }
  // Evicts a run to host memory, so that there is room for new memory. Carries out moves that the
  // last pass has left over, until they have saved as many bytes as the run takes. If no more than
  // `little_bytes` are still needed, these are saved as well. Then brings the run back, in the same
  // pause. If the driver has no memory for the run, its blocks stay in host memory, and its bytes
  // count as saved. Returns true if memory was saved; false, with nothing moved, if no run can be
  // evicted or no moves are left over.
  bool move_beside_eviction() {
    const std::uint64_t before = gained_;
    if (copies_need_memory_ || arena_.left_over_.runs.empty()) return false;
    Eviction eviction(arena_, real_, goal_.verifies);
    {
      const Timed timed(pause_, arena_.counts_.prepare_ns);
      if (!eviction.prepare(goal_.most_host_bytes)) return false;
    }
    Pass pass(*this, Plan::left_over);
    Meshing& meshing = *pass;
    if (meshing.gain() != 0 && take_scratch(meshing) && pause_.begin()) {
      const std::uint64_t pauses = arena_.counts_.pauses;
      RestOfPause rest(pause_);
      if (meshing.may_share() && eviction.evict()) {
        const std::uint64_t lacks = goal_.needed_bytes - gained_;
        const std::uint64_t amount = eviction.bytes() + (lacks <= little_bytes ? lacks : 0);
        gained_ += meshing.run(rest, amount, amount, true);
        if (!eviction.bring_back()) gained_ += eviction.bytes();
      }
      arena_.counts_.pause_ns += pause_.end();
      arena_.counts_.pauses = pauses + 1;
    }
    meshing.keep_rest();
    return gained_ > before;
  }
  // Brings back the run whose blocks this call or an earlier one has left in host memory, if more
  // was saved than is needed, by the run's size or more.
  void bring_back_evicted() noexcept {
    const std::uint64_t bytes = arena_.counts_.evicted_bytes;
    if (gained_ >= goal_.needed_bytes + bytes &&
        arena_.bring_back_in_a_pause(real_, pause_, goal_.verifies))
      gained_ -= bytes;
  }
  bool saves_enough(const Meshing& meshing) const noexcept {
    return gained_ + meshing.gain() >= goal_.needed_bytes;
  }
  // Carries out the plan. Before the first one, makes a copy, if that must come first; if it fails,
  // all plans are refused.
  Outcome move(Meshing& meshing) noexcept {
    if (std::exchange(copies_need_memory_, false) && !meshing.have_copies_their_memory(pause_))
      return Outcome::refused;
    if (meshing.gain() == 0 || !take_scratch(meshing)) return Outcome::unmoved;
    gained_ += meshing.run(pause_, goal_.needed_bytes - gained_, goal_.enough_bytes - gained_,
                           goal_.prepares_memory);
    return Outcome::moved;
  }

  bool take_scratch(Meshing& meshing) noexcept {
    const Timed timed(pause_, arena_.counts_.prepare_ns);
    return meshing.take_scratch();
  }

  Arena& arena_;
  const driver::RealDriver& real_;
  Pause& pause_;
  const MeshGoal& goal_;
  std::uint64_t gained_;     // bytes of device memory that were saved so far
  bool copies_need_memory_;  // true if a copy is to be made before any memory is made
};

std::uint64_t Arena::release_start_memory(const driver::RealDriver& real) noexcept {
  std::uint64_t given = 0;
  for (CUmemGenericAllocationHandle& handle : start_memory_)
    if (handle != 0 && real.cuMemRelease(std::exchange(handle, 0)) == CUDA_SUCCESS)
      given += page_bytes;
  counts_.held_bytes -= given;
  counts_.idle_bytes -= given;
  return given;
}

std::uint64_t Arena::take_start_memory(const driver::RealDriver& real,
                                       std::uint64_t most_bytes) noexcept {
  std::uint64_t taken = 0;
  for (CUmemGenericAllocationHandle& handle : start_memory_) {
    if (taken + page_bytes > most_bytes) break;
    if (real.cuMemCreate(&handle, page_bytes, &where_, 0) != CUDA_SUCCESS) {
      handle = 0;
      break;
    }
    taken += page_bytes;
  }
  counts_.held_bytes += taken;
  counts_.idle_bytes += taken;
  return taken;
}

std::uint64_t Arena::give_back_start_memory(const driver::RealDriver& real) noexcept {
  const Locked held(lock_, Locked::ForLong{});
  if (!held || has_ended()) return 0;
  const std::uint64_t given = release_start_memory(real);
  counts_.returned_bytes += given;
  counts_.meshed_bytes += given;
  return given;
}

bool Arena::bring_back_in_a_pause(const driver::RealDriver& real, Pause& pause,
                                  bool verifies) noexcept {
  Eviction eviction(*this, real, verifies);
  if (!eviction.prepare_return() || !pause.begin()) return false;
  const bool is_back = eviction.bring_back();
  counts_.pause_ns += pause.end();
  ++counts_.pauses;
  return is_back;
}

void Arena::bring_back_evicted(const driver::RealDriver& real, Pause& pause,
                               bool verifies) noexcept {
  const Locked held(lock_, Locked::ForLong{});
  if (!held || has_ended() || is_closing() || counts_.differing_bytes != 0) return;
  bring_back_in_a_pause(real, pause, verifies);
}

std::uint64_t Arena::mesh(const driver::RealDriver& real, Pause& pause, const MeshGoal& goal) {
  // The lock is held during the pauses, so that blocks do not change while they are moved. The
  // pauses are bounded. A thread that waits for this lock waits no longer than that, and holds up
  // no thread at the gate.
  const Locked held(lock_, Locked::ForLong{});
  if (!held || has_ended() || is_closing() || counts_.differing_bytes != 0 ||
      real.cuMemRetainAllocationHandle == nullptr || real.cuMemcpyDtoDAsync_v2 == nullptr ||
      real.cuStreamSynchronize == nullptr)
    return 0;
  const std::uint64_t gained = Passes(*this, real, pause, goal).run();
  counts_.returned_bytes += gained;
  counts_.meshed_bytes += gained;
  return gained;
}

}  // namespace cuwarden::pool
