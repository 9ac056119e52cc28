// A refused request, with the amounts of memory from which the verdict about its cause follows.
#pragma once

#include <optional>
#include <string>

#include "reporters/model/values.hpp"
#include "reporters/verdicts/incident_case.hpp"

namespace cuwarden {

// True if allocations of this kind lie in the host's memory, or may lie there, as managed memory
// may.
constexpr bool is_host_memory(Kind kind) {
  return kind == Kind::pinned || kind == Kind::registered || kind == Kind::managed;
}

// Returns the bytes of the device that a request for memory takes. The driver rounds requests above
// 1 MiB up to whole pages (2 MiB), unless they are stream-ordered (measured). `bytes`: size of the
// request.
constexpr std::uint64_t taken_on_device(std::uint64_t bytes, bool is_stream_ordered) {
  constexpr std::uint64_t device_page = std::uint64_t{2} << 20;
  if (is_stream_ordered || bytes <= device_page / 2) return bytes;
  return (bytes + device_page - 1) / device_page * device_page;
}

// A refused request, with amounts of memory at the refusal, on which the predicates of verdicts are
// based. "The device" is the device of the request.
class Shortage {
 public:
  // Keeps a reference to the case, which must outlive this object.
  explicit Shortage(const IncidentCase& given);

  // Returns the refused request with its facts, as the constructor was given it.
  const IncidentCase& given() const { return case_; }
  // Returns the refused request, with the facts of its first refusal and counts of later ones.
  const ledger::IncidentView& incident() const { return case_.incident; }
  // True if the request was for page-locked, registered or managed memory, which lies on the host
  // or may lie there.
  bool is_of_host() const { return is_host_memory(case_.kind); }

  // Returns a fact that was known at the refusal, in the unit that the enumerator of Fact says.
  // Null if the fact is unknown, or is a limit that is not set.
  model::Figure fact(ledger::Fact which) const;
  // Returns the free bytes of the request's device at the refusal; null if they are unknown.
  model::Figure free_bytes() const { return limited(free_); }
  // Returns the bytes that the program asked for, or the bytes that a launch needed for itself.
  // Null if they are unknown or 0.
  model::Figure requested_bytes() const;
  // Returns the bytes of the device that the holder had at the refusal; 0 if it had none, or if the
  // used bytes of the device are unknown.
  std::uint64_t held_by(Holder) const;
  // Returns the live bytes of memory of other processes or APIs that this process had opened by IPC
  // or imported as external memory; 0 also if the used bytes of the device are unknown.
  std::uint64_t opened() const;

  // Returns the number of bytes by which the device's free memory was too small for the request and
  // for the reserve that the driver keeps; 0 if enough was free. On a device that shares its memory
  // with the host, the page cache counts as free. Null if the free bytes are unknown, or for a
  // graph's instantiation or launch, which names no size.
  model::Figure missing() const { return missing_; }
  // True if missing() is known and above 0, and the program asked for memory or a context. False
  // for all other calls, such as launches.
  bool lacks_memory() const;
  // Returns the bytes that the request would take of the device; 0 if its size is unknown. A
  // request above 1 MiB that is not stream-ordered is rounded up to whole pages (2 MiB), as the
  // driver does. For a context the result is an estimate.
  std::uint64_t taken() const { return taken_; }
  // Returns the number of free bytes that the device needs for the driver to serve the request: the
  // bytes of taken(), and the reserve that the driver keeps.
  std::uint64_t needed() const { return needed_; }
  // True if `bytes` of unused memory are enough to be named as the cause of the refusal. At least
  // 1/50 of the device is enough; so is 1/400 of the device, if that is also a quarter of needed().
  // False if the device's size is unknown.
  bool is_worth_it(std::uint64_t bytes) const;

  // Returns the live bytes that this process had allocated on the device at the refusal, without
  // spilled ones; 0 also if the used bytes of the device are unknown.
  std::uint64_t own() const { return own_; }
  // Returns the bytes of the host's page cache that the driver counted as used, but that the kernel
  // would drop if memory is needed. Returns 0 if the device does not share its memory with the
  // host.
  std::uint64_t page_cache() const { return held_by(Holder::page_cache); }
  // Returns the bytes of this process's implicit memory on the device: contexts, code, kernels'
  // local memory, the device heap, streams and executable graphs, those of libraries included.
  // Returns 0 also if the used bytes of the device are unknown.
  std::uint64_t implicit() const;
  // Returns the bytes of the device that other processes hold, as NVML lists them, with the memory
  // of theirs that this process opened. Returns 0 also if the used bytes of the device are unknown.
  std::uint64_t listed() const;
  // Returns the used bytes of the device that belong neither to this process nor to a process that
  // NVML lists, less an allowance for contexts and managed memory. Returns 0 if nothing is left, or
  // if some amounts are unknown.
  std::uint64_t unlisted() const;
  // Returns the least number of used bytes of the device that belong to other owners than this
  // process: listed() plus unlisted(). Returns 0 also if the used bytes of the device are unknown.
  std::uint64_t others() const { return listed() + unlisted(); }
  // True if `bytes`, which one owner holds, are the largest amount that any owner holds of the
  // device, and the request would have fitted without them. Owners are this process's allocations,
  // its implicit memory, its idle memory pools, and all others together. False if `bytes` is 0. To
  // be called only if lacks_memory() is true: if missing() is null, every request counts as
  // fitting.
  bool is_the_most(std::uint64_t bytes) const;
  // Returns is_the_most(bytes) as if the process had one context less, since one is there before
  // its first allocation. Further contexts count.
  bool is_the_most_beside_a_context(std::uint64_t bytes) const;

  // Returns the settings that let the request wait for other processes to free memory, such as
  // "CUWARDEN_WAIT=10m". Empty if the process's settings already let it wait.
  std::string waiting_wants() const;
  // Returns the settings that let host memory serve the part of the request that the device lacked,
  // such as "CUWARDEN_SPILL=2GiB". Empty if the process's settings already allow that, if the call
  // asked for no linear device memory, or if missing() is null.
  std::string spilling_wants() const;

 private:
  // Returns is_the_most(bytes) as if `implicit` were the bytes of implicit memory.
  bool is_the_most_of(std::uint64_t bytes, std::uint64_t implicit) const;
  // Returns `setting`, such as "CUWARDEN_WAIT=10m"; empty: no setting is needed. If the process's
  // settings forbid rescues, returns "CUWARDEN_POOL=auto", followed by " and " and `setting` if
  // that is not empty.
  std::string with_rescues(std::string setting) const;
  // Returns `fact`; null if it is null (unknown) or ledger::no_limit (a limit that is not set).
  static model::Figure limited(std::optional<std::uint64_t> fact);

  const IncidentCase& case_;  // the refused request with its facts; not owned
  // Used bytes of the device at the refusal, divided into items; null: unknown, or host memory was
  // requested.
  std::optional<Account> account_;
  model::Figure total_;       // size of the request's device in bytes; null: unknown
  model::Figure free_;        // free bytes of the device at the refusal; null: unknown
  model::Figure missing_;     // bytes that the device lacked for the request; null: unknown
  std::uint64_t taken_ = 0;   // bytes that the request would take of the device; 0: unknown
  std::uint64_t needed_ = 0;  // free bytes that the device needs for the request
  // Live bytes of this process on the device at the refusal, without spilled ones; 0: none, or
  // unknown.
  std::uint64_t own_ = 0;
};

}  // namespace cuwarden
