// Reads by name, with a verdict on what was found.
#pragma once

#include <optional>

#include "header_memo.hpp"
#include "warmgraph/store/store.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::store {

/// Asks a tier for an object's stamp and none of its bytes.
inline constexpr Extent k_stamp_alone{0, false};

/// What becomes of an object that must not be used.
enum class Fate : std::uint8_t { refuse, leave };

/// An object and the verdict on it. A tier's failure is no verdict: it is the error around this.
template <class T>
struct Judged {
    Stamp stamp;       ///< as it was read: refuse() means only this state
    Result<T> content; ///< `corrupt` or `stale` when it must not be used
    Fate fate = Fate::refuse;
};

/// How somebody came to an entry. A key has the format in its guards, so that no other format is under its name; who
/// lists names may find a newer warmgraph's, which stay. A whole entry is read by name to be looked at, not to be used:
/// then no trust is asked.
enum class Asked : std::uint8_t { by_key, by_name };

[[nodiscard]] Result<std::optional<Judged<Entry>>> read_entry(Tier& tier, const EntryKey& key, const Caps& caps,
                                                              Asked asked);
[[nodiscard]] Result<std::optional<Judged<EntryHeader>>> read_header(Tier& tier, const EntryKey& key, const Caps& caps,
                                                                     Asked asked);
struct FoundHeader {
    EntryKey key;
    Result<Judged<Header>> header; ///< an Error: the tier's failure
};
/// Of all a function's entries, sorted; asked by name. What `memo` knows is not read again.
[[nodiscard]] Result<std::vector<FoundHeader>> read_headers(Tier& tier, const FunctionKey& function, const Caps& caps,
                                                            HeaderMemo& memo);
/// As read_header, by key.
[[nodiscard]] Result<std::optional<Judged<Header>>> known_header(Tier& tier, const EntryKey& key, const Caps& caps,
                                                                 HeaderMemo& memo);
[[nodiscard]] Result<std::optional<Judged<Bytes>>> read_image(Tier& tier, const Digest& digest, std::uint64_t cap);

/// Tells the tier where the verdict says so.
template <class T>
void refuse(Tier& tier, const Name& name, const Judged<T>& judged) noexcept
{
    if (judged.fate == Fate::refuse) tier.refuse(name, judged.stamp, judged.content.error());
}

} // namespace warmgraph::store
