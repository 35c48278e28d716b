// The shapes of a function's calls: counts them, pads calls to buckets, and lists shapes to record in advance.
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

/// One thread at a time may use an object.
class CallShapes {
public:
    /// `profiles`: null if no profile is kept; must outlive this object.
    CallShapes(std::shared_ptr<const Declaration> declaration, ProfileKeeper* profiles);
    CallShapes(const CallShapes&) = delete;
    CallShapes& operator=(const CallShapes&) = delete;
    ~CallShapes();

    [[nodiscard]] bool is_padded() const noexcept { return m_padding != nullptr; }
    /// Counts a call that is not padded.
    void count(const Frame& frame) { count(frame, nullptr); }
    /// Returns the sizes to which the call is padded. Throws invalid_argument. `counts`: whether the call is counted.
    [[nodiscard]] PaddedSizes choose(const Frame& frame, bool counts);
    /// Call Padding::pad() and Padding::give_back(), and throw their errors.
    void pad(Frame& frame, const PaddedSizes& padded, backends::Stream& stream);
    void give_back(backends::Stream& stream);
    /// Throws if the sizes of a call need padding. For a call into a caller's capture: the caller's graph would use the
    /// padded memory whenever it runs, even during a later call.
    void refuse_unpadded(const Frame& frame) const;

    [[nodiscard]] bool is_counted() const noexcept { return m_is_counted; }
    /// Returns the shapes that this process counted, the most frequent shape first.
    [[nodiscard]] std::vector<ProfiledShape> counted();
    [[nodiscard]] std::vector<std::vector<std::int64_t>> buckets() const;
    /// Returns the shapes of all processes' calls, padded to the present buckets, the most frequent shape first. Each
    /// bucket occurs once; shapes outside the buckets are left out.
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
    std::vector<std::size_t> m_regions;          ///< indices of inputs and outputs
    std::shared_ptr<FunctionProfile> m_profile;  ///< null before the first profile()
    ShapeCounter m_counter;                      ///< counts that are not yet in the profile
    ShapeCounter::Key m_shape, m_declared_shape; ///< shape of this call; declared shape
    std::unique_ptr<Padding> m_padding;          ///< null: calls are not padded
    bool m_knows_buckets = false;                ///< whether the buckets were looked for
};

/// Throws if the arguments do not have the sizes of `shape`, because a wrong variant would then be recorded.
void require_sizes(std::span<const Arg> args, const ProfiledShape& shape, const Interface& interface);
/// Returns a text such as "tokens[1,16] logits[1,16,512]".
[[nodiscard]] std::string text_of(const ProfiledShape& shape);

} // namespace warmgraph
