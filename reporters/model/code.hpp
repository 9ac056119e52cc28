// Tables of the report about the program's code. report.schema.json describes each field.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// A call stack.
struct Stack {
  Id id = 0;
  std::vector<Id> frames;  // innermost first
  bool truncated = false;
  CUWARDEN_FIELDS(id, frames, truncated)
};

// A function on call stacks. An inlined function has a frame of its own.
struct Frame {
  Id id = 0;
  Text function, file;  // null: unknown
  Figure line;
  bool inlined = false;
  MaybeId module;  // null: in no known module
  Figure offset;   // in the module
  Text language;
  Text address;  // of code in no module
  CUWARDEN_FIELDS(id, function, file, line, inlined, module, offset, language, address)
  CUWARDEN_MAY_LACK(language, address)
};

// A file of code on call stacks.
struct Module {
  Id id = 0;
  std::string path;
  Text build_id;  // hexadecimal; null: none
  CUWARDEN_FIELDS(id, path, build_id)
  CUWARDEN_MAY_LACK(build_id)
};

}  // namespace cuwarden::model
