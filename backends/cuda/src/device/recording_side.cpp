#include "device/recording_side.hpp"

#include "code/compiler.hpp"
#include "code/cupti.hpp"
#include "code/image_tracker.hpp"
#include "code/nvrtc.hpp"
#include "device/backend.hpp"
#include "device/recording.hpp"
#include "graph/graph_reader.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::backends {
namespace cuda {
namespace {

class BuiltRecordingSide final : public RecordingSide {
public:
    /// A failure is ignored, because a process that only replays does not need the tracker.
    void before_context(const std::shared_ptr<const Driver>& driver, const CudaOptions& options) const override
    {
        if (!tracking_requested()) return;
        if (auto started = ImageTracker::start(driver, options); !started)
            log().warn("WARMGRAPH_TRACK_IMAGES: {}", started.error().message);
    }

    [[nodiscard]] Result<void> prepare(const std::shared_ptr<const Driver>& driver,
                                       const CudaOptions& options) const override
    {
        return ImageTracker::start(driver, options);
    }

    [[nodiscard]] std::vector<Library> libraries(const CudaOptions& options) const override
    {
        const auto nvrtc = Nvrtc::load(options.nvrtc);
        const auto cupti = Cupti::load(options.cupti);
        return {{"NVRTC", "compiles",
                 nvrtc ? fmt::format("found ({}, version {})", (*nvrtc)->path(), (*nvrtc)->version())
                       : nvrtc.error().message},
                {"CUPTI", "records", cupti ? "found" : cupti.error().message}};
    }

    [[nodiscard]] std::unique_ptr<DeviceRecording> make_recording(Device& device, Core& core,
                                                                  Memory& memory) const override
    {
        return std::make_unique<CudaRecording>(device, core, memory);
    }

    [[nodiscard]] std::unique_ptr<Compiler> make_compiler(Core& core, WarmUp& warm_up) const override
    {
        return std::make_unique<CudaCompiler>(core, warm_up);
    }

    [[nodiscard]] Result<RawGraph> read_captured(Core& core, CUgraph graph) const override
    {
        return read_graph(core, graph);
    }

    [[nodiscard]] std::shared_ptr<const Bytes> image_of(CUmodule module) const override
    {
        return ImageTracker::image_of(module);
    }

    [[nodiscard]] Error image_unknown() const override
    {
        if (!ImageTracker::is_running())
            return {ErrorCode::not_recordable,
                    "it comes from a module that another library loaded while device code was not kept: call "
                    "prepare_recording (or set WARMGRAPH_TRACK_IMAGES=1) before the first launch of that library"};
        if (ImageTracker::was_paused())
            return {ErrorCode::not_recordable,
                    fmt::format("it comes from a module that may have been loaded {}: the next process of this cache "
                                "does not pause, and can record it",
                                k_loaded_in_pause)};
        return {ErrorCode::not_recordable, "it comes from a module that was loaded before warmgraph kept device code, "
                                           "or whose code is not known for certain: call prepare_recording (or set "
                                           "WARMGRAPH_TRACK_IMAGES=1) before the first launch of that library"};
    }

    [[nodiscard]] const VariableAccess& variables() const noexcept override { return ImageTracker::variables(); }
};

} // namespace

const RecordingSide& recording_side() noexcept
{
    static const BuiltRecordingSide s_side;
    return s_side;
}

} // namespace cuda

std::shared_ptr<Backend> make_cuda_backend(CudaOptions options)
{
    return cuda::make_backend(std::move(options), &cuda::recording_side());
}

} // namespace warmgraph::backends
