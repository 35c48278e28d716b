// Private parts of Stream.
#pragma once

#include <memory>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

struct Stream::Impl {
    std::shared_ptr<backends::Device> device;
    std::shared_ptr<backends::Stream> stream;
};

struct StreamAccess {
    static Stream make(std::shared_ptr<backends::Device> device, std::shared_ptr<backends::Stream> stream)
    {
        return Stream{std::make_unique<Stream::Impl>(std::move(device), std::move(stream))};
    }
    /// Returns the stream's Impl. Throws invalid_argument if the stream was moved from.
    static Stream::Impl& impl(Stream& stream)
    {
        if (!stream.m_impl)
            throw Exception(ErrorCode::invalid_argument,
                            "stream is null: it was moved from, make one with Device::stream");
        return *stream.m_impl;
    }
};

} // namespace warmgraph
