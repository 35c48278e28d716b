// Cases with cuDNN: the operations of a network's inference, through the interface with a handle and descriptors.
#include "library_case.hpp"

#ifdef WARMGRAPH_HAVE_CUDNN

#include <cudnn.h>

namespace warmgraph::test::libraries {

namespace {

constexpr int k_images = 8, k_channels = 32, k_filters = 64, k_side = 28;
constexpr std::int64_t k_input = std::int64_t{k_images} * k_channels * k_side * k_side;
constexpr float k_one = 1, k_zero = 0;

const Library& cudnn()
{
    static const Library library{"libcudnn.so.9", "libcudnn.so"};
    return library;
}

class Network {
public:
    Network() { WG_LIBRARY_CALL(cudnn(), cudnnCreate, &m_handle); }

protected:
    [[nodiscard]] cudnnHandle_t on(Recorder& r) const
    {
        WG_LIBRARY_CALL(cudnn(), cudnnSetStream, m_handle, stream_of(r));
        return m_handle;
    }
    [[nodiscard]] cudnnHandle_t handle() const noexcept { return m_handle; }
    [[nodiscard]] static cudnnTensorDescriptor_t tensor(cudnnTensorFormat_t format, cudnnDataType_t type, int channels,
                                                        int side)
    {
        cudnnTensorDescriptor_t made = nullptr;
        WG_LIBRARY_CALL(cudnn(), cudnnCreateTensorDescriptor, &made);
        WG_LIBRARY_CALL(cudnn(), cudnnSetTensor4dDescriptor, made, format, type, k_images, channels, side, side);
        return made;
    }

private:
    cudnnHandle_t m_handle = nullptr;
};

/// 64 filters of 3 x 3, in f32 with channels first, or in f16 with channels last, for which cuDNN uses Tensor Cores.
class Convolution : public Network {
public:
    static constexpr auto k_algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    static Case described(cudnnDataType_t type)
    {
        const DType dtype = type == CUDNN_DATA_HALF ? f16 : f32;
        return {.regions = {{"x", Kind::input, dtype, k_input},
                            {"w", Kind::weights, dtype, std::int64_t{k_filters} * k_channels * 9},
                            {"y", Kind::output, dtype, k_input / k_channels * k_filters}},
                .undeclared = Undeclared::constants};
    }
    explicit Convolution(cudnnDataType_t type)
    {
        const auto format = type == CUDNN_DATA_HALF ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
        m_x = tensor(format, type, k_channels, k_side);
        m_y = tensor(format, type, k_filters, k_side);
        WG_LIBRARY_CALL(cudnn(), cudnnCreateFilterDescriptor, &m_w);
        WG_LIBRARY_CALL(cudnn(), cudnnSetFilter4dDescriptor, m_w, type, format, k_filters, k_channels, 3, 3);
        WG_LIBRARY_CALL(cudnn(), cudnnCreateConvolutionDescriptor, &m_convolution);
        WG_LIBRARY_CALL(cudnn(), cudnnSetConvolution2dDescriptor, m_convolution, 1, 1, 1, 1, 1, 1,
                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
        if (type == CUDNN_DATA_HALF)
            WG_LIBRARY_CALL(cudnn(), cudnnSetConvolutionMathType, m_convolution, CUDNN_TENSOR_OP_MATH);
        WG_LIBRARY_CALL(cudnn(), cudnnGetConvolutionForwardWorkspaceSize, handle(), m_x, m_w, m_convolution, m_y,
                        k_algorithm, &m_workspace_bytes);
    }
    void enqueue(Recorder& r) const
    {
        WG_LIBRARY_CALL(cudnn(), cudnnConvolutionForward, on(r), &k_one, m_x, r["x"].pointer(), m_w, r["w"].pointer(),
                        m_convolution, k_algorithm, scratch(r, "workspace", m_workspace_bytes), m_workspace_bytes,
                        &k_zero, m_y, r["y"].pointer());
    }

private:
    cudnnTensorDescriptor_t m_x = nullptr, m_y = nullptr;
    cudnnFilterDescriptor_t m_w = nullptr;
    cudnnConvolutionDescriptor_t m_convolution = nullptr;
    std::size_t m_workspace_bytes = 0;
};

/// Batch normalisation, with one scale, bias, mean and variance for each channel.
class BatchNorm : public Network {
public:
    static Case described()
    {
        return {.regions = {{"x", Kind::input, f32, k_input},
                            {"scale", Kind::weights, f32, k_channels},
                            {"bias", Kind::weights, f32, k_channels},
                            {"mean", Kind::weights, f32, k_channels},
                            {"variance", Kind::weights, f32, k_channels, variances()},
                            {"y", Kind::output, f32, k_input}},
                .undeclared = Undeclared::constants};
    }
    BatchNorm() : m_x(tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, k_channels, k_side))
    {
        WG_LIBRARY_CALL(cudnn(), cudnnCreateTensorDescriptor, &m_channels);
        WG_LIBRARY_CALL(cudnn(), cudnnDeriveBNTensorDescriptor, m_channels, m_x, CUDNN_BATCHNORM_SPATIAL);
    }
    void enqueue(Recorder& r) const
    {
        WG_LIBRARY_CALL(cudnn(), cudnnBatchNormalizationForwardInference, on(r), CUDNN_BATCHNORM_SPATIAL, &k_one,
                        &k_zero, m_x, r["x"].pointer(), m_x, r["y"].pointer(), m_channels, r["scale"].pointer(),
                        r["bias"].pointer(), r["mean"].pointer(), r["variance"].pointer(), 1e-5);
    }

private:
    static Contents variances()
    {
        std::vector<float> all;
        for (int i = 0; i < k_channels; ++i) all.push_back(0.5F + 0.05F * static_cast<float>(i));
        return values(all);
    }
    cudnnTensorDescriptor_t m_x = nullptr, m_channels = nullptr;
};

/// Softmax over the channels of each pixel.
class Softmax : public Network {
public:
    static Case described()
    {
        return {.regions = {{"x", Kind::input, f32, k_input}, {"y", Kind::output, f32, k_input}},
                .undeclared = Undeclared::constants};
    }
    Softmax() : m_x(tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, k_channels, k_side)) {}
    void enqueue(Recorder& r) const
    {
        WG_LIBRARY_CALL(cudnn(), cudnnSoftmaxForward, on(r), CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &k_one,
                        m_x, r["x"].pointer(), &k_zero, m_x, r["y"].pointer());
    }

private:
    cudnnTensorDescriptor_t m_x = nullptr;
};

/// Pooling, which takes the maximum of each 2 x 2 square.
class Pooling : public Network {
public:
    static Case described()
    {
        return {.regions = {{"x", Kind::input, f32, k_input}, {"y", Kind::output, f32, k_input / 4}},
                .undeclared = Undeclared::constants};
    }
    Pooling()
        : m_x(tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, k_channels, k_side)),
          m_y(tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, k_channels, k_side / 2))
    {
        WG_LIBRARY_CALL(cudnn(), cudnnCreatePoolingDescriptor, &m_pooling);
        WG_LIBRARY_CALL(cudnn(), cudnnSetPooling2dDescriptor, m_pooling, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2,
                        2, 0, 0, 2, 2);
    }
    void enqueue(Recorder& r) const
    {
        WG_LIBRARY_CALL(cudnn(), cudnnPoolingForward, on(r), m_pooling, &k_one, m_x, r["x"].pointer(), &k_zero, m_y,
                        r["y"].pointer());
    }

private:
    cudnnTensorDescriptor_t m_x = nullptr, m_y = nullptr;
    cudnnPoolingDescriptor_t m_pooling = nullptr;
};

MakeCase convolution(cudnnDataType_t type)
{
    return [type](const Device&) { return with_work<Convolution>(Convolution::described(type), type); };
}

template <class T>
MakeCase plain_case()
{
    return [](const Device&) { return with_work<T>(T::described()); };
}

} // namespace

void add_cudnn_cases(Cases& all)
{
    all.add("cudnn_convolution_f32", convolution(CUDNN_DATA_FLOAT));
    all.add("cudnn_convolution_f16", convolution(CUDNN_DATA_HALF));
    all.add("cudnn_batch_norm", plain_case<BatchNorm>());
    all.add("cudnn_softmax", plain_case<Softmax>());
    all.add("cudnn_pooling", plain_case<Pooling>());
}

} // namespace warmgraph::test::libraries

#else

namespace warmgraph::test::libraries {
void add_cudnn_cases(Cases& all) { all.leave_out("cuDNN", "cudnn.h was not found at configure time"); }
} // namespace warmgraph::test::libraries

#endif
