// The variants of a function that this process has loaded.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "warmgraph/call/call_arguments.hpp"
#include "warmgraph/call/callable_runner.hpp"
#include "warmgraph/call/declaration.hpp"
#include "warmgraph/call/loaded_variant.hpp"
#include "warmgraph/pairs/pair_role.hpp"

namespace warmgraph {

/// One thread at a time may use an object, unless a function's comment says otherwise.
class LoadedVariants {
public:
    using Iterator = std::list<LoadedVariant>::iterator;
    using Predicate = std::function<bool(const LoadedVariant& variant)>;

    /// `store`: null if caching is off. `most`: how many variants are kept besides preloaded variants.
    LoadedVariants(std::shared_ptr<const Declaration> declaration, std::shared_ptr<store::LocalStore> store,
                   std::size_t most);

    /// Iterates over the variants, the most recently used variant first.
    [[nodiscard]] Iterator begin() noexcept { return m_variants.begin(); }
    [[nodiscard]] Iterator end() noexcept { return m_variants.end(); }
    [[nodiscard]] Iterator find(const Digest& digest);

    /// Adds the variant as the most recently used one. Removes an older variant if there are too many, unless this one
    /// was preloaded.
    Iterator keep(LoadedVariant variant);
    /// Call this when the variant answered a call.
    void use(Iterator variant);
    [[nodiscard]] LoadedVariant take(Iterator variant);
    void erase(Iterator variant) { m_variants.erase(variant); }
    void erase_if(const Predicate& is_gone);
    /// Removes all variants. Logs the adopted variants that cannot be loaded again.
    void erase_all(std::string_view why);

    /// Binds and launches the variant, after the function's last launch. stale: the variant is for another kind of
    /// memory (host or device). Throws partly_launched: the function cannot run instead, because the enqueued part
    /// would run twice.
    [[nodiscard]] Result<void> launch(LoadedVariant& variant, const std::shared_ptr<backends::Stream>& stream,
                                      CallArguments& arguments, CallableRunner& runner,
                                      replay::AskedCapture asked = replay::AskedCapture::no) const;
    /// Instantiates the part of the graph that was left for later.
    [[nodiscard]] Result<void> complete(LoadedVariant& variant) const;

    // --- for the forward of a pair

    /// Returns the variant that answered the last call or was recorded from that call; nullopt if the call ran without
    /// a graph.
    [[nodiscard]] const std::optional<ServedForward>& served() const noexcept { return m_served; }
    void note_served(const LoadedVariant& variant);
    void forget_served() noexcept { m_served.reset(); }
    /// Call this when the variant's backward was recorded.
    void end_wait(const cachefmt::RecordingId& forward);
    /// Call this when the forward's backward cannot be recorded. The forward then runs without a graph too.
    void give_up(const cachefmt::RecordingId& forward);

private:
    void note_launch(LoadedVariant& variant, backends::Stream& stream) const noexcept;
    void end_load(LoadedVariant& variant) const noexcept;

    std::shared_ptr<const Declaration> m_declaration;
    std::shared_ptr<store::LocalStore> m_store;
    std::list<LoadedVariant> m_variants;
    std::size_t m_most;
    std::optional<ServedForward> m_served;
};

} // namespace warmgraph
