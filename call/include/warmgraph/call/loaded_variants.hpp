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

/// One thread at a time, but for what says otherwise.
class LoadedVariants {
public:
    using Iterator = std::list<LoadedVariant>::iterator;
    using Predicate = std::function<bool(const LoadedVariant& variant)>;

    /// `store`: null where caching is off. `most`: so many are kept, besides those that were preloaded.
    LoadedVariants(std::shared_ptr<const Declaration> declaration, std::shared_ptr<store::LocalStore> store,
                   std::size_t most);

    /// The most recently used first.
    [[nodiscard]] Iterator begin() noexcept { return m_variants.begin(); }
    [[nodiscard]] Iterator end() noexcept { return m_variants.end(); }
    [[nodiscard]] Iterator find(const Digest& digest);

    /// As the one that is used now. Makes room for it, where it was not preloaded.
    Iterator keep(LoadedVariant variant);
    /// It answered a call.
    void use(Iterator variant);
    [[nodiscard]] LoadedVariant take(Iterator variant);
    void erase(Iterator variant) { m_variants.erase(variant); }
    void erase_if(const Predicate& is_gone);
    /// Says in the log what was adopted and cannot be loaded again.
    void erase_all(std::string_view why);

    /// Binds and launches it, after the function's last launch. stale: the variant is for memory elsewhere. Throws
    /// partly_launched: the function cannot run instead, as the part that was enqueued would happen twice.
    [[nodiscard]] Result<void> launch(LoadedVariant& variant, const std::shared_ptr<backends::Stream>& stream,
                                      CallArguments& arguments, CallableRunner& runner,
                                      replay::AskedCapture asked = replay::AskedCapture::no) const;
    /// Instantiates what was left for later.
    [[nodiscard]] Result<void> complete(LoadedVariant& variant) const;

    // --- of a pair's forward

    /// What the last call was answered by, or recorded as; nullopt where it ran as it is.
    [[nodiscard]] const std::optional<ServedForward>& served() const noexcept { return m_served; }
    void note_served(const LoadedVariant& variant);
    void forget_served() noexcept { m_served.reset(); }
    /// Its backward is there from now on.
    void end_wait(const cachefmt::RecordingId& forward);
    /// Its backward cannot be recorded: it runs as it is, too.
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
