/* Tests calls that are refused: every failure has its code, and a text that says what the caller must pass instead. */
#include <pthread.h>
#include <string.h>

#include "checks.h"

static void* look_at_last_error(void* empty)
{
    *(int*)empty = wg_last_error()[0] == '\0';
    wg_device_close(NULL);
    wg_buffer_memory(NULL); /* this call fails, and sets the error of this thread only */
    return NULL;
}

void the_last_error_belongs_to_its_thread(void)
{
    pthread_t thread;
    int empty = 0;
    FAILS(wg_device_synchronize(NULL), wg_invalid_argument, "device is null");
    CHECK(pthread_create(&thread, NULL, look_at_last_error, &empty) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(empty);
    CHECK(contains(wg_last_error(), "device is null"));
    OK(wg_device_synchronize(g_device));
    CHECK(contains(wg_last_error(), "device is null")); /* a call that succeeds does not change the last error */
}

static int never_called(wg_recorder* recorder, void* user)
{
    (void)recorder, (void)user;
    check(0, "the callback is not called", __LINE__, __FILE__);
    return 1;
}

void null_handles_are_refused(void)
{
    wg_stream* stream = wg_device_stream(g_device);
    const wg_function_spec spec = vector_spec("nulls");
    const wg_memory nowhere = {{0, 0}, 0};
    const wg_arg arg = {.name = "x"};
    wg_statistics statistics = {.size = sizeof statistics};
    wg_kind_statistics of_kind = {.size = sizeof of_kind};
    wg_buffer* buffer = NULL;
    wg_program* program = NULL;
    wg_stream* made = stream;
    wg_event* event = NULL;
    wg_function* function = NULL;
    wg_report* report = NULL;
    char text[8];

    FAILS(wg_device_synchronize(NULL), wg_invalid_argument, "device is null: pass one from wg_device_open");
    FAILS(wg_buffer_create(NULL, 4, &buffer), wg_invalid_argument, "device is null");
    FAILS(wg_program_create(NULL, "p", "", NULL, &program), wg_invalid_argument, "device is null");
    FAILS(wg_stream_create(NULL, &made), wg_invalid_argument, "device is null");
    CHECK(made == NULL);
    FAILS(wg_buffer_upload(NULL, text, 4, 0), wg_invalid_argument, "buffer is null");
    FAILS(wg_buffer_download(NULL, text, 4, 0), wg_invalid_argument, "buffer is null");
    FAILS(wg_stream_synchronize(NULL), wg_invalid_argument, "stream is null");
    FAILS(wg_stream_record(NULL, &event), wg_invalid_argument, "stream is null");
    FAILS(wg_stream_wait(stream, NULL), wg_invalid_argument, "event is null");
    FAILS(wg_launch(NULL, g_program, "add_one", k_grid, k_block, NULL, 0), wg_invalid_argument, "stream is null");
    FAILS(wg_launch(stream, NULL, "add_one", k_grid, k_block, NULL, 0), wg_invalid_argument, "program is null");
    FAILS(wg_copy(NULL, nowhere.address, nowhere.address, 4), wg_invalid_argument, "stream is null");
    FAILS(wg_fill(NULL, nowhere.address, text, 1, 4), wg_invalid_argument, "stream is null");
    FAILS(wg_cache_summary(NULL, text, sizeof text, NULL), wg_invalid_argument, "cache is null");
    FAILS(wg_cache_readable(NULL, "f", text, sizeof text, NULL), wg_invalid_argument, "cache is null");
    FAILS(wg_cache_miss_reasons(NULL, wg_kind_entries, text, sizeof text, NULL), wg_invalid_argument, "cache is null");
    FAILS(wg_record_pending(NULL, NULL), wg_invalid_argument, "cache is null");
    FAILS(wg_cache_clear(NULL, NULL, NULL, NULL), wg_invalid_argument, "cache is null");
    FAILS(wg_cache_statistics(NULL, &statistics), wg_invalid_argument, "cache is null");
    FAILS(wg_cache_kind_statistics(NULL, wg_kind_entries, &of_kind), wg_invalid_argument, "cache is null");
    FAILS(wg_wrap(NULL, g_device, &spec, never_called, NULL, &function), wg_invalid_argument, "cache is null");
    FAILS(wg_bind(NULL, "s", nowhere), wg_invalid_argument, "function is null");
    FAILS(wg_call(NULL, stream, &arg, 1, NULL), wg_invalid_argument, "function is null");
    FAILS(wg_function_report(NULL, &report), wg_invalid_argument, "function is null");
    FAILS(wg_function_misses(NULL, NULL, 0, NULL), wg_invalid_argument, "function is null");

    CHECK(wg_device_id(NULL) == NULL && wg_device_name(NULL) == NULL && wg_device_stream(NULL) == NULL);
    CHECK(wg_cache_directory(NULL) == NULL && wg_cache_disabled_reason(NULL) == NULL &&
          wg_recorder_stream(NULL) == NULL);
    CHECK(wg_buffer_memory(NULL).size == 0 && wg_buffer_memory(NULL).address.base == 0);
    CHECK(wg_report_outcome(NULL) == -1 && wg_report_function(NULL) == NULL && wg_report_reason(NULL) == NULL);
    CHECK(wg_report_entry(NULL) == NULL && wg_report_first_call_ms(NULL) == 0 && wg_report_phase_count(NULL) == 0);
    CHECK(wg_report_recording_bytes(NULL) == 0);
    CHECK(wg_report_phase_name(NULL, 0) == NULL && wg_report_phase_ms(NULL, 0) == 0);
    CHECK(contains(wg_last_error(), "report is null"));

    OK(wg_device_close(NULL));
    OK(wg_buffer_destroy(NULL));
    OK(wg_program_destroy(NULL));
    OK(wg_stream_destroy(NULL));
    OK(wg_event_destroy(NULL));
    OK(wg_cache_close(NULL));
    OK(wg_function_destroy(NULL));
    OK(wg_report_destroy(NULL));
    FAILS(wg_stream_destroy(stream), wg_invalid_argument, "the stream belongs to a device");
}

void null_arguments_are_refused(void)
{
    wg_stream* stream = wg_device_stream(g_device);
    wg_cache* cache = open_cache("nulls", wg_policy_read_write);
    wg_buffer* buffer = room();
    wg_function_spec spec = vector_spec("nulls");
    wg_device* device = NULL;
    wg_program* program = NULL;
    wg_cache* other = NULL;
    wg_function* function = NULL;
    const wg_address place = wg_buffer_memory(buffer).address;
    uint64_t length = 0;

    FAILS(wg_device_open(NULL, &device), wg_invalid_argument, "device id is null");
    FAILS(wg_device_open("opencl", NULL), wg_invalid_argument, "out is null");
    FAILS(wg_buffer_create(g_device, 4, NULL), wg_invalid_argument, "out is null");
    FAILS(wg_buffer_upload(buffer, NULL, 4, 0), wg_invalid_argument, "from is null with 4 elements");
    FAILS(wg_buffer_download(buffer, NULL, 4, 0), wg_invalid_argument, "to is null with 4 elements");
    FAILS(wg_program_create(g_device, NULL, "", NULL, &program), wg_invalid_argument, "program name is null");
    FAILS(wg_program_create(g_device, "p", NULL, NULL, &program), wg_invalid_argument, "program source is null");
    FAILS(wg_program_create(g_device, "p", "", NULL, NULL), wg_invalid_argument, "out is null");
    FAILS(wg_stream_create(g_device, NULL), wg_invalid_argument, "out is null");
    FAILS(wg_stream_record(stream, NULL), wg_invalid_argument, "out is null");
    FAILS(wg_launch(stream, g_program, NULL, k_grid, k_block, NULL, 0), wg_invalid_argument, "kernel name is null");
    FAILS(wg_launch(stream, g_program, "add_one", NULL, k_block, NULL, 0), wg_invalid_argument, "grid is null");
    FAILS(wg_launch(stream, g_program, "add_one", k_grid, NULL, NULL, 0), wg_invalid_argument, "block is null");
    FAILS(wg_launch(stream, g_program, "add_one", k_grid, k_block, NULL, 2), wg_invalid_argument,
          "kernel arguments is null");
    FAILS(wg_fill(stream, place, NULL, 4, 4), wg_invalid_argument, "pattern is null");
    FAILS(wg_cache_options_init(NULL, sizeof(wg_cache_options)), wg_invalid_argument, "options is null");
    FAILS(wg_cache_open(NULL, &other), wg_invalid_argument, "options is null");
    FAILS(wg_cache_summary(cache, NULL, 8, &length), wg_invalid_argument, "text is null");
    FAILS(wg_cache_readable(cache, NULL, NULL, 0, &length), wg_invalid_argument, "function name is null");
    FAILS(wg_cache_statistics(cache, NULL), wg_invalid_argument, "out is null");
    FAILS(wg_cache_kind_statistics(cache, wg_kind_entries, NULL), wg_invalid_argument, "out is null");
    FAILS(wg_wrap(cache, NULL, &spec, never_called, NULL, &function), wg_invalid_argument, "device is null");
    FAILS(wg_wrap(cache, g_device, NULL, never_called, NULL, &function), wg_invalid_argument, "spec is null");
    FAILS(wg_wrap(cache, g_device, &spec, NULL, NULL, &function), wg_invalid_argument,
          "the callback of 'nulls' is null");
    FAILS(wg_wrap(cache, g_device, &spec, never_called, NULL, NULL), wg_invalid_argument, "out is null");
    OK(wg_wrap(cache, g_device, &spec, never_called, NULL, &function));
    FAILS(wg_bind(function, NULL, wg_buffer_memory(buffer)), wg_invalid_argument, "state name is null");
    FAILS(wg_call(function, NULL, NULL, 0, NULL), wg_invalid_argument,
          "stream is null: pass wg_device_stream(device) for the default one");
    FAILS(wg_call(function, stream, NULL, 2, NULL), wg_invalid_argument, "arguments is null with 2 elements");
    FAILS(wg_function_report(function, NULL), wg_invalid_argument, "out is null");
    OK(wg_function_destroy(function));
    OK(wg_cache_close(cache));
    OK(wg_buffer_destroy(buffer));
}

void null_elements_are_refused(void)
{
    const wg_function_spec plain = vector_spec("elements");
    const wg_tensor_decl nameless = {NULL, wg_f32, 0, NULL}, sizeless = {"x", wg_f32, 2, NULL};
    const wg_state_decl state = {NULL, {{0, 0}, 0}, wg_access_read_write};
    const wg_scalar_decl scalar = {NULL, wg_i32, 0, 0, 0};
    const wg_program* const code = NULL;
    const wg_key_value pair = {"key", NULL}, keyless = {NULL, "value"};
    const char* const environment = NULL;
    const wg_arg arg = {.name = NULL};
    wg_cache* cache = open_cache("elements", wg_policy_read_write);
    wg_function* function = NULL;
    wg_function_spec spec = plain;

#define WRAP_FAILS(part)                                                                                               \
    FAILS(wg_wrap(cache, g_device, &spec, never_called, NULL, &function), wg_invalid_argument, (part)), spec = plain
    spec.name = NULL, WRAP_FAILS("function name is null");
    spec.inputs = NULL, WRAP_FAILS("inputs is null with 1 elements");
    spec.inputs = &nameless, WRAP_FAILS("a name in inputs is null");
    spec.outputs = &sizeless, WRAP_FAILS("the sizes of 'x' are null with 2 dimensions");
    spec.states = &state, spec.state_count = 1, WRAP_FAILS("a name in states is null");
    spec.scalars = &scalar, spec.scalar_count = 1, WRAP_FAILS("a name in scalars is null");
    spec.values = &scalar, spec.value_count = 1, WRAP_FAILS("a name in values is null");
    spec.code = &code, WRAP_FAILS("a program of code is null");
    spec.config = &pair, spec.config_count = 1, WRAP_FAILS("the value of 'key'");
    spec.config = &keyless, spec.config_count = 1, WRAP_FAILS("a key of the function's configuration is null");
    spec.environment = &environment, spec.environment_count = 1, WRAP_FAILS("a name in environment is null");
#undef WRAP_FAILS

    OK(wg_wrap(cache, g_device, &spec, never_called, NULL, &function));
    FAILS(wg_call(function, wg_device_stream(g_device), &arg, 1, NULL), wg_invalid_argument,
          "an argument's name is null");
    OK(wg_function_destroy(function));
    OK(wg_cache_close(cache));
}

void wrong_options_are_refused(void)
{
    static const wg_key_value twice[] = {{"layers", "1"}, {"layers", "2"}};
    struct {
        wg_cache_options options;
        uint64_t further;
    } newer;
    wg_cache_options defaults, options;
    wg_cache* cache = (wg_cache*)&defaults;
    wg_device* device = (wg_device*)&defaults;
    FAILS(wg_device_open("opencl:no such device", &device), wg_not_found, "no device 'no such device'; devices:");
    CHECK(device == NULL);
    FAILS(wg_device_open("abacus:0", &device), wg_not_found, "abacus");
    FAILS(wg_cache_options_init(&defaults, 8), wg_invalid_argument,
          "wg_cache_options has the size 8, expected at least");
    OK(wg_cache_options_init(&defaults, sizeof defaults));
    CHECK(defaults.size == sizeof defaults && defaults.world_size == -1 && defaults.pp_rank == -1 &&
          defaults.model == NULL);
    defaults.world_size = 1;
    defaults.global_rank = 0;
    defaults.cache_dir = g_folder;

#define OPEN_FAILS(code, part)                                                                                         \
    FAILS(wg_cache_open(&options, &cache), (code), (part)), options = defaults, options.model = "toy"
    options = defaults, OPEN_FAILS(wg_invalid_argument, "model name is null");
    CHECK(cache == NULL);
    options.model = "../elsewhere", OPEN_FAILS(wg_invalid_argument, "../elsewhere");
    options.config = twice, options.config_count = 2, OPEN_FAILS(wg_invalid_argument, "'layers' is given twice");
    options.config_count = 2, OPEN_FAILS(wg_invalid_argument, "the model's configuration is null");
    options.sign_with = "0123456789abcdef", OPEN_FAILS(wg_invalid_argument, "is not a signing key");
    CHECK(!contains(wg_last_error(), "0123456789"));
    options.require_signed = 1, OPEN_FAILS(wg_invalid_argument, "no key is accepted");
    options.accept_key_count = 1, OPEN_FAILS(wg_invalid_argument, "accept_keys is null");
    options.trusted_owner_count = 1, OPEN_FAILS(wg_invalid_argument, "trusted_owners is null");
    options.accept_file = "/nonexistent/keys", OPEN_FAILS(wg_not_found, "/nonexistent/keys");
    options.policy = 77, OPEN_FAILS(wg_invalid_argument, "policy is 77");
    options.global_rank = 5, OPEN_FAILS(wg_invalid_argument, "5");
    options.size = 0, OPEN_FAILS(wg_invalid_argument, "wg_cache_options has the size 0");
    options.size = UINT64_MAX, OPEN_FAILS(wg_invalid_argument, "wg_cache_options has the size");
#undef OPEN_FAILS

    newer.options = options;
    newer.options.size = sizeof newer;
    newer.options.policy = wg_policy_off;
    newer.further = 1;
    FAILS(wg_cache_open(&newer.options, &cache), wg_unsupported, "use a newer library");
    newer.further = 0;
    OK(wg_cache_open(&newer.options, &cache));
    wg_statistics statistics = {.size = 1};
    FAILS(wg_cache_statistics(cache, &statistics), wg_invalid_argument, "wg_statistics has the size 1");
    wg_kind_statistics of_kind = {.size = 1};
    FAILS(wg_cache_kind_statistics(cache, wg_kind_tuned, &of_kind), wg_invalid_argument,
          "wg_kind_statistics has the size 1");
    of_kind.size = sizeof of_kind;
    FAILS(wg_cache_kind_statistics(cache, 0, &of_kind), wg_invalid_argument, "the kind is 0");
    FAILS(wg_cache_kind_statistics(cache, wg_kind_torch + 1, &of_kind), wg_invalid_argument, "the kind is 8");
    FAILS(wg_cache_miss_reasons(cache, 0, NULL, 0, NULL), wg_invalid_argument, "the kind is 0");
    OK(wg_cache_close(cache));
}

void wrong_specs_are_refused(void)
{
    static const wg_tensor_decl untyped = {"x", 99, 0, NULL}, high = {"x", wg_f32, 1000, NULL},
                                bad_name = {"no/name", wg_f32, 0, NULL};
    static const wg_scalar_decl half = {"n", wg_f16, 0, 0, 0}, empty = {"n", wg_i32, 1, 2, 1};
    const wg_state_decl state = {"s", {{1, 0}, 4}, 9};
    const wg_function_spec plain = vector_spec("specs");
    wg_function_spec spec = plain;
    wg_cache* cache = open_cache("specs", wg_policy_read_write);
    wg_function *function = NULL, *again = NULL;

#define WRAP_FAILS(part)                                                                                               \
    FAILS(wg_wrap(cache, g_device, &spec, never_called, NULL, &function), wg_invalid_argument, (part)), spec = plain
    spec.size = 0, WRAP_FAILS("wg_function_spec has the size 0");
    spec.name = "../f", WRAP_FAILS("../f");
    spec.inputs = &untyped, WRAP_FAILS("'x' has the type 99");
    spec.inputs = &high, WRAP_FAILS("'x' has 1000 dimensions");
    spec.inputs = &bad_name, WRAP_FAILS("no/name");
    spec.outputs = spec.inputs, WRAP_FAILS("'x' is declared twice");
    spec.scalars = &half, spec.scalar_count = 1, WRAP_FAILS("scalar 'n' is f16");
    spec.scalars = &empty, spec.scalar_count = 1, WRAP_FAILS("empty range");
    spec.states = &state, spec.state_count = 1, WRAP_FAILS("state 's' has the access 9");
    spec.policy = -2, WRAP_FAILS("policy is -2");
#undef WRAP_FAILS

    OK(wg_wrap(cache, g_device, &spec, never_called, NULL, &function));
    FAILS(wg_wrap(cache, g_device, &spec, never_called, NULL, &again), wg_invalid_argument,
          "'specs' is wrapped already");
    OK(wg_function_destroy(function));
    OK(wg_cache_close(cache));
}

void wrong_calls_are_refused(void)
{
    static const wg_scalar_decl scalar = {"n", wg_i32, 1, 0, 9};
    wg_stream* stream = wg_device_stream(g_device);
    wg_function_spec spec = vector_spec("calls");
    spec.scalars = &scalar;
    spec.scalar_count = 1;
    wg_buffer *x = floats(0), *y = room(), *small = NULL;
    OK(wg_buffer_create(g_device, k_bytes - 4, &small));
    wg_cache* cache = open_cache("calls", wg_policy_read_write);
    wg_function* function = NULL;
    OK(wg_wrap(cache, g_device, &spec, never_called, NULL, &function));
    const wg_arg right[] = {
        memory_arg("x", x), memory_arg("y", y), {.name = "n", .kind = wg_arg_number, .dtype = wg_i32, .bits = 5}};
    wg_arg args[3];

#define CALL_FAILS(part)                                                                                               \
    FAILS(wg_call(function, stream, args, 3, NULL), wg_invalid_argument, (part)), memcpy(args, right, sizeof right)
    memcpy(args, right, sizeof right);
    FAILS(wg_call(function, stream, args, 2, NULL), wg_invalid_argument, "'n' is missing");
    FAILS(wg_call(function, stream, NULL, 0, NULL), wg_invalid_argument, "'x' is missing");
    args[1].name = "z", CALL_FAILS("'z' is not declared: declared are x, y, n");
    args[1].name = "x", CALL_FAILS("'x' is given twice");
    args[1] = memory_arg("y", small), CALL_FAILS("'y' needs 256 bytes, its memory has 252");
    args[1].memory.address.base = 0, CALL_FAILS("'y' has no memory");
    args[0].kind = wg_arg_number, args[0].dtype = wg_i32, CALL_FAILS("'x' is a number in this call");
    args[0].kind = wg_arg_tensor, args[0].dtype = -1, CALL_FAILS("'x' has the type -1");
    args[0].kind = wg_arg_tensor, args[0].rank = 1, CALL_FAILS("the sizes of 'x' are null");
    args[0].kind = 9, CALL_FAILS("'x' has the kind 9");
    args[2].kind = wg_arg_memory, CALL_FAILS("'n' is memory in this call, expected a number of type i32");
    args[2].dtype = wg_f32, CALL_FAILS("which i32 cannot hold: pass the declared type");
    args[2].dtype = wg_u8, CALL_FAILS("'n' is a number of type u8");
    args[2].bits = 10, CALL_FAILS("outside its declared range");
#undef CALL_FAILS

    FAILS(wg_bind(function, "x", wg_buffer_memory(x)), wg_invalid_argument, "has no state 'x'");
    FAILS(wg_buffer_upload(x, args, 8, k_bytes - 4), wg_invalid_argument, "cannot upload 8 bytes at offset 252");
    FAILS(wg_buffer_download(x, args, 8, UINT64_MAX), wg_invalid_argument, "cannot download 8 bytes");
    OK(wg_function_destroy(function));
    OK(wg_cache_close(cache));
    DESTROY_BUFFERS(x, y, small);
}
