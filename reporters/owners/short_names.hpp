// Short forms of demangled C++ names, for people.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden {

// Returns the name without anonymous namespaces, and with "…" in place of long lists in brackets:
// "at::native::(anonymous namespace)::copy<at::Tensor const&, long, long>(int)" becomes
// "at::native::copy<…>(int)". Lists of template arguments of up to 24 characters stay, and lists of
// parameters of up to 40, brackets included. `function`: a demangled name.
std::string short_name(std::string_view function);

// Returns the qualified name of a function, without parameters, template arguments and the result's
// type: "void std::vector<int>::resize(unsigned long)" becomes "std::vector::resize".
// `function`: a demangled name.
std::string name_alone(std::string_view function);

// Returns the last part of a name that has an anonymous namespace; empty for other names. Debug
// information has only that part, and the symbol table has the whole name. `name`: a result of
// name_alone(), into which the result points.
std::string_view last_part_of_nameless(std::string_view name);

}  // namespace cuwarden
