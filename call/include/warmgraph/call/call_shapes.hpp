// The shapes of a function's calls: counted, padded to buckets, and what of them is to be recorded before demand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/call/declaration.hpp"
#include "warmgraph/call/padding.hpp"
#include "warmgraph/profile.hpp"
#include "warmgraph/profile/shape_profile.hpp"

namespace warmgraph {

/// One thread at a time.
class CallShapes {
public:
    /// `profiles`: null where none is kept; outlives this.
    CallShapes(std::shared_ptr<const Declaration> declaration, ProfileKeeper* profiles);
    CallShapes(const CallShapes&) = delete;
    CallShapes& operator=(const CallShapes&) = delete;
    ~CallShapes();

    [[nodiscard]] bool is_padded() const noexcept { return m_padding != nullptr; }
    /// A call that is not padded.
    void count(const Frame& frame) { count(frame, nullptr); }
    /// What a call is padded to. Throws invalid_argument. `counts`: the call is counted.
    [[nodiscard]] PaddedSizes choose(const Frame& frame, bool counts);
    /// As Padding's; throw what it refuses.
    void pad(Frame& frame, const PaddedSizes& padded, backends::Stream& stream);
    void give_back(backends::Stream& stream);
    /// Throws for a call whose sizes are no multiple of what is asked: a graph of the caller's would use the padded
    /// memory whenever it runs, also while a call of ours does.
    void refuse_unpadded(const Frame& frame) const;

    [[nodiscard]] bool is_counted() const noexcept { return m_is_counted; }
    /// That this process counted, the most frequent first.
    [[nodiscard]] std::vector<ProfiledShape> counted();
    [[nodiscard]] std::vector<std::vector<std::int64_t>> buckets() const;
    /// What calls would look like now, of all processes, the most frequent first: each bucket once, and nothing that is
    /// in none.
    [[nodiscard]] std::vector<ProfiledShape> to_record();

private:
    [[nodiscard]] const std::shared_ptr<FunctionProfile>& profile();
    [[nodiscard]] profile::Shape shape_of(const Frame& frame, const PaddedSizes* padded) const;
    void count(const Frame& frame, const PaddedSizes* padded);
    [[nodiscard]] profile::Profile joined();
    void learn_buckets(const profile::Profile& known);

    std::shared_ptr<const Declaration> m_declaration;
    ProfileKeeper* m_profiles;
    bool m_is_counted = false;
    std::vector<std::size_t> m_regions;          ///< inputs and outputs
    std::shared_ptr<FunctionProfile> m_profile;  ///< profile(), once it was asked for
    ShapeCounter m_counter;                      ///< what it has not told yet
    ShapeCounter::Key m_shape, m_declared_shape; ///< of this call; of the declaration
    std::unique_ptr<Padding> m_padding;          ///< null: nothing is padded
    bool m_knows_buckets = false;                ///< they were looked for
};

/// Throws where the arguments have other sizes than the shape: else another variant than the one that is asked for would
/// be recorded.
void require_sizes(std::span<const Arg> args, const ProfiledShape& shape, const Interface& interface);
/// "tokens[1,16] logits[1,16,512]".
[[nodiscard]] std::string text_of(const ProfiledShape& shape);

} // namespace warmgraph
