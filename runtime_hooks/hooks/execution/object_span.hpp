// Measures the device memory that the driver takes for a stream, a module or an executable graph,
// and gives back at its end.
#pragma once

#include "runtime_hooks/hooks/execution/implicit_span.hpp"

namespace cuwarden::hooks {

// Measures one driver call that makes or uses an object for which the driver takes device memory by
// itself, and records the object. Does nothing if the program's call is not recorded.
class ObjectSpan {
 public:
  // The condition under which a driver call is measured. `within_budget`: only while readings of
  // devices take little of the run time (ImplicitMemory::may_read()), and never while a stream is
  // captured. `always`: also above that time and during captures, for calls that load or unload
  // code, which take milliseconds anyway. If readings are slow
  // (ImplicitMemory::are_readings_slow()), it means the same as `within_budget`.
  enum class When { within_budget, always };

  // Begins to measure the device memory that the driver's call takes, if `When` allows it. To be
  // made right before the driver is called. `call`: the program's hooked call, which must outlive
  // this object.
  explicit ObjectSpan(HookedCall& call, When = When::within_budget) noexcept;

  // True if the constructor has begun a measurement of the driver's call that has not ended yet.
  bool has_begun() const noexcept { return span_.has_begun(); }
  // Ends the measurement, and records the object that the driver's call has made. To be called
  // right after that call, if it succeeded. Must not be called if the program's call is not
  // recorded.
  void made(const tracking::ImplicitObject&) noexcept;
  // Ends the measurement, and adds the memory that the driver's call took to an object that existed
  // already. If the call was not measured, a later reading gives its bytes, or the object's record
  // is marked as uncertain. To be called right after the driver's call, if it succeeded. Must not
  // be called if the program's call is not recorded.
  void used(const tracking::ImplicitObject&) noexcept;

 private:
  // Ends the measurement. Returns the bytes that the driver's call took, negative if it gave some
  // back; none if the call was not measured. Also calls HookedCall::keeps_bases().
  tracking::Taken taken() noexcept;

  // The program's call, which makes or uses a stream, a module or an executable graph.
  HookedCall& call_;
  // Measurement of the device memory that the driver's call takes.
  ImplicitSpan span_;
  // The context that was current before the call of the driver, and its device. Its member
  // `context` is 0 if none was current or the driver does not say.
  tracking::CurrentContext here_;
  // The device's base before the driver's call: the latest reading of its free memory, from which
  // calls without readings of their own are measured.
  tracking::FreeBases::Base base_;
};

// Measures the device memory that the driver gives back when it destroys a stream, a module or an
// executable graph, and ends the object's record. Does nothing if the program's call is not
// recorded.
class ObjectEnd {
 public:
  // Ends the object's record, and begins the measurement, if `When` allows it. To be made right
  // before the driver's call. `call`: the program's call, which must outlive this object.
  ObjectEnd(HookedCall& call, const tracking::ImplicitObject&, ObjectSpan::When) noexcept;
  // Ends the measurement. To be called right after the driver's call; `CUresult` is its result. If
  // the driver refused to destroy the object, the object's record goes on. CUDA_ERROR_DEINITIALIZED
  // is no refusal: the process ends, and the driver has ended the object by itself.
  void done(CUresult) noexcept;

 private:
  // The program's call, which destroys the stream, module or executable graph.
  HookedCall& call_;
  // Measurement of the device memory that the driver's call gives back.
  ImplicitSpan span_;
  // The stream, module or executable graph that the program destroys.
  const tracking::ImplicitObject object_;
  // Record and device of `object_`, which were looked up before the driver's call.
  tracking::ImplicitObjects::Ending ending_;
  // True if `object_` is on the current context's device. Only that device is measured.
  bool is_here_ = false;
};

}  // namespace cuwarden::hooks
