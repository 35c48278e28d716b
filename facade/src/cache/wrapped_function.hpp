// What a cache asks of its functions.
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

/// Thread-safe. It keeps the function alive no longer than one of these calls, and does nothing once that is gone.
class WrappedFunction {
public:
    explicit WrappedFunction(std::shared_ptr<const Declaration> declaration) : m_declaration(std::move(declaration)) {}
    WrappedFunction(const WrappedFunction&) = delete;
    WrappedFunction& operator=(const WrappedFunction&) = delete;
    virtual ~WrappedFunction() = default;

    [[nodiscard]] const Declaration& declaration() const noexcept { return *m_declaration; }
    [[nodiscard]] virtual bool exists() const = 0;
    /// Whether a call of it was answered.
    [[nodiscard]] virtual bool is_settled() const = 0;
    /// As Function::Impl::record_pending().
    virtual std::size_t record_pending() const = 0;
    /// Its entries on disk whose facts hold here; none under the policies off and refresh.
    [[nodiscard]] virtual std::vector<PreloadCandidate> preload_candidates() const = 0;
    /// nullopt: it is gone, has this entry loaded already, or `stop` came first. Waits for a call of it.
    [[nodiscard]] virtual std::optional<PreloadFor> preload_for(const Digest& entry,
                                                                const std::stop_token& stop) const = 0;
    /// Counted and logged.
    virtual void note_preload_failure(const Error& error) const = 0;

private:
    std::shared_ptr<const Declaration> m_declaration;
};

} // namespace warmgraph
