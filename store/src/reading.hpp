// Reads objects by name and judges them.
#pragma once

#include <chrono>
#include <optional>

#include "header_memo.hpp"
#include "warmgraph/store/store.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::store {

/// Asks a tier for an object's stamp and none of its bytes.
inline constexpr ReadLimit k_stamp_alone{0, false};

/// How long a read of a remote may take for this entry: as long as a hit saves. 0: not known.
[[nodiscard]] std::chrono::milliseconds worth_of(const EntryHeader& header);

/// The fate of an object that must not be used. refuse: Tier::refuse() is called for it; leave: it stays as it is.
enum class Fate : std::uint8_t { refuse, leave };

/// An object and the verdict on it. A failure of the tier is not a verdict: such a failure is the outer Error.
template <class T>
struct JudgedObject {
    Stamp stamp;       ///< refuse() applies only to this state
    Result<T> content; ///< `corrupt` or `stale` when it must not be used
    Fate fate = Fate::refuse;
};

/// How the caller found an entry. A key contains the format, so an entry of another format is damaged. A caller that
/// lists names may find entries of a newer warmgraph; these entries stay. A whole entry that is read by name is
/// displayed, not used, so its signature is not required.
enum class LookupBy : std::uint8_t { by_key, by_name };

/// `raw`: receives the entry's bytes from a remote. A remote is asked for the header first, and for the rest only if the
/// header is accepted, in at most the time that the header says a hit saves.
[[nodiscard]] Result<std::optional<JudgedObject<Entry>>> read_entry(Tier& tier, const EntryKey& key, const Caps& caps,
                                                                    LookupBy asked, Bytes* raw = nullptr);
[[nodiscard]] Result<std::optional<JudgedObject<EntryHeader>>> read_header(Tier& tier, const EntryKey& key,
                                                                           const Caps& caps, LookupBy asked);
struct NamedHeader {
    EntryKey key;
    Result<JudgedObject<Header>> header; ///< an Error: the tier failed
};
/// The headers of a function's entries, sorted, read as LookupBy::by_name. Headers in `memo` are not read again.
[[nodiscard]] Result<std::vector<NamedHeader>> read_headers(Tier& tier, const FunctionKey& function, const Caps& caps,
                                                            HeaderMemo& memo);
/// Like read_header with LookupBy::by_key, but takes the header from `memo` if it is there.
[[nodiscard]] Result<std::optional<JudgedObject<Header>>> known_header(Tier& tier, const EntryKey& key,
                                                                       const Caps& caps, HeaderMemo& memo);
/// `raw`: receives the bytes as they lie in the tier, perhaps compressed. `within`: as in ReadLimit.
[[nodiscard]] Result<std::optional<JudgedObject<Bytes>>> read_image(Tier& tier, const Digest& digest, std::uint64_t cap,
                                                                    Bytes* raw = nullptr,
                                                                    std::chrono::milliseconds within = {});

/// Calls Tier::refuse() for the object if the verdict is Fate::refuse.
template <class T>
void refuse(Tier& tier, const Name& name, const JudgedObject<T>& judged) noexcept
{
    if (judged.fate == Fate::refuse) tier.refuse(name, judged.stamp, judged.content.error());
}

} // namespace warmgraph::store
