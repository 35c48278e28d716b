// Makes objects that a test leaves alive on purpose.
#pragma once

#include <utility>
#include <vector>

namespace warmgraph::test {

/// An object that is never destroyed. It stays reachable, so that LeakSanitizer does not report it.
template <class T, class... Args>
T& never_destroyed(Args&&... args)
{
    static std::vector<T*>& all = *new std::vector<T*>;
    all.push_back(new T(std::forward<Args>(args)...));
    return *all.back();
}

} // namespace warmgraph::test
