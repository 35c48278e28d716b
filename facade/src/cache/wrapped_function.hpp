// The interface through which a cache uses its functions.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "warmgraph/call/declaration.hpp"
#include "warmgraph/call/lookup.hpp"
#include "warmgraph/preload/preload_entry.hpp"

namespace warmgraph {

/// Thread-safe. Each call keeps the function alive only until the call ends, and does nothing if the function is
/// destroyed.
class WrappedFunction {
public:
    explicit WrappedFunction(std::shared_ptr<const Declaration> declaration) : m_declaration(std::move(declaration)) {}
    WrappedFunction(const WrappedFunction&) = delete;
    WrappedFunction& operator=(const WrappedFunction&) = delete;
    virtual ~WrappedFunction() = default;

    [[nodiscard]] const Declaration& declaration() const noexcept { return *m_declaration; }
    [[nodiscard]] virtual bool exists() const = 0;
    /// Whether a call of the function was answered.
    [[nodiscard]] virtual bool is_settled() const = 0;
    /// As Function::Impl::record_pending().
    virtual std::size_t record_pending() const = 0;
    /// Returns the function's entries on disk whose facts hold here; none under the policies off and refresh.
    [[nodiscard]] virtual std::vector<PreloadCandidate> preload_candidates() const = 0;
    /// Returns the data for preloading an entry of this function. Waits for calls of the function. nullopt: the
    /// function is destroyed, has this entry already, or `stop` came first.
    [[nodiscard]] virtual std::optional<PreloadClient> preload_for(const Digest& entry,
                                                                   const std::stop_token& stop) const = 0;
    /// Counts and logs a failed preload.
    virtual void note_preload_failure(const Error& error) const = 0;

private:
    std::shared_ptr<const Declaration> m_declaration;
};

} // namespace warmgraph
