// Reads modules of PyTorch as Walker._read_one (python/warmgraph/torch/_walking.py) does, where they are of the common
// kind: what the attributes, the children and the tensors are. The rest it hands to the walker, in its turn.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "value_reader.hpp"

namespace warmgraph::python {

class ModuleReader : ValueReader {
public:
    using ValueReader::ValueReader;

    /// Throws Raised.
    void read(Object* path, Object* module);

private:
    /// What a module is made of: by the names of its attributes, in their order.
    struct Attributes {
        Ref dict;
        std::vector<Pair> pairs;
        static constexpr std::size_t k_parts = 5; ///< parameters, buffers, modules, hooks after and before the call
        std::array<std::vector<Pair>, k_parts> parts;
    };
    struct Named {
        std::string name;
        std::ptrdiff_t at; ///< among the module's own; -1: of its class
        Object* value;     ///< of the class
    };
    struct Kind {
        bool is_common = false;
        std::string head; ///< what the fact of a module begins with
        Ref of_classes;   ///< values of its classes by name
        // Of the last module of this kind: most have the same names.
        std::vector<Object*> names;
        std::array<std::size_t, Attributes::k_parts> parts{};
        std::ptrdiff_t compiled = -1;
        std::vector<std::size_t> hooks;
        std::vector<Named> order;
    };
    struct Other {
        std::string name;
        Ref value;
    };

    void module(Object* path, Object* object);
    void child(std::string_view name, Object* value);
    void child_module(Object* path, Object* value);

    [[nodiscard]] Kind& kind_of(Object* kind);
    [[nodiscard]] bool is_module(Object* value, Object* kind);
    /// False where it is not of the common kind.
    [[nodiscard]] bool attributes(Kind& kind, Object* object, Attributes& found);
    [[nodiscard]] bool has_names_of(const Kind& kind, const std::vector<Pair>& pairs) const;
    [[nodiscard]] bool learn(Kind& kind, const Attributes& found);
    [[nodiscard]] bool finds_roles(Kind& kind, const std::vector<Pair>& pairs) const;
    [[nodiscard]] bool learn_order(Kind& kind, const Attributes& found);
    [[nodiscard]] bool read_parts(const Kind& kind, Attributes& found) const;
    [[nodiscard]] bool are_hooks_empty(const Kind& kind, const Attributes& found) const;
    [[nodiscard]] bool is_plain_dict(Object* value, std::ptrdiff_t most_of_ordered) const;
    void keep_module(Object* object, Object* type, const Kind& kind, const Attributes& found);
    [[nodiscard]] std::string described(const Kind& kind, const Attributes& found, std::vector<Other>& others) const;

    std::map<Object*, Kind> m_kinds;
};

} // namespace warmgraph::python
