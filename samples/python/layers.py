"""Two layers of a network, y = relu(W2 relu(W1 x)), on any OpenCL device. Run it twice: the second process compiles nothing.

usage: layers.py [--device opencl]
"""
import argparse
import time

import numpy

import warmgraph

SOURCE = """
__kernel void layer(__global const float* weights, __global const float* x, __global float* y, int columns)
{
    size_t row = get_global_id(0);
    float sum = 0;
    for (int i = 0; i < columns; ++i) sum += weights[row * columns + i] * x[i];
    y[row] = fmax(sum, 0.0f);
}
"""
WIDTH = 64


class Layers:
    """The weights are on the device, in attributes. The cache finds them; their addresses may differ in each process."""

    def __init__(self, device: warmgraph.Device) -> None:
        random = numpy.random.default_rng(7)
        self.program = device.program("layers", SOURCE)
        self.weights = [device.array(random.standard_normal((WIDTH, WIDTH)), "f32") for _ in range(2)]
        self.cached = warmgraph.cache_compile(self.forward, outputs=warmgraph.Tensor(WIDTH, "f32"),
                                              read_only=["self.weights[0]", "self.weights[1]"])

    def forward(self, x: warmgraph.Array) -> warmgraph.Array:
        for weights in self.weights:
            y = warmgraph.empty(WIDTH, "f32")
            self.program.launch("layer", WIDTH // 16, 16, weights, x, y, numpy.int32(WIDTH))
            x = y
        return x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="opencl")
    layers = Layers(warmgraph.Device(parser.parse_args().device))
    started = time.perf_counter()
    y = layers.cached(numpy.linspace(-1, 1, WIDTH, dtype=numpy.float32))
    print(f"sum {y.sum():.3f}, {layers.cached.report().outcome} in {(time.perf_counter() - started) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
