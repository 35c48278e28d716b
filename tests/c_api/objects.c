/* Tests the functions for Python bindings with simple tensors, and without Python's objects, because no Python runs. */
#include <string.h>

#include "checks.h"
#include "warmgraph/python.h"

/* The structure DLTensor of dlpack.h, version 1. */
struct dl_tensor {
    void* data;
    int32_t device_type, device_id, rank;
    uint8_t code, bits;
    uint16_t lanes;
    const int64_t *sizes, *strides;
    uint64_t byte_offset;
};

static int copy_of(void* object, void* dltensor)
{
    if (object == NULL) return -1;
    *(struct dl_tensor*)dltensor = *(const struct dl_tensor*)object;
    return 0;
}

static char a, b, c; /* their addresses take the place of Python objects */

void events_of_dictionaries_are_counted(void)
{
    const uint64_t before = *wg_dict_events();
    CHECK(wg_note_dict_event(0, &a, &b, &c) == 0);
    CHECK(wg_note_dict_event(5, &a, NULL, NULL) == 0);
    CHECK(*wg_dict_events() == before + 2);
}

static const int64_t k_sizes[] = {2, 3}, k_strides[] = {3, 1};

static struct dl_tensor tensor_at(uint64_t address)
{
    return (struct dl_tensor){(void*)(uintptr_t)address, 2, 1, 2, 2, 32, 1, k_sizes, k_strides, 0};
}

static wg_tensor_look look_of(uint64_t* address)
{
    return (wg_tensor_look){k_sizes, k_strides, 2, 2, 1, 2, 32, 1, 0, address};
}

void tensors_are_there_until_one_moves(void)
{
    struct dl_tensor first = tensor_at(4096), second = tensor_at(8192);
    void* const tensors[] = {&first, &second};
    uint64_t addresses[] = {4096, 8192};
    const wg_tensor_look looks[] = {look_of(&addresses[0]), look_of(&addresses[1])};
    CHECK(wg_tensors_are_there(copy_of, tensors, looks, 2) == 1);
    second.byte_offset = 16;
    CHECK(wg_tensors_are_there(copy_of, tensors, looks, 2) == 0);
    CHECK(wg_tensors_are_there(copy_of, tensors, looks, 1) == 1);
    second.byte_offset = 0;
    CHECK(wg_tensors_are_there(copy_of, tensors, looks, 2) == 1);
}

void tensors_that_look_otherwise_are_told(void)
{
    static const int64_t sizes[] = {2, 4}, strides[] = {4, 1};
    for (int i = 0; i < 9; ++i) {
        struct dl_tensor tensor = tensor_at(4096);
        void* const tensors[] = {i == 8 ? NULL : (void*)&tensor};
        uint64_t address = 4096;
        const wg_tensor_look look = look_of(&address);
        CHECK(i == 8 || wg_tensors_are_there(copy_of, tensors, &look, 1) == 1);
        if (i == 0) tensor.device_type = 1;
        if (i == 1) tensor.device_id = 0;
        if (i == 2) tensor.rank = 1;
        if (i == 3) tensor.code = 0;
        if (i == 4) tensor.bits = 16;
        if (i == 5) tensor.lanes = 2;
        if (i == 6) tensor.sizes = sizes;
        if (i == 7) tensor.strides = strides;
        CHECK(wg_tensors_are_there(copy_of, tensors, &look, 1) == 0);
    }
}

void tensors_are_looked_at(void)
{
    struct dl_tensor one = tensor_at(4096), scalar = tensor_at(8192), wide = tensor_at(0);
    static const int64_t sizes[] = {5, 6, 7}, strides[] = {42, 7, 1};
    scalar.rank = 0;
    scalar.sizes = scalar.strides = NULL;
    wide.rank = 3;
    wide.sizes = sizes;
    wide.strides = strides;
    void* tensors[] = {&one, &scalar, &wide};
    wg_tensor_look looks[3];
    uint64_t own[3] = {0, 0, 0};
    int64_t numbers[10];
    CHECK(wg_look_at_tensors(copy_of, tensors, 3, looks, own, numbers, 0) == 10);
    CHECK(wg_look_at_tensors(copy_of, tensors, 3, looks, own, numbers, 9) == 10);
    CHECK(wg_look_at_tensors(copy_of, tensors, 3, looks, own, numbers, 10) == 10);
    CHECK(looks[2].rank == 3 && looks[2].sizes[1] == 6 && looks[2].strides[0] == 42 && looks[2].address == &own[2]);
    CHECK(looks[1].rank == 0 && looks[1].alignment == 0 && looks[0].device_type == one.device_type);
    CHECK(own[0] == 4096 && own[1] == 8192);
    CHECK(wg_tensors_are_there(copy_of, tensors, looks, 3) == 1);
    wide.sizes = strides; /* must have no effect, because the descriptions have copies of the sizes */
    CHECK(wg_tensors_are_there(copy_of, tensors, looks, 3) == 0);
    one.strides = NULL;
    CHECK(wg_look_at_tensors(copy_of, tensors, 3, looks, own, numbers, 10) < 0);
    tensors[0] = NULL;
    CHECK(wg_look_at_tensors(copy_of, tensors, 3, looks, own, numbers, 10) < 0);
}

void objects_are_looked_at_where_there_is_python(void)
{
    wg_snapshot nothing;
    memset(&nothing, 0, sizeof nothing);
    CHECK(wg_snapshot_is_same(&nothing) == -1);
    wg_steady_call call;
    memset(&call, 0, sizeof call);
    void* callable = &a;
    CHECK(wg_steady_call_create(sizeof call, &call, &callable) == wg_unsupported);
    CHECK(strstr(wg_last_error(), "does not export Python") != NULL);
}
