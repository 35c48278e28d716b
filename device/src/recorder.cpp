#include "warmgraph/device/recorder.hpp"

#include <algorithm>
#include <deque>
#include <exception>

#include "warmgraph/base/log.hpp"
#include "warmgraph/capture/numbers.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/device/programs.hpp"
#include "warmgraph/device/stream_impl.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

Result<std::shared_ptr<backends::Stream>> StreamPool::at(std::size_t index)
{
    while (m_streams.size() <= index) {
        auto stream = m_device->create_stream();
        if (!stream) return std::unexpected(stream.error());
        m_streams.push_back(std::move(*stream));
    }
    return m_streams[index];
}

struct Recorder::Impl {
    const Runnable& runnable;
    const RunInputs& inputs;
    ScratchPool& scratch;
    Stream main;
    std::vector<std::vector<std::int64_t>> sizes;
    struct Fork {
        Stream stream;
        bool joined = false;
    };
    std::deque<Fork> forks; // a deque, because references must stay valid when it grows

    [[nodiscard]] std::size_t region(std::string_view name) const
    {
        if (const auto index = runnable.interface.region(name)) return *index;
        std::string known;
        for (const auto& region : runnable.interface.regions) known += (known.empty() ? "" : ", ") + region.name;
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' asks for '{}', which is not declared: declared are {}", runnable.name, name, known)});
    }
    void join(Fork& fork)
    {
        main.wait(fork.stream.record());
        fork.joined = true;
    }
};

Stream& Recorder::stream() noexcept { return m_impl.main; }

Stream& Recorder::fork()
{
    auto stream = value_or_raise(m_impl.runnable.streams.at(m_impl.forks.size()));
    m_impl.forks.push_back({StreamAccess::make(m_impl.runnable.device, std::move(stream))});
    Stream& forked = m_impl.forks.back().stream;
    forked.wait(m_impl.main.record());
    return forked;
}

void Recorder::join(Stream& forked)
{
    const auto found =
        std::ranges::find_if(m_impl.forks, [&forked](const auto& fork) { return &fork.stream == &forked; });
    if (found == m_impl.forks.end())
        raise({ErrorCode::invalid_argument, "join needs a stream that Recorder::fork of the same run returned"});
    m_impl.join(*found);
}

Address Recorder::address(std::string_view name) const
{
    const auto& constants = m_impl.runnable.interface.constants;
    const auto constant = std::ranges::find(constants, name, &NamedConstant::name);
    if (constant != constants.end() && constant->memory.address.is_null())
        raise({ErrorCode::invalid_argument, fmt::format("'{}' asks for the constant '{}', which has no memory in this "
                                                        "process: give it memory to record or run the function",
                                                        m_impl.runnable.name, name)});
    if (constant != constants.end()) return constant->memory.address;
    return m_impl.inputs.regions[m_impl.region(name)].address;
}
const std::vector<std::int64_t>& Recorder::sizes(std::string_view name) const
{
    return m_impl.sizes[m_impl.region(name)];
}
DType Recorder::dtype(std::string_view name) const { return m_impl.inputs.tensors[m_impl.region(name)].dtype; }

Address Recorder::alloc(std::string_view name, std::uint64_t bytes)
{
    if (m_impl.runnable.interface.region(name))
        raise({ErrorCode::invalid_argument,
               fmt::format("scratch '{}' has the name of a declared binding: choose another", name)});
    return value_or_raise(m_impl.scratch.get(name, bytes)).address;
}

Number Recorder::number_of(std::string_view name, DType dtype) const
{
    const auto pick = [&](const std::vector<NumberDecl>& decls,
                          const std::vector<std::uint64_t>& bits) -> std::optional<Number> {
        const auto found = std::ranges::find(decls, name, &NumberDecl::name);
        if (found == decls.end()) return std::nullopt;
        if (found->dtype != dtype)
            raise({ErrorCode::invalid_argument, fmt::format("'{}' is declared as {}, but requested as {}", name,
                                                            to_string(found->dtype), to_string(dtype))});
        return Number{dtype, bits[static_cast<std::size_t>(found - decls.begin())]};
    };
    const auto& interface = m_impl.runnable.interface;
    if (const auto scalar = pick(interface.scalars, m_impl.inputs.scalars)) return *scalar;
    if (const auto value = pick(interface.values, m_impl.inputs.values)) return *value;
    raise({ErrorCode::invalid_argument,
           fmt::format("'{}' asks for the scalar '{}', which is not declared: declare it (Spec::scalars)",
                       m_impl.runnable.name, name)});
}

void run(const Runnable& runnable, const RunInputs& inputs, ScratchPool& scratch,
         const std::shared_ptr<backends::Stream>& stream, RunContext& context)
{
    Recorder::Impl impl{runnable, inputs, scratch, StreamAccess::make(runnable.device, stream), {}, {}};
    for (const auto& tensor : inputs.tensors) impl.sizes.push_back(sizes_of(tensor));
    context.streams = {stream.get()};
    context.events.clear();
    const RunScope scope{context};
    const ProgramScope programs{runnable.programs};
    scratch.begin_run();
    Recorder recorder{impl};
    const auto join_forks = [&] {
        if (context.capturing) return;
        for (auto& fork : impl.forks)
            if (!fork.joined) impl.join(fork);
    };
    try {
        // cuBLASLt and other libraries use the thread's current context, not the stream's context.
        const auto current = runnable.device->enter();
        runnable.callable(recorder);
    } catch (...) {
        // Earlier forked work may still use the scratch. Joining orders later work in the stream after that work.
        try {
            join_forks();
        } catch (const std::exception& failed) {
            log().warn("'{}' throws, and the streams that it forked cannot be joined: {}", runnable.name,
                       failed.what());
        }
        throw;
    }
    join_forks();
}

namespace {

Result<void> guarded_run(const Runnable& runnable, const RunInputs& inputs, ScratchPool& scratch,
                         const std::shared_ptr<backends::Stream>& stream, RunContext& context)
{
    try {
        run(runnable, inputs, scratch, stream, context);
        return {};
    } catch (const Exception& thrown) {
        return std::unexpected(Error{thrown.code(), thrown.what()});
    } catch (const std::exception& thrown) {
        return fail(ErrorCode::not_recordable, "it throws while it is being recorded: {}", thrown.what());
    } catch (...) {
        return fail(ErrorCode::not_recordable,
                    "it throws something that is not a std::exception while it is being recorded");
    }
}

} // namespace

RunOnce run_once(const Runnable& runnable)
{
    return [runnable](const RunInputs& inputs, ScratchPool& scratch, const std::shared_ptr<backends::Stream>& stream,
                      RunContext& context) { return guarded_run(runnable, inputs, scratch, stream, context); };
}

} // namespace warmgraph
