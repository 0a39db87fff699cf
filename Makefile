# weightfs: `make help` lists targets and variables.
CC ?= cc
CFLAGS ?= -O2 -g
BUILD ?= build

override CPPFLAGS += -Icodec -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64
override CFLAGS := -std=gnu11 -Wall -Wextra -Wshadow -Wvla -ffp-contract=off -fvisibility=hidden -fPIC -pthread $(CFLAGS)

all: $(BUILD)/libwfs.a
CODEC_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard codec/*.c))
$(BUILD)/libwfs.a: $(CODEC_OBJ)
	ar rcs $@ $^
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
clean:
	rm -rf $(BUILD)
-include $(CODEC_OBJ:.o=.d)
.PHONY: all clean
