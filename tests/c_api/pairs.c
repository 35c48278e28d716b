/* Tests pairs. The forward half computes y = x + 1 and saves a value; the backward half computes dx = 2 * that. */
#include "checks.h"

static int forward(wg_recorder* recorder, void* user)
{
    wg_address x, y, h;
    if (user != NULL) ++*(int*)user;
    if (wg_recorder_address(recorder, "x", &x) || wg_recorder_address(recorder, "y", &y) ||
        wg_recorder_address(recorder, "h", &h))
        return 1;
    const wg_kernel_arg args[] = {at(x), at(y)}, saved[] = {at(x), at(h)};
    return launch(wg_recorder_stream(recorder), "add_one", args, 2) != wg_ok ||
           launch(wg_recorder_stream(recorder), "add_one", saved, 2) != wg_ok;
}

static int backward(wg_recorder* recorder, void* user)
{
    wg_address dy, dx, h;
    if (user != NULL) ++*(int*)user;
    if (wg_recorder_address(recorder, "dy", &dy) || wg_recorder_address(recorder, "dx", &dx) ||
        wg_recorder_address(recorder, "h", &h))
        return 1;
    const wg_kernel_arg args[] = {at(dy), at(h), at(dx)};
    return launch(wg_recorder_stream(recorder), "add", args, 3) != wg_ok;
}

static const int64_t k_sizes[] = {k_count}, k_other[] = {k_count + 1};

struct declared {
    wg_function_spec forward, backward;
    wg_tensor_decl x, y, dy, dx, saved[2];
    wg_key_value gradient;
    wg_pair_spec pair;
};

static void declare(struct declared* to)
{
    const struct declared empty = {0};
    *to = empty;
    to->x = (wg_tensor_decl){"x", wg_f32, 1, k_sizes};
    to->y = (wg_tensor_decl){"y", wg_f32, 1, k_sizes};
    to->dy = (wg_tensor_decl){"dy", wg_f32, 1, k_sizes};
    to->dx = (wg_tensor_decl){"dx", wg_f32, 1, k_sizes};
    to->saved[0] = (wg_tensor_decl){"h", wg_f32, 1, k_sizes};
    to->saved[1] = to->saved[0];
    to->gradient = (wg_key_value){"dx", "x"};
    to->forward = vector_spec("pair");
    to->forward.inputs = &to->x, to->forward.outputs = &to->y;
    to->backward.size = sizeof to->backward;
    to->backward.inputs = &to->dy, to->backward.input_count = 1;
    to->backward.outputs = &to->dx, to->backward.output_count = 1;
    to->pair = (wg_pair_spec){sizeof to->pair, &to->forward, &to->backward, to->saved, 1, &to->gradient, 1};
}

void pairs_are_recorded_together(void)
{
    struct declared spec;
    declare(&spec);
    wg_buffer *x = floats(0), *y = room(), *dy = floats(10), *dx = room();
    const wg_arg to_forward[] = {memory_arg("x", x), memory_arg("y", y)};
    const wg_arg to_backward[] = {memory_arg("dy", dy), memory_arg("dx", dx)};
    for (int round = 0; round < 2; ++round) {
        const wg_outcome expected = round == 0 ? wg_outcome_recorded : wg_outcome_replayed;
        wg_cache* cache = open_cache("pairs", wg_policy_read_write);
        wg_pair* pair = NULL;
        wg_stream* stream = wg_device_stream(g_device);
        wg_outcome outcome = -1;
        wg_report* report = NULL;
        int runs = 0;
        uint64_t first = 0, second = 0;
        char misses[512];
        OK(wg_wrap_pair(cache, g_device, &spec.pair, forward, backward, &runs, &pair));
        OK(wg_pair_forward(pair, stream, to_forward, 2, &first, &outcome));
        CHECK(outcome == expected && first != 0);
        OK(wg_pair_backward(pair, stream, first, to_backward, 2, &outcome));
        CHECK(outcome == expected && (runs == 0) == (round == 1));
        CHECK(holds(y, 1, 1) && holds(dx, 11, 2));
        OK(wg_pair_report(pair, wg_pair_backward_half, &report));
        CHECK(contains(wg_report_function(report), "pair.backward") && wg_report_outcome(report) == expected);
        OK(wg_report_destroy(report));
        OK(wg_pair_misses(pair, wg_pair_forward_half, misses, sizeof misses, NULL));
        CHECK(round == 0 ? contains(misses, "Z recorded: no entry\n") : misses[0] == '\0');
        OK(wg_pair_forward(pair, stream, to_forward, 2, &second, NULL));
        FAILS(wg_pair_backward(pair, stream, first, to_backward, 2, NULL), wg_stale, "overwrote");
        OK(wg_pair_backward(pair, stream, second, to_backward, 2, NULL));
        OK(wg_cache_close(cache)); /* the pair must outlive the cache */
        OK(wg_pair_forward(pair, stream, to_forward, 2, &second, &outcome));
        CHECK(outcome == wg_outcome_replayed);
        OK(wg_device_synchronize(g_device));
        OK(wg_pair_destroy(pair));
    }
    wg_buffer* const buffers[] = {x, y, dy, dx};
    for (int i = 0; i < 4; ++i) OK(wg_buffer_destroy(buffers[i]));
}

void wrong_pairs_are_refused(void)
{
    struct declared spec;
    declare(&spec);
    wg_cache* cache = open_cache("wrong_pairs", wg_policy_off);
    wg_pair* pair = NULL;
    wg_stream* stream = wg_device_stream(g_device);
    uint64_t generation = 0;
    FAILS(wg_wrap_pair(cache, g_device, NULL, forward, backward, NULL, &pair), wg_invalid_argument, "spec is null");
    FAILS(wg_wrap_pair(cache, g_device, &spec.pair, forward, NULL, NULL, &pair), wg_invalid_argument,
          "the backward callback of 'pair' is null");
    spec.pair.backward = NULL;
    FAILS(wg_wrap_pair(cache, g_device, &spec.pair, forward, backward, NULL, &pair), wg_invalid_argument,
          "backward's spec is null");
    declare(&spec);
    spec.pair.saved_count = 2;
    FAILS(wg_wrap_pair(cache, g_device, &spec.pair, forward, backward, NULL, &pair), wg_invalid_argument,
          "'h' is declared twice");
    declare(&spec);
    spec.dx.sizes = k_other;
    FAILS(wg_wrap_pair(cache, g_device, &spec.pair, forward, backward, NULL, &pair), wg_invalid_argument,
          "do not match");
    declare(&spec);
    OK(wg_wrap_pair(cache, g_device, &spec.pair, forward, backward, NULL, &pair));
    FAILS(wg_pair_backward(pair, stream, 0, NULL, 0, NULL), wg_invalid_argument, "before forward");
    FAILS(wg_pair_forward(pair, stream, NULL, 0, NULL, NULL), wg_invalid_argument, "generation is null");
    FAILS(wg_pair_forward(pair, stream, NULL, 0, &generation, NULL), wg_invalid_argument, "'x' is missing");
    FAILS(wg_pair_bind(pair, "w", (wg_memory){{0, 0}, 0}), wg_invalid_argument, "no state 'w'");
    wg_report* report = NULL;
    FAILS(wg_pair_report(pair, 2, &report), wg_invalid_argument, "half is 2");
    FAILS(wg_pair_misses(pair, 2, NULL, 0, NULL), wg_invalid_argument, "half is 2");
    FAILS(wg_pair_forward(NULL, stream, NULL, 0, &generation, NULL), wg_invalid_argument, "pair is null");
    OK(wg_pair_destroy(pair));
    OK(wg_pair_destroy(NULL));
    OK(wg_cache_close(cache));
}
