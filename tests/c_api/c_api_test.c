/* Uses the C interface from C11 as a program does: it records, replays, and gets errors with a code and a text. */
#include <stdio.h>

#include "checks.h"

#define TEST(function) void function(void);
#include "tests.h"
#undef TEST

int main(void)
{
    static const struct {
        const char* name;
        void (*run)(void);
    } tests[] = {
#define TEST(function) {#function, function},
#include "tests.h"
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    check(wg_last_error()[0] == '\0', "no error text before the first failure", __LINE__, __FILE__);
    set_up();
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
        const int before = failures();
        tests[i].run();
        printf("%s %s\n", failures() == before ? "passed" : "FAILED", tests[i].name);
    }
    tear_down();
    return failures() != 0;
}
