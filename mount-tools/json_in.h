/* json_in.h - finds values in a JSON document that is held in memory, without taking it apart first. */
#ifndef JSON_IN_H
#define JSON_IN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether text is one JSON value and nothing else but white space. The others take values of such a text only. */
bool json_valid(const char *text);

/* The value of the member of that name, or the i-th element. NULL: there is none, or value is no object or array. */
const char *json_member(const char *value, const char *name);
const char *json_element(const char *value, size_t i);

/* A number; otherwise, also for null and for NULL, `otherwise`. */
double json_number_or(const char *value, double otherwise);
/* A string, as json_out.h writes them; "" when it is none. The caller frees it. */
char *json_text(const char *value);

#endif
