// The guards of a call that do not depend on its arguments: facts, environment variables, the device's modules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/call/declaration.hpp"
#include "warmgraph/call/record_job.hpp"

namespace warmgraph {

/// One thread at a time may use an object.
class Surroundings {
public:
    using Gather = std::function<std::vector<cachefmt::Fact>()>;
    /// `gather` returns the present facts of the function. It is called at the first call and when the environment
    /// changed.
    Surroundings(std::shared_ptr<const Declaration> declaration, Gather gather);

    struct Change {
        /// Why no loaded variant may be used any more; empty if loaded variants may be used.
        std::string_view drops_all{};
        bool exposed = false; ///< whether the program asked for the address of a module's variable
    };
    /// Returns the changes since the last call of this function.
    [[nodiscard]] Change notice();
    /// Returns the present facts. Thread-safe.
    [[nodiscard]] std::vector<cachefmt::Fact> gather() const { return m_gather(); }
    /// Fills the guards of the call and their digest.
    void describe(const Frame& frame, FirstCall& first_call);
    /// The values at the last notice() of the environment variables that the Spec names.
    [[nodiscard]] const std::vector<std::string>& environment() const noexcept { return m_environment; }

private:
    std::shared_ptr<const Declaration> m_declaration;
    Gather m_gather;
    std::vector<cachefmt::Fact> m_facts;
    std::vector<std::string> m_environment;
    std::uint64_t m_registrations; ///< number of module registrations at the last notice()
    std::uint64_t m_exposures;     ///< number of exposed variables at the last notice()
};

/// Returns the present values of the environment variables that the Spec names, in the Spec's order; "(unset)" for a
/// variable that is not set.
[[nodiscard]] std::vector<std::string> environment_of(const Spec& spec);

} // namespace warmgraph
