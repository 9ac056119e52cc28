// Reads the dynamic sections, hash tables and version tables that the loader has mapped.
#include "shim/support/loaded_objects.hpp"

#include <pthread.h>

#include <atomic>
#include <optional>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/loader_walk.hpp"
#include "shim/support/held_signals.hpp"

namespace cuwarden::shim {

LoadedObject::LoadedObject(const dl_phdr_info& info) : base_(info.dlpi_addr) {
  if (info.dlpi_name != nullptr) path_ = info.dlpi_name;
  start_ = ~std::uintptr_t{0};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const Elf64_Phdr& header = info.dlpi_phdr[i];
    if (header.p_type == PT_DYNAMIC)
      dynamic_ = reinterpret_cast<const Elf64_Dyn*>(base_ + header.p_vaddr);
    if (header.p_type != PT_LOAD) continue;
    if (base_ + header.p_vaddr < start_) start_ = base_ + header.p_vaddr;
    if (base_ + header.p_vaddr + header.p_memsz > end_)
      end_ = base_ + header.p_vaddr + header.p_memsz;
  }
  const Elf64_Rela *calls = nullptr, *others = nullptr;
  std::size_t calls_bytes = 0, others_bytes = 0, relative_count = 0;
  for (const Elf64_Dyn* entry = dynamic_; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    // The loader has made these addresses absolute, except for some objects such as the vDSO.
    const auto address = [&] {
      const std::uintptr_t value = entry->d_un.d_ptr;
      return value < base_ ? base_ + value : value;
    };
    switch (entry->d_tag) {
      case DT_STRTAB:
        strings_ = reinterpret_cast<const char*>(address());
        break;
      case DT_SYMTAB:
        symbols_ = reinterpret_cast<const Elf64_Sym*>(address());
        break;
      case DT_GNU_HASH:
        gnu_hash_ = reinterpret_cast<const std::uint32_t*>(address());
        break;
      case DT_HASH:
        sysv_hash_ = reinterpret_cast<const std::uint32_t*>(address());
        break;
      case DT_VERSYM:
        versions_ = reinterpret_cast<const std::uint16_t*>(address());
        break;
      case DT_JMPREL:
        calls = reinterpret_cast<const Elf64_Rela*>(address());
        break;
      case DT_PLTRELSZ:
        calls_bytes = entry->d_un.d_val;
        break;
      case DT_RELA:
        others = reinterpret_cast<const Elf64_Rela*>(address());
        break;
      case DT_RELASZ:
        others_bytes = entry->d_un.d_val;
        break;
      case DT_RELACOUNT:
        relative_count = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (strings_ == nullptr || symbols_ == nullptr) dynamic_ = nullptr;
  if (dynamic_ == nullptr) return;
  if (calls != nullptr) calls_ = {calls, calls_bytes / sizeof(Elf64_Rela)};
  // Relocations that name no symbol come first.
  const std::size_t count = others_bytes / sizeof(Elf64_Rela);
  if (others != nullptr && relative_count < count)
    others_ = {others + relative_count, count - relative_count};
}

std::string_view LoadedObject::soname() const {
  for (const Elf64_Dyn* entry = dynamic_; entry != nullptr && entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_SONAME) return strings_ + entry->d_un.d_val;
  const std::size_t slash = path_.rfind('/');
  return slash == std::string_view::npos ? path_ : path_.substr(slash + 1);
}

bool LoadedObject::is_shim() const {
  return contains(reinterpret_cast<std::uintptr_t>(&is_library));
}

bool LoadedObject::matches(std::uint32_t index, std::string_view name) const {
  constexpr std::uint16_t hidden_version = 0x8000;  // not the default version of its name
  const Elf64_Sym& symbol = symbols_[index];
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_OBJECT) &&
         (versions_ == nullptr || (versions_[index] & hidden_version) == 0) &&
         name == strings_ + symbol.st_name;
}

const Elf64_Sym* LoadedObject::find_by_gnu_hash(std::string_view name) const {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  const std::uint32_t bucket_count = gnu_hash_[0], first_hashed = gnu_hash_[1];
  const std::uint32_t filter_words = gnu_hash_[2], filter_shift = gnu_hash_[3];
  if (bucket_count == 0 || filter_words == 0) return nullptr;
  // The filter has two bits for each name of the table. Most objects lack most names.
  const auto* filter = reinterpret_cast<const std::uint64_t*>(gnu_hash_ + 4);
  const std::uint64_t bits = filter[hash / 64 % filter_words];
  if ((bits >> (hash % 64) & bits >> ((hash >> filter_shift) % 64) & 1) == 0) return nullptr;
  const std::uint32_t* buckets = reinterpret_cast<const std::uint32_t*>(filter + filter_words);
  const std::uint32_t* chain = buckets + bucket_count;
  std::uint32_t index = buckets[hash % bucket_count];
  if (index < first_hashed) return nullptr;
  for (;; ++index) {
    const std::uint32_t entry = chain[index - first_hashed];
    if ((entry | 1) == (hash | 1) && matches(index, name)) return &symbols_[index];
    if ((entry & 1) != 0) return nullptr;
  }
}

const Elf64_Sym* LoadedObject::find_by_sysv_hash(std::string_view name) const {
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    const std::uint32_t high = hash & 0xf0000000;
    hash ^= high >> 24;
    hash &= ~high;
  }
  const std::uint32_t bucket_count = sysv_hash_[0];
  if (bucket_count == 0) return nullptr;
  const std::uint32_t* buckets = sysv_hash_ + 2;
  const std::uint32_t* chain = buckets + bucket_count;
  for (std::uint32_t index = buckets[hash % bucket_count]; index != 0; index = chain[index])
    if (matches(index, name)) return &symbols_[index];
  return nullptr;
}

const Elf64_Sym* LoadedObject::symbol(std::string_view name) const {
  if (dynamic_ == nullptr) return nullptr;
  if (gnu_hash_ != nullptr) return find_by_gnu_hash(name);
  return sysv_hash_ != nullptr ? find_by_sysv_hash(name) : nullptr;
}

void* LoadedObject::find(std::string_view name) const {
  const Elf64_Sym* const found = symbol(name);
  return found == nullptr || ELF64_ST_TYPE(found->st_info) != STT_FUNC
             ? nullptr
             : reinterpret_cast<void*>(base_ + found->st_value);
}

LoadedObject::Exported LoadedObject::find_any(std::string_view name) const {
  const Elf64_Sym* const found = symbol(name);
  if (found == nullptr) return {};
  return {reinterpret_cast<void*>(base_ + found->st_value), found->st_size};
}

namespace {

// Thread pointer of the thread that visits the objects and holds signals back; null: none. The
// loader's lock lets one thread in at a time.
constinit std::atomic<const void*> visitor{nullptr};

using VisitDescription = FunctionRef<bool(const dl_phdr_info&)>;

bool visit(VisitDescription function, bool holds_signals) {
  struct Task {
    VisitDescription function;
    bool may_hold;
    std::optional<HeldSignals> held;
  } task{function, !holds_signals && !is_confined(), {}};
  const bool found = loader_walks.walk(
                         [](dl_phdr_info* info, size_t, void* data) {
                           auto& wanted = *static_cast<Task*>(data);
                           if (wanted.may_hold && !wanted.held) {
                             wanted.held.emplace();
                             visitor.store(__builtin_thread_pointer());
                           }
                           return wanted.function(*info) ? 1 : 0;
                         },
                         &task) != 0;
  // Another thread may have set the variable since the lock was given back.
  const void* own = __builtin_thread_pointer();
  if (task.held) visitor.compare_exchange_strong(own, nullptr);
  return found;
}

// Calls function(description) for each loaded object, until a call returns true. Returns true if
// one did. Signals are held back, because a handler that jumped away or that waited for another
// thread would keep the loader's lock for ever. A garbage collector's handler may stop a thread
// that holds the lock; signals of collectors are held back only once this thread has the lock, too.
// A visit inside another one changes nothing.
bool visit_descriptions(VisitDescription function) {
  if (visitor.load(std::memory_order_relaxed) == __builtin_thread_pointer())
    return visit(function, true);
  std::optional<HeldSignals> held_before;
  if (!is_confined()) held_before.emplace(HeldSignals::Which::but_collectors);
  return visit(function, false);
}

}  // namespace

bool detail::visit_loaded_objects(VisitObject function, void* argument) {
  return visit_descriptions(
      [&](const dl_phdr_info& info) { return function(LoadedObject(info), argument); });
}

namespace {

constinit std::atomic<std::size_t> startup_objects{SIZE_MAX};

}  // namespace

namespace {

// Returns one of the loader's counters, which every object's description has.
std::uint64_t loader_counter(unsigned long long dl_phdr_info::*counter) {
  std::uint64_t answer = 0;
  visit_descriptions([&](const dl_phdr_info& info) {
    answer = info.*counter;
    return true;
  });
  return answer;
}

// Returns the first object of the loader's list for which is_wanted(object) is true; an empty
// object if there is none.
template <class Condition>
LoadedObject first_object(const Condition& is_wanted) {
  LoadedObject found;
  any_loaded_object([&](const LoadedObject& object) {
    if (!is_wanted(object)) return false;
    found = object;
    return true;
  });
  return found;
}

}  // namespace

void keep_walks_and_forks_apart() {
  pthread_atfork([] { loader_walks.before_fork(); }, [] { loader_walks.after_fork(); },
                 [] { loader_walks.in_forked_child(); });
}

std::uint64_t loads_so_far() { return loader_counter(&dl_phdr_info::dlpi_adds); }
std::uint64_t unloaded_objects() { return loader_counter(&dl_phdr_info::dlpi_subs); }

void note_startup_objects() {
  std::size_t count = 0;
  any_loaded_object([&](const LoadedObject&) {
    ++count;
    return false;
  });
  startup_objects.store(count, std::memory_order_relaxed);
}

std::size_t detail::startup_object_count() {
  return startup_objects.load(std::memory_order_relaxed);
}

std::size_t detail::position_of(const LoadedObject& wanted) {
  std::size_t position = 0;
  any_loaded_object([&](const LoadedObject& object) {
    if (object.start() == wanted.start()) return true;
    ++position;
    return false;
  });
  return position;
}

LoadedObject detail::object_in_position(std::size_t position) {
  return first_object([&](const LoadedObject&) { return position-- == 0; });
}

LoadedObject object_at(std::uintptr_t address) {
  return first_object([&](const LoadedObject& object) { return object.contains(address); });
}

LoadedObject object_named(std::string_view name) {
  return first_object(
      [&](const LoadedObject& object) { return object.soname() == name || object.path() == name; });
}

bool is_library(std::string_view soname, std::string_view stem) {
  return soname.starts_with(stem) && (soname.size() == stem.size() || soname[stem.size()] == '.');
}

}  // namespace cuwarden::shim
