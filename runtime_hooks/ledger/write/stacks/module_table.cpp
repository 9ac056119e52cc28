// dl_iterate_phdr gives the modules of the main namespace; frames in others (dlmopen) and in
// generated code stay plain addresses.
#include "runtime_hooks/ledger/write/stacks/module_table.hpp"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/core/loader_walk.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/stacks/module_description.hpp"

namespace cuwarden::ledger {

namespace {

// Makes the path absolute. The loader keeps the name as it was given, and a relative one is
// completed before the program changes its folder.
std::size_t absolute_path(std::string_view path, char (&into)[PATH_MAX]) {
  std::size_t length = 0;
  const bool relative = path.front() != '/' && path.find('/') != std::string_view::npos;
  if (relative && getcwd(into, sizeof into) != nullptr) {
    length = std::strlen(into);
    if (length + 1 < sizeof into) into[length++] = '/';
  }
  const std::size_t rest = std::min(path.size(), sizeof into - length);
  std::memcpy(into + length, path.data(), rest);
  return length + rest;
}

}  // namespace

bool ModuleTable::create(StringRef program) noexcept {
  program_ = program;
  const RegionExtent& extent = storage_.geometry().regions[index_of(RegionId::modules)];
  known_capacity_ = extent.capacity_bytes / extent.row_bytes;
  known_ = Mapping::anonymous(known_capacity_ * sizeof(Known));
  loaded_ = Mapping::anonymous(known_capacity_ * sizeof(Gone));
  rows_of_files_ = Mapping::anonymous(known_capacity_ * sizeof(RowOfFile));
  return known_ && loaded_ && rows_of_files_;
}

std::size_t ModuleTable::lower_bound(std::uint64_t address) const noexcept {
  std::size_t first = 0, count = known_count_;
  while (count > 0) {
    const std::size_t half = count / 2;
    if (known()[first + half].end <= address) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;  // index of the first module that ends behind the address
}

ModuleTable::Known* ModuleTable::find(std::uint64_t address) const noexcept {
  const std::size_t at = lower_bound(address);
  return at < known_count_ && known()[at].start <= address ? known() + at : nullptr;
}

ModuleTable::Coverage ModuleTable::coverage(std::span<const Frame> frames) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return Coverage::complete;
  const auto* const loaded = static_cast<const Gone*>(loaded_.data());
  Coverage found = Coverage::complete;
  for (const Frame frame : frames) {
    if (is_python_frame(frame) || find(frame) != nullptr) continue;
    const bool in_a_module = std::any_of(loaded, loaded + loaded_count_, [&](const Gone& range) {
      return frame >= range.start && frame < range.end;
    });
    if (in_a_module) return Coverage::missing;
    found = Coverage::generated_code;
  }
  return found;
}

void ModuleTable::note_loaded(const ModuleDescription& module, bool first) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  if (first) loaded_count_ = 0;
  if (loaded_count_ == known_capacity_) return;
  static_cast<Gone*>(loaded_.data())[loaded_count_++] = {module.start, module.end};
}

void ModuleTable::cover(std::span<const Frame> frames) noexcept {
  const Coverage now = coverage(frames);
  if (now == Coverage::complete) return;
  const ErrnoGuard guard;
  struct Scan {
    ModuleTable& table;
    std::span<const Frame> frames;
    // True if the scan may stop at the first module, because nothing was loaded since the last
    // scan.
    bool may_stop;
    bool first;
  } scan{
      .table = *this, .frames = frames, .may_stop = now == Coverage::generated_code, .first = true};
  // The loader runs only one iteration at a time, so two scans do not mix in loaded_.
  loader_walks.walk(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& search = *static_cast<Scan*>(data);
        ModuleTable& table = search.table;
        if (search.first) {
          const std::uint64_t scanned = table.scanned_adds_.load(std::memory_order_relaxed);
          if (search.may_stop && scanned == info->dlpi_adds) return 1;
          table.scanned_adds_.store(info->dlpi_adds, std::memory_order_relaxed);
        }
        ModuleDescription module;
        if (!module.read(*info)) return 0;
        table.note_loaded(module, search.first);
        search.first = false;
        const bool wanted =
            std::any_of(search.frames.begin(), search.frames.end(),
                        [&](Frame frame) { return frame >= module.start && frame < module.end; });
        if (wanted) table.add(module, module.file(*info));
        return 0;
      },
      &scan);
}

std::uint32_t ModuleTable::find_file(const ModuleDescription& module,
                                     std::uint64_t file_hash) const noexcept {
  const Module* const modules = storage_.rows<Module>(RegionId::modules);
  const std::uint64_t used = storage_.used(RegionId::modules);
  for (std::uint32_t row = 1; row < used; ++row) {
    const Module& known = modules[row];
    if (row_of_file(row).file_hash == file_hash && known.build_id_bytes == module.build_id_bytes &&
        std::memcmp(known.build_id, module.build_id, sizeof known.build_id) == 0 &&
        known.end - known.start == module.end - module.start) {
      return row;
    }
  }
  return 0;
}

void ModuleTable::add(const ModuleDescription& module, std::uint64_t file_hash) noexcept {
  char path[PATH_MAX];
  const std::size_t path_bytes = module.path.empty() ? 0 : absolute_path(module.path, path);
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  const std::size_t at = lower_bound(module.start);
  // The module is known already, or a module with these addresses was unloaded, and
  // modules_changed() has not seen that yet.
  if (at < known_count_ && known()[at].start < module.end) return;
  if (known_count_ == known_capacity_) return;
  std::uint32_t file = find_file(module, file_hash), row = 0;
  if (file == 0) {
    file = row = store(module, {path, path_bytes}, 0);
    if (row == 0) return;
    row_of_file(row).file_hash = file_hash;
  }
  Known* const slot = known() + at;
  std::memmove(slot + 1, slot, (known_count_ - at) * sizeof(Known));
  *slot = {.start = module.start,
           .end = module.end,
           .base = module.base,
           .identity = module.identity(),
           .generation = generation_,
           .row = row,
           .file = file};
  ++known_count_;
}

std::uint32_t ModuleTable::store(const ModuleDescription& module, std::string_view path,
                                 std::uint32_t file) noexcept {
  const auto row = static_cast<std::uint32_t>(storage_.allocate(RegionId::modules, 1));
  if (row == 0) {
    storage_.add_reason(reason_names_missing);
    return 0;
  }
  Module& stored = storage_.rows<Module>(RegionId::modules)[row];
  stored.file = file == 0 ? row : file;
  stored.build_id_bytes = module.build_id_bytes;
  std::memcpy(stored.build_id, module.build_id, sizeof stored.build_id);
  stored.path = path.empty() ? program_ : storage_.store(path);
  stored.base = module.base;
  stored.start = module.start;
  stored.end = module.end;
  stored.loaded_epoch = storage_.header().module_epoch.load(std::memory_order_relaxed);
  stored.state.store(1, std::memory_order_release);
  return row;
}

bool ModuleTable::lack_rows(std::span<const Frame> frames) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return false;
  return std::ranges::any_of(frames, [&](Frame frame) {
    const Known* const module = find(frame);
    return module != nullptr && module->row == 0;
  });
}

void ModuleTable::store_rows(std::span<const Frame> frames) noexcept {
  if (!lack_rows(frames)) return;
  const ErrnoGuard guard;
  struct Scan {
    ModuleTable& table;
    std::span<const Frame> frames;
  } scan{*this, frames};
  loader_walks.walk(
      [](dl_phdr_info* info, std::size_t, void* data) {
        const auto& search = *static_cast<const Scan*>(data);
        ModuleDescription module;
        const bool wanted =
            module.read(*info) && std::ranges::any_of(search.frames, [&](Frame frame) {
              return frame >= module.start && frame < module.end;
            });
        if (wanted) search.table.store_row_of(module);
        return 0;
      },
      &scan);
}

void ModuleTable::store_row_of(const ModuleDescription& module) noexcept {
  char path[PATH_MAX];
  const std::size_t path_bytes = module.path.empty() ? 0 : absolute_path(module.path, path);
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  Known* const entry = find(module.start);
  if (entry == nullptr || entry->row != 0 || entry->identity != module.identity()) return;
  entry->row = store(module, {path, path_bytes}, entry->file);
  if (entry->row == 0) return;
  row_of_file(entry->row).next = row_of_file(entry->file).next;
  row_of_file(entry->file).next = entry->row;
}

// The caller holds the lock. Calls visit(file, offset) for each frame until it returns false. File
// 0 stands for no module; the offset is then the address.
template <class Visit>
void ModuleTable::each_location(std::span<const Frame> frames, const Visit& visit) const noexcept {
  const Known* module = nullptr;
  for (const Frame frame : frames) {
    if (module == nullptr || frame < module->start || frame >= module->end) module = find(frame);
    const bool going_on =
        module == nullptr ? visit(0u, frame) : visit(module->file, frame - module->base);
    if (!going_on) return;
  }
}

std::uint64_t ModuleTable::hash_of_locations(std::span<const Frame> frames) noexcept {
  std::uint64_t hash = frames.size();
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return 0;
  each_location(frames, [&](std::uint32_t file, std::uint64_t offset) {
    hash = hash_pair(hash_pair(hash, file), offset);
    return true;
  });
  return hash;
}

std::string_view ModuleTable::path_at(Frame frame, std::uint64_t epoch) const noexcept {
  const Module* const modules = storage_.rows<Module>(RegionId::modules);
  const std::uint64_t used = storage_.used(RegionId::modules);
  for (std::uint64_t row = 1; row < used; ++row) {
    const Module& module = modules[row];
    if (module.state.load(std::memory_order_acquire) != 1) continue;
    const std::uint64_t unloaded = module.unloaded_epoch.load(std::memory_order_acquire);
    if (frame >= module.start && frame < module.end && module.loaded_epoch <= epoch &&
        (unloaded == 0 || epoch < unloaded))
      return {storage_.rows<char>(RegionId::strings) + module.path.offset, module.path.length};
  }
  return {};
}

bool ModuleTable::was_at(std::uint32_t file, std::uint64_t offset, Frame frame,
                         std::uint64_t epoch) const noexcept {
  const Module* const modules = storage_.rows<Module>(RegionId::modules);
  for (std::uint32_t row = file; row != 0; row = row_of_file(row).next) {
    const Module& module = modules[row];
    const std::uint64_t unloaded = module.unloaded_epoch.load(std::memory_order_relaxed);
    if (module.base + offset == frame && module.loaded_epoch <= epoch &&
        (unloaded == 0 || epoch < unloaded)) {
      return true;
    }
  }
  return false;
}

bool ModuleTable::are_same_locations(std::span<const Frame> frames, const Frame* stored,
                                     std::uint64_t epoch) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return false;
  bool same = true;
  each_location(frames, [&](std::uint32_t file, std::uint64_t offset) {
    same = file == 0 ? *stored == offset : was_at(file, offset, *stored, epoch);
    ++stored;
    return same;
  });
  return same;
}

std::uint64_t ModuleTable::mark_present() noexcept {
  const ErrnoGuard guard;
  struct Scan {
    ModuleTable& table;
    std::uint64_t generation;
  } scan{*this, 0};
  {
    const LedgerLocked locked(lock_, storage_);
    if (!locked) return 0;
    scan.generation = ++generation_;
  }
  loader_walks.walk(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& search = *static_cast<Scan*>(data);
        ModuleDescription module;
        if (!module.read(*info)) return 0;
        const std::uint64_t identity = module.identity();
        const LedgerLocked locked(search.table.lock_, search.table.storage_);
        if (!locked) return 1;
        Known* const entry = search.table.find(module.start);
        if (entry != nullptr && entry->start == module.start && entry->identity == identity) {
          entry->generation = std::max(entry->generation, search.generation);
        }
        return 0;
      },
      &scan);
  return scan.generation;
}

bool ModuleTable::take_unmarked(std::uint64_t generation, Gone& gone) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return false;
  for (std::size_t i = 0; i < known_count_; ++i) {
    const Known entry = known()[i];
    if (entry.generation >= generation) continue;
    std::atomic<std::uint64_t>& epoch = storage_.header().module_epoch;
    const std::uint64_t ended = epoch.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (entry.row != 0) {
      storage_.rows<Module>(RegionId::modules)[entry.row].unloaded_epoch.store(
          ended, std::memory_order_release);
    }
    std::memmove(known() + i, known() + i + 1, (known_count_ - i - 1) * sizeof(Known));
    --known_count_;
    gone = {entry.start, entry.end};
    return true;
  }
  return false;
}

}  // namespace cuwarden::ledger
