// The variants of a function that this process has loaded.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "call_arguments.hpp"
#include "callable_runner.hpp"
#include "declaration.hpp"
#include "loaded_variant.hpp"

namespace warmgraph {

/// One thread at a time, but for what says otherwise.
class LoadedVariants {
public:
    using Iterator = std::list<LoadedVariant>::iterator;
    using Predicate = std::function<bool(const LoadedVariant& variant)>;

    /// `store`: null where caching is off. `most`: so many are kept; more only where more are restored ahead.
    LoadedVariants(std::shared_ptr<const Declaration> declaration, std::shared_ptr<store::LocalStore> store,
                   std::size_t most);

    /// The most recently used first, unused ones last.
    [[nodiscard]] Iterator begin() noexcept { return m_variants.begin(); }
    [[nodiscard]] Iterator end() noexcept { return m_variants.end(); }
    [[nodiscard]] Iterator find(const Digest& digest);

    /// As the one that is used now. Makes room for it.
    Iterator keep(LoadedVariant variant);
    /// Restored ahead: it is last, and takes nobody's place.
    void keep_unused(LoadedVariant variant);
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

    /// The variant that the last call was answered by, or made.
    struct Served {
        Digest guards_digest;
        bool waits = false; ///< a forward half that no entry has yet
    };
    /// nullopt: the last call ran as it is.
    [[nodiscard]] const std::optional<Served>& served() const noexcept { return m_served; }
    void set_served(std::optional<Served> served) noexcept { m_served = served; }

private:
    void note_launch(LoadedVariant& variant, backends::Stream& stream) const noexcept;
    void end_load(LoadedVariant& variant) const noexcept;

    std::shared_ptr<const Declaration> m_declaration;
    std::shared_ptr<store::LocalStore> m_store;
    std::list<LoadedVariant> m_variants;
    std::size_t m_most;
    std::optional<Served> m_served;
};

} // namespace warmgraph
