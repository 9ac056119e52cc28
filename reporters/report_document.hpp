// A report read back from its file.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace cuwarden {

class Naming;

class ReportDocument {
 public:
  // Null with `error` set to one line when the file is no report of this schema. The path may be
  // "-", for standard input.
  static std::optional<ReportDocument> load(const std::string& path, std::string& error,
                                            std::size_t most_bytes = SIZE_MAX);
  // As load(), with what the file holds. `path`: what the error line calls it.
  static std::optional<ReportDocument> parse(std::string_view content, const std::string& path,
                                             std::string& error);

  const nlohmann::json& root() const { return root_; }
  const nlohmann::json& table(const char* name) const;  // an empty array when it is missing
  // Rows by the id that other tables use; null when there is none.
  const nlohmann::json* stack(const nlohmann::json& id) const;
  const nlohmann::json* frame(const nlohmann::json& id) const;
  const nlohmann::json* module(const nlohmann::json& id) const;

  // Looks up the names that the report lacks. True if it has changed.
  bool complete_names(Naming&);

  // The last part of a module's path; empty when it is unknown.
  std::string module_name(const nlohmann::json& id) const;

 private:
  // Positions, not pointers: a document may be moved.
  using Index = std::map<std::int64_t, std::size_t>;
  Index index_of(const char* table) const;
  const nlohmann::json* find(const char* table, const Index&, const nlohmann::json& id) const;

  nlohmann::json root_;
  nlohmann::json none_ = nlohmann::json::array();
  Index stacks_, frames_, modules_;
};

}  // namespace cuwarden
