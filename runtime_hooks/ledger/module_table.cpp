// dl_iterate_phdr gives the modules of the main namespace; frames in others (dlmopen) and in
// generated code stay plain addresses.
#include "runtime_hooks/ledger/module_table.hpp"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/hash.hpp"

namespace cuwarden::ledger {

struct ModuleTable::Description {
  std::uint64_t base = 0, start = 0, end = 0;
  std::uint8_t build_id[sizeof(Module::build_id)] = {};
  std::uint32_t build_id_bytes = 0;
  std::string_view path;  // as the loader has it; empty for the program itself

  std::uint64_t identity() const noexcept {
    std::uint64_t hash = hash_pair(base, build_id_bytes);
    for (const std::uint8_t byte : build_id) hash = hash_pair(hash, byte);
    for (const char letter : path) hash = hash_pair(hash, static_cast<unsigned char>(letter));
    return hash;
  }
};

namespace {

// The notes of a loaded segment: (name size, value size, type), name, value, each padded to 4.
void read_build_id(const std::byte* notes, std::uint64_t bytes, std::uint8_t* into,
                   std::uint32_t capacity, std::uint32_t& length) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const std::uint64_t name_bytes = round_up(note.n_namesz, 4);
    const std::uint64_t value_bytes = round_up(note.n_descsz, 4);
    const std::uint64_t whole = sizeof note + name_bytes + value_bytes;
    if (whole > bytes) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + sizeof note, "GNU", 4) == 0) {
      length = std::min<std::uint32_t>(note.n_descsz, capacity);
      std::memcpy(into, notes + sizeof note + name_bytes, length);
      return;
    }
    notes += whole;
    bytes -= whole;
  }
}

// The loader keeps the name as it was given; a relative one is completed while it may still hold.
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
  const RegionExtent& extent = storage_.file().geometry().regions[index_of(RegionId::modules)];
  known_capacity_ = extent.capacity_bytes / extent.row_bytes;
  known_ = Mapping::anonymous(known_capacity_ * sizeof(Known));
  loaded_ = Mapping::anonymous(known_capacity_ * sizeof(Gone));
  return known_ && loaded_;
}

bool ModuleTable::describe(const dl_phdr_info& info, Description& module) noexcept {
  module.base = info.dlpi_addr;
  module.path = info.dlpi_name == nullptr ? "" : info.dlpi_name;
  std::uint64_t low = UINT64_MAX, high = 0;
  for (std::size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const std::uint64_t start = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      low = std::min<std::uint64_t>(low, start / page_bytes * page_bytes);
      high = std::max<std::uint64_t>(high, start + segment.p_memsz);
    } else if (segment.p_type == PT_NOTE && module.build_id_bytes == 0) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader says that it is mapped there
      read_build_id(reinterpret_cast<const std::byte*>(start), segment.p_memsz, module.build_id,
                    sizeof module.build_id, module.build_id_bytes);
    }
  }
  module.start = low;
  module.end = high;
  return low < high;
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
  return first;  // the first module that ends behind the address
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
    if (find(frame) != nullptr) continue;
    const bool in_a_module = std::any_of(loaded, loaded + loaded_count_, [&](const Gone& range) {
      return frame >= range.start && frame < range.end;
    });
    if (in_a_module) return Coverage::missing;
    found = Coverage::generated_code;
  }
  return found;
}

void ModuleTable::note_loaded(const Description& module, bool first) noexcept {
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
    bool may_stop;  // at the first glance, where nothing was loaded since the last scan
    bool first;
  } scan{*this, frames, now == Coverage::generated_code, true};
  // The loader lets one iteration run at a time.
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& search = *static_cast<Scan*>(data);
        ModuleTable& table = search.table;
        if (search.first) {
          const std::uint64_t scanned = table.scanned_adds_.load(std::memory_order_relaxed);
          if (search.may_stop && scanned == info->dlpi_adds) return 1;
          table.scanned_adds_.store(info->dlpi_adds, std::memory_order_relaxed);
        }
        Description module;
        if (!describe(*info, module)) return 0;
        table.note_loaded(module, search.first);
        search.first = false;
        const bool wanted =
            std::any_of(search.frames.begin(), search.frames.end(),
                        [&](Frame frame) { return frame >= module.start && frame < module.end; });
        if (wanted) table.add(module);
        return 0;
      },
      &scan);
}

void ModuleTable::add(const Description& module) noexcept {
  char path[PATH_MAX];
  const std::size_t path_bytes = module.path.empty() ? 0 : absolute_path(module.path, path);
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  const std::size_t at = lower_bound(module.start);
  // Known already, or in the place of one whose end modules_changed() has not seen yet.
  if (at < known_count_ && known()[at].start < module.end) return;
  if (known_count_ == known_capacity_) return;
  const std::uint64_t row = storage_.allocate(RegionId::modules, 1);
  if (row == 0) {
    storage_.add_reason(reason_ledger_full);
    return;
  }
  Module& stored = storage_.rows<Module>(RegionId::modules)[row];
  stored.build_id_bytes = module.build_id_bytes;
  std::memcpy(stored.build_id, module.build_id, sizeof stored.build_id);
  stored.path = path_bytes == 0 ? program_ : storage_.store({path, path_bytes});
  stored.base = module.base;
  stored.start = module.start;
  stored.end = module.end;
  stored.loaded_epoch = storage_.header().module_epoch.load(std::memory_order_relaxed);
  stored.state.store(1, std::memory_order_release);

  Known* const place = known() + at;
  std::memmove(place + 1, place, (known_count_ - at) * sizeof(Known));
  *place = {module.start,      module.end,  module.base,
            module.identity(), generation_, static_cast<std::uint32_t>(row)};
  ++known_count_;
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
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& search = *static_cast<Scan*>(data);
        Description module;
        if (!describe(*info, module)) return 0;
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
    storage_.rows<Module>(RegionId::modules)[entry.row].unloaded_epoch.store(
        ended, std::memory_order_release);
    std::memmove(known() + i, known() + i + 1, (known_count_ - i - 1) * sizeof(Known));
    --known_count_;
    gone = {entry.start, entry.end};
    return true;
  }
  return false;
}

}  // namespace cuwarden::ledger
