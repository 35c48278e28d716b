// What the guards of a call depend on beside its arguments: the facts, environment variables, the device's modules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/call/declaration.hpp"
#include "warmgraph/call/job.hpp"

namespace warmgraph {

/// One thread at a time.
class Surroundings {
public:
    using Gather = std::function<std::vector<cachefmt::Fact>()>;
    /// `gather`: the facts of the function, here and now; asked at the first call, and when the environment changed.
    Surroundings(std::shared_ptr<const Declaration> declaration, Gather gather);

    struct Change {
        std::string_view drops_all{}; ///< why nothing that is loaded may be used any more; empty where it may
        bool exposed = false;         ///< the program asked for the address of some module's variable
    };
    /// Since the last time.
    [[nodiscard]] Change notice();
    /// The facts, here and now. Thread-safe.
    [[nodiscard]] std::vector<cachefmt::Fact> gather() const { return m_gather(); }
    /// Fills the guards of the call and their digest.
    void describe(const Frame& frame, Journey& journey);
    /// Values of the variables that the Spec names, at the last notice().
    [[nodiscard]] const std::vector<std::string>& environment() const noexcept { return m_environment; }

private:
    std::shared_ptr<const Declaration> m_declaration;
    Gather m_gather;
    std::vector<cachefmt::Fact> m_facts;
    std::vector<std::string> m_environment;
    std::uint64_t m_registrations; ///< of modules
    std::uint64_t m_exposures;     ///< of their variables
};

/// What the variables that the Spec names hold now, in its order; "(unset)" for none.
[[nodiscard]] std::vector<std::string> environment_of(const Spec& spec);

} // namespace warmgraph
