// Reads .profile files, which every process writes and people may edit. An accepted profile can be written, joined with
// others, and used for learning.
#include "fuzz.hpp"
#include "sample_profile.hpp"
#include "warmgraph/profile/buckets.hpp"
#include "warmgraph/profile/profile_file.hpp"

namespace {

using namespace warmgraph;

void check_joined(const profile::Profile& read)
{
    const auto twice = profile::join(read, read);
    fuzz::require(twice.has_value(), "a profile joins itself");
    // A profile may have more writers than are kept. The first join drops some of them; a second join must change
    // nothing.
    const auto again = profile::join(*twice, *twice);
    fuzz::require(again && *again == *twice, "what is joined twice is counted once");
    fuzz::require(twice->parts.size() <= profile::k_most_last + profile::k_most_busy, "writers are bounded");
    profile::Profile other = profile::test::sample_profile();
    if (other.key != read.key) return;
    const auto one = profile::join(read, other), two = profile::join(other, read);
    fuzz::require(one && two && *one == *two, "the order of a join does not matter");
}

void check_learnt(const profile::Profile& read)
{
    const auto calls = profile::total(read);
    for (const auto& seen : profile::dimensions_of(calls)) {
        const profile::BucketRequest wish{{seen.dimension}, 4, 8};
        const auto buckets = profile::learn(seen.sizes, wish);
        fuzz::require(buckets.size() <= 4 && std::ranges::is_sorted(buckets), "at most as many as were asked for");
        for (const std::int64_t bucket : buckets) fuzz::require(bucket > 0 && bucket % 8 == 0, "multiples");
        for (const auto& [size, number] : seen.sizes)
            if (size > 0 && profile::rounded(size, 8))
                fuzz::require(!buckets.empty() && buckets.back() >= size, "every size has a bucket");
        const double share = profile::padding_of(seen.sizes, buckets).share();
        fuzz::require(share >= 0 && share <= 1 && profile::padding_of(calls, seen.dimension).share() <= 1, "a share");
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const ByteView bytes{reinterpret_cast<const std::byte*>(data), size};
    const auto read = profile::decode(bytes);
    if (!read) {
        fuzz::require((read.error().code == ErrorCode::corrupt || read.error().code == ErrorCode::stale) &&
                          !read.error().message.empty(),
                      "a refusal is corrupt or stale, and says why");
        return 0;
    }
    const auto back = profile::decode(as_bytes(profile::encode(*read)));
    fuzz::require(back && *back == *read, "what is accepted can be written and read");
    check_joined(*read);
    check_learnt(*read);
    return 0;
}
