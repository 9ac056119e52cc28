#include "reporters/verdicts.hpp"

#include <algorithm>
#include <iterator>

#include "reporters/device_restrictions.hpp"
#include "reporters/host_shortages.hpp"
#include "reporters/quantities.hpp"

namespace cuwarden {
namespace {

using ledger::Asked;
using ledger::Fact;

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t page = 2 * mib;
// The driver does not give away the last of a device: requests fail while so much is free
// (measured: 8 MiB with 13.06 MiB free; mostly it is less).
constexpr std::uint64_t kept_by_driver = 6 * mib;
// A pool's memory comes in chunks, and a chunk goes back only as a whole.
constexpr std::uint64_t pool_chunk = 32 * mib;
// A context with the code of its kernels, where nothing says what it is.
constexpr std::uint64_t usual_context = 1024 * mib;
// What a request for a context needs, about.
constexpr std::uint64_t needed_by_context = 640 * mib;
// No address space holds more.
constexpr std::uint64_t absurd = std::uint64_t{1} << 47;
// Of the device: less waste than the first did not bring a program to its end, more than the second
// always has its part in it. Between the two it must be worth a part of the request.
constexpr std::uint64_t least_waste_share = 400, large_waste_share = 50, part_of_request = 4;

// In an account, what no call asked for.
constexpr const char* implicit_items[] = {"context", "modules", "local_memory", "heap", "streams"};

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// One attempt at a verdict, with what all of them need.
class Judge {
 public:
  explicit Judge(const IncidentCase& given) : case_(given), account_(account_of(given)) {
    total_ = fact(Fact::total_bytes);
    free_ = free_bytes_of(incident());
    const bool by_page = case_.kind != Kind::stream_ordered && incident().bytes > mib;
    std::uint64_t needed = by_page ? (incident().bytes + page - 1) / page * page : incident().bytes;
    if (case_.incident.asked == Asked::context) needed = needed_by_context;
    taken_ = needed;
    needed_ = std::max(needed, page) + kept_by_driver;
    // What a graph needs the call does not say.
    if (free_ && incident().asked != Asked::graph)
      missing_ = needed_ > *free_ ? needed_ - *free_ : 0;
    if (account_) {
      for (const auto& [item, bytes] : account_->items)
        if (item.starts_with("live_") && item != "live_imported") own_ += bytes;
    }
  }

  Judgement judge() {
    // The order, and why it is so:
    // 0. What the driver itself says has nothing to do with how much there is.
    if (auto forbidden = forbidden_by_the_compute_mode(incident())) return std::move(*forbidden);
    // 1. What could never be served, whoever holds what. A slice that is too small restricts a
    //    request that the whole device could serve; where that is not known, it is too small.
    if (is_absurd() || is_larger_than_device()) return std::move(judgement_);
    // 2. The host's limits. Only requests for its memory, and contexts, which reserve addresses for
    //    all memory there is, meet them; none of the device's figures says anything about them.
    if (auto addresses = lacks_addresses(case_); addresses && found(std::move(*addresses)))
      return std::move(judgement_);
    if (auto memory = lacks_host_memory(case_); memory && found(std::move(*memory)))
      return std::move(judgement_);
    // 3. Requests that no allocation call made.
    if (is_implicit()) return std::move(judgement_);
    // 4. Without a reading nothing more is proven. Where enough was free, nobody's memory is to
    //    blame; only then is a quota, of which it is not known whether anybody enforces it.
    if (!missing_) return unproven();
    if (*missing_ == 0) return is_above_the_quota() ? std::move(judgement_) : unproven();
    // 5. Else each of what follows held so much that without it the request would have fitted:
    //    first what this process holds for no use, from what goes away by itself to what the
    //    program would have to be changed for.
    if (waits_for_frees() || is_locked_in_slabs() || is_held_by_a_library())
      return std::move(judgement_);
    // 6. Then who holds most: others, what no call asked for, or this process itself.
    if (is_held_by_most()) return std::move(judgement_);
    return unproven();
  }

 private:
  const ledger::IncidentView& incident() const { return case_.incident; }
  std::optional<std::uint64_t> fact(Fact which) const { return incident().fact(which); }
  std::uint64_t in_account(std::string_view item) const {
    return account_ ? account_->of(item) : 0;
  }
  bool is_of_host() const { return is_host_memory(case_.kind); }

  void prove(const char* name, std::uint64_t bytes) { judgement_.proof.emplace_back(name, bytes); }
  void prove(const char* name, std::optional<std::uint64_t> bytes) {
    cuwarden::prove(judgement_.proof, name, bytes);
  }
  bool found(Verdict verdict, std::string advice) {
    judgement_.verdict = verdict;
    judgement_.advice = std::move(advice);
    if (incident().bytes != 0) prove("requested_bytes", incident().bytes);
    return true;
  }
  bool found(Judgement&& of) {
    std::ranges::move(of.proof, std::back_inserter(judgement_.proof));
    return found(of.verdict, std::move(of.advice));
  }
  bool found_on_device(Verdict verdict, std::string advice) {
    prove("free_bytes", free_);
    return found(verdict, std::move(advice));
  }

  bool is_absurd() {
    if (incident().bytes < absurd) return false;
    judgement_.proof.emplace_back("requested", std::to_string(incident().bytes));
    return found(Verdict::size_overflow,
                 "a size like this comes from a negative number or an overflow: look at how the "
                 "caller computes it");
  }

  bool is_larger_than_device() {
    // What a launch needs nobody asked for.
    if (is_of_host() || incident().asked == Asked::launch || !total_ || incident().bytes <= *total_)
      return false;
    prove("total_bytes", total_);
    if (!case_.slice.empty()) return found(larger_than_slice(incident(), case_.slice, *total_));
    return found(Verdict::larger_than_device,
                 "the whole device has " + human_bytes(*total_) +
                     ": split the request, or use several devices or managed memory");
  }

  // All that is known to be this process's counts, as the driver's own memory does.
  bool is_above_the_quota() {
    if (is_of_host() || incident().asked != Asked::memory) return false;
    const std::uint64_t held = own_ + in_account("slab_waste") + in_account("rounding_waste") +
                               in_account("pool") + in_account("mempool_idle") + implicit_bytes();
    auto above = above_the_quota(incident(), {.live = own_, .held = held, .taken = taken_});
    if (!above) return false;
    prove("free_bytes", free_);
    return found(std::move(*above));
  }

  std::uint64_t implicit_bytes() const {
    std::uint64_t sum = 0;
    for (const char* item : implicit_items) sum += in_account(item);
    return sum;
  }
  void prove_implicit() {
    // Else more may be free than was wanted.
    prove("given_back_bytes", fact(Fact::given_back_bytes));
    for (const char* item : implicit_items) {
      if (const std::uint64_t bytes = in_account(item))
        prove((std::string(item) + "_bytes").c_str(), bytes);
    }
  }

  bool is_implicit() {
    switch (incident().asked) {
      case Asked::launch:
        prove_implicit();
        if (incident().result != out_of_memory)
          return found_on_device(
              Verdict::implicit_memory,
              "the kernel calls malloc, and the device heap that was set (cudaLimitMallocHeapSize) "
              "is made by the first such launch: make it smaller, or launch before the data comes");
        return found_on_device(
            Verdict::implicit_memory,
            "the launch itself needs memory (local memory for as many threads as the device can "
            "hold, or the kernel's code): leave more free, or use smaller arrays per thread");
      case Asked::module:
        prove_implicit();
        return found_on_device(Verdict::implicit_memory,
                               "the code did not fit any more: load it before the data");
      case Asked::stream:
      case Asked::limit:
        prove_implicit();
        return found_on_device(Verdict::implicit_memory,
                               "the driver keeps memory for streams, heap and stacks: make them "
                               "before the data, or fewer and smaller");
      case Asked::memory:
      case Asked::graph:
      case Asked::context:
        return false;
    }
    return false;
  }

  // A little that is held for no use did not bring a program to its end.
  bool is_worth_it(std::uint64_t bytes) const {
    return total_ && bytes >= *total_ / least_waste_share &&
           (bytes >= *total_ / large_waste_share || bytes >= needed_ / part_of_request);
  }

  // The driver gives idle memory of pools to whoever asks. What still was in pools when it refused
  // waits for work in flight, or shares a chunk with something live.
  bool waits_for_frees() {
    const std::uint64_t idle = fact(Fact::memory_pool_idle_bytes).value_or(0);
    const std::uint64_t live =
        incident().live_count[static_cast<std::size_t>(Kind::stream_ordered)];
    const std::uint64_t beside_live =
        std::min(idle, std::min(live, idle / pool_chunk + 1) * pool_chunk);
    const std::uint64_t pending = idle - beside_live;
    if (pending < *missing_ || !is_worth_it(pending)) return false;
    prove("pending_free_bytes", pending);
    return found_on_device(Verdict::pending_frees,
                           human_bytes(pending) +
                               " were freed in stream order and the device has not come that far: "
                               "synchronise the streams before this request");
  }

  bool is_locked_in_slabs() {
    const std::uint64_t locked = in_account("slab_waste"), rounding = in_account("rounding_waste");
    const std::uint64_t unused = in_account("pool");
    const std::uint64_t waste = locked + rounding + unused;
    if (waste < *missing_ || !is_worth_it(waste)) return false;
    prove("slab_locked_bytes", locked);
    prove("rounding_bytes", rounding);
    if (unused != 0) prove("pool_unused_bytes", unused);
    if (unused > std::max(locked, rounding))
      return found_on_device(
          Verdict::slab_fragmentation,
          human_bytes(unused) +
              " are the free parts of pages that the pool's allocations still "
              "use: free what pins them" +
              (case_.meshing_wants.empty() ? "" : ", or have " + case_.meshing_wants));
    return found_on_device(
        Verdict::slab_fragmentation,
        locked >= rounding
            ? human_bytes(locked) +
                  " that this process freed are locked in slabs that are still partly used: free "
                  "what pins them, keep small allocations in a few large ones, or try "
                  "CUWARDEN_POOL=on"
            : human_bytes(rounding) +
                  " are lost because requests are rounded up to whole pages: ask for multiples "
                  "of " +
                  human_bytes(page) +
                  ", cut small buffers from large ones, or try CUWARDEN_POOL=on");
  }

  // Somebody else's cache, idle or not, in a library.
  bool is_held_by_a_library() {
    if (case_.modules.empty() || case_.requester.empty()) return false;
    const auto& [module, bytes] = *std::ranges::max_element(
        case_.modules, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (module.empty() || module == case_.requester || module == case_.program ||
        bytes < *missing_ || bytes < own_ / 2 || own_ < others())
      return false;
    judgement_.proof.emplace_back("holder", module);
    prove("held_bytes", bytes);
    return found_on_device(
        Verdict::held_by_framework,
        file_name(module) + " holds " + human_bytes(bytes) + ", and " + file_name(case_.requester) +
            " asked: if it only keeps that (a cache), let it give it back "
            "(empty_cache, free_all_blocks, trim) or limit it; else free it there");
  }

  // What neither this process nor the list accounts for, less what a context takes unseen and what
  // managed memory may have there. Nobody is accused where the account has holes.
  std::uint64_t unlisted() const {
    if (!account_ || !fact(Fact::slab_locked_bytes) || !fact(Fact::context_bytes)) return 0;
    const std::uint64_t hidden = (in_account("context") == 0 ? usual_context : usual_context / 4) +
                                 incident().live_bytes[static_cast<std::size_t>(Kind::managed)];
    const std::int64_t left = account_->unexplained;
    return left > 0 && static_cast<std::uint64_t>(left) > hidden
               ? static_cast<std::uint64_t>(left) - hidden
               : 0;
  }
  // What this process opened of others is theirs.
  std::uint64_t listed() const {
    return in_account("other_processes") + in_account("live_imported");
  }
  std::uint64_t others() const { return listed() + unlisted(); }

  bool is_held_by_most() {
    const std::uint64_t implicit = implicit_bytes();
    const std::uint64_t most = std::max({others(), implicit, own_, in_account("mempool_idle")});
    if (most < *missing_ || most == 0) return false;
    if (most == own_) return is_held_by_own();
    if (most == others()) return is_held_by_others();
    return most == implicit && is_held_by_implicit_memory(implicit);
  }

  bool is_held_by_others() {
    const std::uint64_t hidden = unlisted(), opened = in_account("live_imported");
    prove("other_processes_bytes", fact(Fact::other_processes_bytes));
    if (opened != 0) prove("opened_bytes", opened);
    prove("own_bytes", own_);
    if (listed() >= hidden) {
      return found_on_device(
          Verdict::held_by_other_processes,
          "other processes hold " + human_bytes(listed()) +
              " of this device: wait for them, stop them, or use another device");
    }
    prove("unlisted_bytes", hidden);
    return found_on_device(
        Verdict::held_by_unlisted_owner,
        human_bytes(hidden) +
            " belong to nobody that can be seen from here: look with nvidia-smi on the host for "
            "processes of other containers or users, and for ones that died badly");
  }

  bool is_held_by_implicit_memory(std::uint64_t bytes) {
    prove_implicit();
    if (bytes == in_account("context"))
      return found_on_device(Verdict::implicit_memory,
                             "the contexts themselves take " + human_bytes(bytes) +
                                 " of the device: split the request, or try CUWARDEN_SPILL");
    return found_on_device(
        Verdict::implicit_memory,
        human_bytes(bytes) +
            " are contexts, code, local memory of kernels and the device's heap: "
            "use smaller arrays per thread, or lower the limits");
  }

  bool is_held_by_own() {
    prove("own_bytes", own_);
    std::string advice = "this process holds " + human_bytes(own_) + " itself, all of it live: ";
    // What stays as it is was there when the program still ran.
    // What was spilled lies elsewhere, whoever holds it.
    if (const std::uint64_t growing = std::min(case_.growing_bytes, own_); growing >= *missing_) {
      prove("growing_bytes", growing);
      advice += human_bytes(growing) + " of it grow all the time, look at that first";
    } else {
      advice += "see who holds it, and free or shrink that";
    }
    return found_on_device(Verdict::device_full_own, std::move(advice));
  }

  Judgement unproven() {
    prove("free_bytes", free_);
    prove("total_bytes", total_);
    const char* advice = "no owner holds as much as was missing: see the account of that moment";
    if (!free_)
      advice = "the device could not be asked at that moment";
    else if (!missing_)
      advice = "how much the call needed is not known: see the account of that moment";
    else if (*missing_ == 0)
      advice =
          "as much was free right after: somebody gave it back in between, or the device refuses "
          "for a reason of its own (a quota that is not known here)";
    else if (!fact(Fact::slab_locked_bytes))
      advice = "what the process itself lost to slabs could not be looked at in that moment";
    found(Verdict::unknown, advice);
    return std::move(judgement_);
  }

  const IncidentCase& case_;
  std::optional<Account> account_;
  std::optional<std::uint64_t> total_, free_, missing_;
  std::uint64_t taken_ = 0, needed_ = 0, own_ = 0;
  Judgement judgement_;
};

}  // namespace

std::string_view verdict_name(Verdict verdict) noexcept {
  // clang-format off
  constexpr std::string_view names[] = {
      "size_overflow", "address_space_gap", "host_ram_exhausted", "device_restricted",
      "larger_than_device", "implicit_memory", "pending_frees", "slab_fragmentation",
      "held_by_framework", "held_by_other_processes", "held_by_unlisted_owner", "device_full_own",
      "unknown"};
  // clang-format on
  return names[static_cast<std::size_t>(verdict)];
}

void prove(model::Proof& proof, const char* name, std::optional<std::uint64_t> fact) {
  if (fact && *fact != ledger::no_limit) proof.emplace_back(name, *fact);
}

Judgement judge(const IncidentCase& given) { return Judge(given).judge(); }

}  // namespace cuwarden
