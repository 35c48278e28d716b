// Function::Impl: the shapes of its calls are counted, padded to buckets, and recorded before demand.
#include <algorithm>

#include "function_impl.hpp"
#include "throwing.hpp"
#include "tuner_impl.hpp"
#include "warmgraph/backends/recording.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/capture/numbers.hpp"

namespace warmgraph {
namespace {

bool is_counted(const RegionDecl& region) noexcept
{
    return region.kind == cachefmt::RegionKind::input || region.kind == cachefmt::RegionKind::output;
}

void append(ShapeCounter::Key& key, std::span<const std::int64_t> sizes)
{
    key.push_back(static_cast<std::int64_t>(sizes.size()));
    key.insert(key.end(), sizes.begin(), sizes.end());
}

/// One bucket choice of a call, and how often it was called.
struct Wanted {
    profile::Sizes sizes;
    std::map<std::string, std::string> values;
    auto operator<=>(const Wanted&) const = default;
};

} // namespace

/// What the declaration says is no news: without other sizes, nothing is worth a file.
void Function::Impl::begin_counting()
{
    if (!m_cache->profiles || m_half) return; // a pair records nothing before demand
    for (std::size_t r = 0; r < m_interface.regions.size(); ++r) {
        if (!is_counted(m_interface.regions[r])) continue;
        m_counted.push_back(r);
        append(m_declared_shape, m_interface.regions[r].sizes);
    }
    m_is_counted = !m_counted.empty() && m_counted.size() <= profile::k_most_arguments;
}

/// Made at its first use: its key is a digest, which would be more than half of what wrapping takes.
const std::shared_ptr<FunctionProfile>& Function::Impl::profile() const
{
    if (m_profile || !m_is_counted) return m_profile;
    profile::Profile empty;
    empty.model_info = m_key.model_info;
    empty.function = m_name;
    for (const std::size_t r : m_counted)
        empty.arguments[m_interface.regions[r].name] = to_string(m_interface.regions[r].dtype);
    empty.key = profile::key_of(empty);
    return m_profile = m_cache->profiles->of(std::move(empty));
}

profile::Shape Function::Impl::shape_of_call(const PaddedSizes* padded) const
{
    profile::Shape shape;
    for (const std::size_t r : m_counted) shape.sizes[m_interface.regions[r].name] = sizes_of(m_frame.tensors[r]);
    for (std::size_t v = 0; v < m_interface.values.size(); ++v)
        shape.values[m_interface.values[v].name] = number_text(m_interface.values[v].dtype, m_frame.values[v]);
    if (padded != nullptr) shape.ran = m_padding->applied(*padded, shape.sizes);
    return shape;
}

/// Calls of other types than declared are not counted: their sizes are of another function, as it were. Nor are sizes that
/// no profile holds.
void Function::Impl::count_call(const PaddedSizes* padded)
{
    if (!m_is_counted) return;
    m_shape.clear();
    for (const std::size_t r : m_counted) {
        const auto& tensor = m_frame.tensors[r];
        const auto sizes = std::span{tensor.sizes}.first(tensor.rank);
        if (tensor.dtype != m_interface.regions[r].dtype ||
            std::ranges::any_of(sizes, [](std::int64_t size) { return size > profile::k_largest_size; }))
            return;
        append(m_shape, sizes);
    }
    const bool is_news = padded != nullptr || m_shape != m_declared_shape;
    for (const std::uint64_t value : m_frame.values) m_shape.push_back(static_cast<std::int64_t>(value));
    if (padded != nullptr) append(m_shape, padded->sizes);
    if (m_counter.count(m_shape, [&] { return shape_of_call(padded); }, is_news, *profile()))
        m_cache->profiles->note(profile());
}

/// A graph of the caller's would use the padded memory whenever it runs, also while a call of ours does.
void Function::Impl::refuse_unpadded() const
{
    const PaddedSizes padded = value_or_raise(m_padding->choose(m_frame));
    for (std::size_t g = 0; g < padded.sizes.size(); ++g) {
        const auto& group = m_padding->groups()[g];
        const std::int64_t size = m_frame.tensors[group.regions.front()].sizes[group.wish.dimensions.front().index];
        if (size % group.wish.multiple_of != 0)
            raise(
                {ErrorCode::invalid_argument,
                 fmt::format("{} is {}, and '{}' is called in a capture of yours, where nothing is padded: pad it to a "
                             "multiple of {}",
                             to_text(group.wish.dimensions.front()), size, m_name, group.wish.multiple_of)});
    }
}

/// The function runs as it is, and nothing is recorded: sizes of which there is no bucket would be a variant each.
Outcome Function::Impl::run_outside_buckets(const std::string& why, const std::shared_ptr<backends::Stream>& stream)
{
    notice_changes();
    // It may be recorded later, and only code that was kept when it was loaded can be.
    if (auto kept = m_device->device->recording().prepare_recording(); !kept)
        log().debug("{} runs as it is, and its recordings may be refused: {}", label(), kept.error().message);
    Journey journey;
    journey.started = system_clock().steady();
    validate_tuned();
    run_eagerly(stream, journey.phases);
    m_report.outcome = Outcome::eager;
    m_report.reason = why;
    m_report.entry.clear();
    end_report(journey);
    return Outcome::eager;
}

Outcome Function::Impl::call_padded(const std::shared_ptr<backends::Stream>& stream, Counted counted,
                                    std::unique_ptr<Job>& job)
{
    if (!m_knows_buckets && m_padding->learns()) learn_buckets(joined_profile());
    m_knows_buckets = true;
    const PaddedSizes padded = value_or_raise(m_padding->choose(m_frame));
    if (counted == Counted::yes) count_call(&padded);
    order_after_last(stream); // which may still use the memory
    value_or_raise(m_padding->pad(m_frame, padded, *stream));
    const bool runs_as_it_is = !padded.outside.empty() && m_callable && publishes();
    const Outcome outcome = runs_as_it_is ? run_outside_buckets(padded.outside, stream) : call_read(stream, job);
    value_or_raise(m_padding->give_back(*stream));
    return outcome;
}

profile::Profile Function::Impl::joined_profile()
{
    if (!m_is_counted) return {};
    m_counter.tell(*profile());
    return m_cache->profiles->joined(*profile());
}

/// From what all processes called. Where nothing can be recorded, buckets stay what they were when something was.
void Function::Impl::learn_buckets(const profile::Profile& known)
{
    const profile::Calls calls = profile::total(known);
    for (Padding::Group& group : m_padding->groups()) {
        if (group.rule != BucketRule::learnt) continue;
        const auto stored = known.learnt.find(group.wish);
        if (stored != known.learnt.end()) group.buckets = stored->second.buckets;
        if (!publishes() || (stored != known.learnt.end() && profile::is_pinned(stored->second))) continue;
        const auto sizes = profile::histogram(calls, group.wish.dimensions.front());
        auto best = profile::learn(sizes, group.wish);
        if (best.empty() || profile::still_serve(group.buckets, best, sizes, group.wish)) continue;
        group.buckets = std::move(best);
        log().info("{}: {} is padded to {} from now on, which adds {:.0f} % to what was called", label(),
                   to_text(group.wish.dimensions.front()), fmt::join(group.buckets, ", "),
                   100 * profile::padding_of(sizes, group.buckets).share());
        profile()->decide(group.wish, group.buckets);
        m_cache->profiles->note(profile());
    }
}

// --- asked from outside

std::vector<ProfiledShape> Function::Impl::shapes() const
{
    refuse_inside_itself("asked for its shapes");
    const std::scoped_lock lock{m_mutex};
    std::vector<ProfiledShape> result;
    if (!m_is_counted) return result;
    m_counter.tell(*profile());
    for (const auto& [shape, calls] : profile()->calls())
        result.push_back({shape.sizes, shape.values, shape.ran, calls});
    std::ranges::stable_sort(result, std::greater<>{}, &ProfiledShape::calls);
    return result;
}

std::vector<std::vector<std::int64_t>> Function::Impl::buckets() const
{
    refuse_inside_itself("asked for its buckets");
    const std::scoped_lock lock{m_mutex};
    std::vector<std::vector<std::int64_t>> result;
    if (m_padding)
        for (const Padding::Group& group : m_padding->groups()) result.push_back(group.buckets);
    return result;
}

// --- Cache::record_profile

std::string Function::Impl::why_no_profile_is_recorded() const
{
    if (!m_cache->store) return "caching is off: " + m_cache->disabled_reason;
    if (!m_is_counted) return "no profile is kept (CacheOptions::profile, WARMGRAPH_PROFILE)";
    if (!publishes()) return "the policy or the folder does not let it record";
    return {};
}

/// What calls would look like now, the most frequent first: each bucket once, and nothing that is in none.
std::vector<ProfiledShape> Function::Impl::shapes_to_record(const profile::Profile& known) const
{
    std::map<Wanted, std::uint64_t> wanted;
    for (const auto& [shape, calls] : profile::total(known)) {
        Wanted one{shape.sizes, shape.values};
        if (m_padding) {
            const auto padded = m_padding->choose(shape.sizes);
            if (!padded || !padded->outside.empty()) continue;
            for (auto& [argument, sizes] : m_padding->applied(*padded, shape.sizes)) one.sizes[argument] = sizes;
        }
        wanted[std::move(one)] += calls;
    }
    std::vector<ProfiledShape> result;
    for (const auto& [one, calls] : wanted) result.push_back({one.sizes, one.values, {}, calls});
    std::ranges::stable_sort(result, std::greater<>{}, &ProfiledShape::calls);
    return result;
}

namespace {

std::string text_of(const ProfiledShape& shape)
{
    std::string text;
    for (const auto& [argument, sizes] : shape.sizes)
        text += fmt::format("{}{}[{}]", text.empty() ? "" : " ", argument, fmt::join(sizes, ","));
    return text;
}

/// Else another variant than the one that is asked for would be recorded.
void require_sizes(std::span<const Arg> args, const ProfiledShape& shape, const Interface& interface)
{
    for (const Arg& arg : args) {
        const auto wanted = shape.sizes.find(std::string(arg.name));
        const auto region = interface.region(arg.name);
        if (wanted == shape.sizes.end() || !region) continue;
        const auto* const tensor = std::get_if<Tensor>(&arg.value);
        const auto& sizes = tensor != nullptr ? tensor->sizes : interface.regions[*region].sizes;
        if (sizes == wanted->second) continue;
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' has the sizes [{}], the profile asks for [{}]: make the arguments that it asks for",
                           arg.name, fmt::join(sizes, ","), fmt::join(wanted->second, ","))});
    }
}

} // namespace

void Function::Impl::record_shape(const ProfiledShape& shape, const MakeArguments& make, ProfileRecording& result)
{
    const std::vector<Arg> args = make(shape);
    require_sizes(args, shape, m_interface);
    Outcome outcome = call(default_stream(), args, Counted::no, replay::AskedCapture::no);
    {
        const std::scoped_lock lock{m_device->default_stream_mutex};
        value_or_raise(
            default_stream()->synchronize()); // its arguments may go now, and what waits for them be recorded
    }
    if (outcome == Outcome::eager && record_pending() != 0) outcome = Outcome::recorded;
    if (outcome == Outcome::recorded)
        ++result.recorded;
    else if (outcome == Outcome::replayed)
        ++result.replayed;
    else
        result.problems.push_back(fmt::format("{}: {}", text_of(shape), report().reason));
}

ProfileRecording Function::Impl::record_profile(const Cache::Impl& owner, const MakeArguments& make, std::size_t most)
{
    refuse_inside_itself("recorded");
    if (&owner != m_cache.get())
        raise({ErrorCode::invalid_argument, fmt::format("'{}' is a function of another cache: ask that one", m_name)});
    if (!m_callable)
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' was loaded without a callable, so nothing of it can be recorded: wrap it", m_name)});
    if (!make)
        raise({ErrorCode::invalid_argument, "there is nobody who makes the arguments: pass a function that does"});
    ProfileRecording result;
    std::vector<ProfiledShape> shapes;
    {
        const std::scoped_lock lock{m_mutex};
        result.why_not = why_no_profile_is_recorded();
        if (!result.why_not.empty()) return result;
        const profile::Profile known = joined_profile();
        if (m_padding) learn_buckets(known);
        m_knows_buckets = true;
        shapes = shapes_to_record(known);
    }
    const std::size_t limit = most != 0 ? most : m_cache->options.max_variants;
    if (shapes.size() > limit) shapes.resize(limit);
    result.shapes = shapes.size();
    for (const ProfiledShape& shape : shapes)
        if (!m_is_retired) record_shape(shape, make, result);
    log().info("{}: {} of {} shapes of its profile are recorded now, {} were", label(), result.recorded, result.shapes,
               result.replayed);
    return result;
}

} // namespace warmgraph
