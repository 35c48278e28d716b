// Views of Python's texts.
#pragma once

#include <cstddef>
#include <string_view>

#include "api.hpp"

namespace warmgraph::python {

/// Returns a text in UTF-8, valid as long as the object lives. Throws Raised if it has no UTF-8.
[[nodiscard]] inline std::string_view view_of(const Api& python, Object* text)
{
    std::ptrdiff_t size = 0;
    const char* const start = python.utf8_of(text, &size);
    if (start == nullptr) throw PythonError{};
    return {start, static_cast<std::size_t>(size)};
}

} // namespace warmgraph::python
