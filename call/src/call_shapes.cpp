#include "warmgraph/call/call_shapes.hpp"

#include <algorithm>

#include "warmgraph/base/log.hpp"
#include "warmgraph/capture/numbers.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

bool has_counted_sizes(const RegionDecl& region) noexcept
{
    return region.kind == cachefmt::RegionKind::input || region.kind == cachefmt::RegionKind::output;
}

void append(ShapeCounter::Key& key, std::span<const std::int64_t> sizes)
{
    key.push_back(static_cast<std::int64_t>(sizes.size()));
    key.insert(key.end(), sizes.begin(), sizes.end());
}

/// The sizes and values that a call asks for.
struct BucketChoice {
    profile::Sizes sizes;
    std::map<std::string, std::string> values;
    auto operator<=>(const BucketChoice&) const = default;
};

} // namespace

CallShapes::CallShapes(std::shared_ptr<const Declaration> declaration, ProfileKeeper* profiles)
    : m_declaration(std::move(declaration)), m_profiles(profiles)
{
    const Interface& interface = m_declaration->interface;
    // The profile stores only sizes that differ from the declared sizes.
    for (std::size_t r = 0; m_profiles != nullptr && r < interface.regions.size(); ++r) {
        if (!has_counted_sizes(interface.regions[r])) continue;
        m_regions.push_back(r);
        append(m_declared_shape, interface.regions[r].sizes);
    }
    m_is_counted = !m_regions.empty() && m_regions.size() <= profile::k_most_arguments;
    if (m_declaration->spec.buckets.empty()) return;
    m_padding = std::make_unique<Padding>(m_declaration->spec, interface, *m_declaration->backend());
    if (!m_is_counted) m_padding->stop_learning();
}

CallShapes::~CallShapes()
{
    if (!m_profile) return; // no shape was counted
    m_counter.tell(*m_profile);
    m_profiles->note(m_profile);
}

/// Makes the profile at its first use. Its key is a digest, which would take more than half of the time for wrapping a
/// function.
const std::shared_ptr<FunctionProfile>& CallShapes::profile()
{
    if (m_profile || !m_is_counted) return m_profile;
    profile::Profile empty;
    empty.model_info = m_declaration->key.model_info;
    empty.function = m_declaration->name;
    for (const std::size_t r : m_regions)
        empty.arguments[m_declaration->interface.regions[r].name] =
            to_string(m_declaration->interface.regions[r].dtype);
    empty.key = profile::key_of(empty);
    return m_profile = m_profiles->of(std::move(empty));
}

profile::Shape CallShapes::shape_of(const Frame& frame, const PaddedSizes* padded) const
{
    profile::Shape shape;
    for (const std::size_t r : m_regions)
        shape.sizes[m_declaration->interface.regions[r].name] = sizes_of(frame.tensors[r]);
    for (std::size_t v = 0; v < m_declaration->interface.values.size(); ++v)
        shape.values[m_declaration->interface.values[v].name] =
            number_text(m_declaration->interface.values[v].dtype, frame.values[v]);
    if (padded != nullptr) shape.ran = m_padding->applied(*padded, shape.sizes);
    return shape;
}

/// Does not count calls with undeclared types, because such a call belongs to another function. Does not count sizes
/// that a profile cannot hold.
void CallShapes::count(const Frame& frame, const PaddedSizes* padded)
{
    if (!m_is_counted) return;
    m_shape.clear();
    for (const std::size_t r : m_regions) {
        const auto& tensor = frame.tensors[r];
        const auto sizes = std::span{tensor.sizes}.first(tensor.rank);
        if (tensor.dtype != m_declaration->interface.regions[r].dtype ||
            std::ranges::any_of(sizes, [](std::int64_t size) { return size > profile::k_largest_size; }))
            return;
        append(m_shape, sizes);
    }
    const bool is_news = padded != nullptr || m_shape != m_declared_shape;
    for (const std::uint64_t value : frame.values) m_shape.push_back(static_cast<std::int64_t>(value));
    if (padded != nullptr) append(m_shape, padded->sizes);
    if (m_counter.count(m_shape, [&] { return shape_of(frame, padded); }, is_news, *profile()))
        m_profiles->note(profile());
}

void CallShapes::refuse_unpadded(const Frame& frame) const
{
    if (!m_padding) return;
    const PaddedSizes padded = value_or_raise(m_padding->choose(frame));
    for (std::size_t g = 0; g < padded.sizes.size(); ++g) {
        const auto& group = m_padding->groups()[g];
        const std::int64_t size = frame.tensors[group.regions.front()].sizes[group.wish.dimensions.front().index];
        if (size % group.wish.multiple_of != 0)
            raise(
                {ErrorCode::invalid_argument, fmt::format("{} is {}, and '{}' is called in a capture of your program, "
                                                          "where nothing is padded: pad it to a multiple of {}",
                                                          to_text(group.wish.dimensions.front()), size,
                                                          m_declaration->name, group.wish.multiple_of)});
    }
}

PaddedSizes CallShapes::choose(const Frame& frame, bool counts)
{
    if (!m_knows_buckets && m_padding->learns()) learn_buckets(joined());
    m_knows_buckets = true;
    PaddedSizes padded = value_or_raise(m_padding->choose(frame));
    if (counts) count(frame, &padded);
    return padded;
}

void CallShapes::pad(Frame& frame, const PaddedSizes& padded, backends::Stream& stream)
{
    value_or_raise(m_padding->pad(frame, padded, stream));
}

void CallShapes::give_back(backends::Stream& stream) { value_or_raise(m_padding->give_back(stream)); }

profile::Profile CallShapes::joined()
{
    if (!m_is_counted) return {};
    m_counter.tell(*profile());
    return m_profiles->joined(*profile());
}

/// Learns from all processes' calls. If nothing can be recorded, the buckets stay as they are.
void CallShapes::learn_buckets(const profile::Profile& known)
{
    const profile::Calls calls = profile::total(known);
    for (Padding::Group& group : m_padding->groups()) {
        if (group.rule != BucketRule::learnt) continue;
        const auto stored = known.learnt.find(group.wish);
        if (stored != known.learnt.end()) group.buckets = stored->second.buckets;
        if (!m_declaration->publishes || (stored != known.learnt.end() && profile::is_pinned(stored->second))) continue;
        const auto sizes = profile::histogram(calls, group.wish.dimensions.front());
        auto best = profile::learn(sizes, group.wish);
        if (best.empty() || profile::still_serve(group.buckets, best, sizes, group.wish)) continue;
        group.buckets = std::move(best);
        log().info("{}: {} is padded to {} from now on, which adds {:.0f} % to the sizes of the calls so far",
                   m_declaration->path, to_text(group.wish.dimensions.front()), fmt::join(group.buckets, ", "),
                   100 * profile::padding_of(sizes, group.buckets).share());
        profile()->decide(group.wish, group.buckets);
        m_profiles->note(profile());
    }
}

// --- queries from outside

std::vector<ProfiledShape> CallShapes::counted()
{
    std::vector<ProfiledShape> result;
    if (!m_is_counted) return result;
    m_counter.tell(*profile());
    for (const auto& [shape, calls] : profile()->calls())
        result.push_back({shape.sizes, shape.values, shape.ran, calls});
    std::ranges::stable_sort(result, std::greater<>{}, &ProfiledShape::calls);
    return result;
}

std::vector<std::vector<std::int64_t>> CallShapes::buckets() const
{
    std::vector<std::vector<std::int64_t>> result;
    if (m_padding)
        for (const Padding::Group& group : m_padding->groups()) result.push_back(group.buckets);
    return result;
}

std::vector<ProfiledShape> CallShapes::to_record()
{
    const profile::Profile known = joined();
    if (m_padding) learn_buckets(known);
    m_knows_buckets = true;
    std::map<BucketChoice, std::uint64_t> wanted;
    for (const auto& [shape, calls] : profile::total(known)) {
        BucketChoice one{shape.sizes, shape.values};
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

std::string text_of(const ProfiledShape& shape)
{
    std::string text;
    for (const auto& [argument, sizes] : shape.sizes)
        text += fmt::format("{}{}[{}]", text.empty() ? "" : " ", argument, fmt::join(sizes, ","));
    return text;
}

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
               fmt::format(
                   "'{}' has the sizes [{}], expected [{}] as in the profile: make the arguments with these sizes",
                   arg.name, fmt::join(sizes, ","), fmt::join(wanted->second, ","))});
    }
}

} // namespace warmgraph
