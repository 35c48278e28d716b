// Functions that control the fake CUDA driver. The library exports them beside cuGetProcAddress_v2, nvrtc* and cupti*.
#pragma once

/// A launch attribute that kernel nodes have but cuda.h does not define, as with a newer driver.
#define FAKE_CUDA_LATER_ATTRIBUTE 40 // NOLINT(cppcoreguidelines-macro-usage): a C header

extern "C" {
/// Makes `times` calls of the function `entry` ("": any function) fail with `status`, beginning with the `first`-th
/// call from now on (1 is the next call). If `times` is 0, all later calls fail. Replaces an earlier fault. Calls of
/// NVRTC and CUPTI count too.
///
/// A call that releases something (cuMemFree, cuGraphDestroy, cuStreamDestroy ...) does its work and then reports the
/// status, as the driver reports earlier failures; a failing cuStreamEndCapture ends the capture without a graph.
void fake_cuda_fail(const char* entry, long first, long times, int status);
/// Does the same as fake_cuda_fail("", call, 1, status).
void fake_cuda_fail_at(long call, int status);
/// Whether the fault has made a call fail since it was set.
int fake_cuda_was_hit(void);

/// How many calls of any function were made since the reset.
long fake_cuda_calls(void);
/// The name of the function in call number `index`, which counts from 0. Null when there is no such call.
const char* fake_cuda_call(long index);

/// How many objects are live: allocations, reservations, mappings, physical memory, modules, streams, events, graphs,
/// execs, retained contexts, and contexts that are still current in this thread.
long fake_cuda_live_objects(void);
/// The same numbers for each kind, as a text for a test's message. The text is valid until this thread calls the
/// function again.
const char* fake_cuda_live_text(void);

/// Makes an external semaphore that counts upwards (a CUexternalSemaphore). The host does the work of the other API
/// here.
void* fake_cuda_make_semaphore(unsigned long long value);
void fake_cuda_destroy_semaphore(void* semaphore);
unsigned long long fake_cuda_semaphore_value(void* semaphore);
void fake_cuda_set_semaphore(void* semaphore, unsigned long long value);

/// The flags of the last instantiated graph. They have no effect here.
unsigned long long fake_cuda_instantiate_flags(void);

/// Sets the value that cuDeviceGetAttribute returns from now on.
void fake_cuda_set_attribute(int attribute, int value);

/// Sets the value that cuDriverGetVersion returns from now on.
void fake_cuda_set_driver_version(int version);

/// Sets which kernels of the backend itself load and run here from now on: with 0 (the default) none, with 1 those of
/// their text (bulk/kernels.ptx), with 2 also those of any fat binary.
void fake_cuda_take_bulk_kernels(int taken);

/// Forgets the fault, the call log, a sticky error, the attributes and the version that a test has set. Live objects
/// stay alive.
void fake_cuda_reset(void);
}
