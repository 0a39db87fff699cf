"""Weights that were quantised and made floats again, as people publish them: for corpora.py.

variant(name) gives a function from F32 matrices to matrices. A name is a quantiser with its scales and, where it is not
BF16, the output: fp8-128x128, int4-g32-f16, nf4-f32, fp8-row-truncated.
"""
import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
F32 = np.float32
OUTPUTS = {"bf16": BF16, "f16": np.float16, "f32": F32}

NF4 = np.array([-1, -.6961928009986877, -.5250730514526367, -.39491748809814453, -.28444138169288635,
                -.18477343022823334, -.09105003625154495, 0, .07958029955625534, .16093020141124725, .24611230194568634,
                .33791524171829224, .44070982933044434, .5626170039176941, .7229568362236023, 1], F32)
FP4 = np.array([0, .005208333333, .16666667, .25, .33333333, .5, .66666667, 1], F32)  # bitsandbytes
FP4 = np.unique(np.concatenate([-FP4, FP4]))
E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6], F32)
E2M1 = np.unique(np.concatenate([-E2M1, E2M1]))


# ---- codes: quotients to values ---------------------------------------------------------------------------------------


def floats(dtype):
    top = F32(ml_dtypes.finfo(dtype).max)
    return lambda x: np.clip(x, -top, top).astype(dtype).astype(F32)


def integers(low, high):
    return lambda x: np.clip(np.rint(x), low, high).astype(np.int32).astype(F32)  # no -0


def listed(values):
    return lambda x: values[np.searchsorted((values[1:] + values[:-1]) / 2, x)]


# ---- scales -----------------------------------------------------------------------------------------------------------


def tiles(values, height, width, reduce):
    """reduce() of each tile, at the place of each element."""
    rows, cols = values.shape
    height, width = height or rows, width or cols
    padded = np.pad(values, ((0, -rows % height), (0, -cols % width)), mode="edge")
    each = reduce(padded.reshape(padded.shape[0] // height, height, padded.shape[1] // width, width))
    return np.repeat(np.repeat(each, height, 0), width, 1)[:rows, :cols]


def largest(values, height, width):
    top = tiles(values, height, width, lambda t: np.abs(t).max((1, 3)))
    return np.where(top == 0, F32(1), top)


def as_they_are(scale):
    return scale


def in_bf16(scale):
    return scale.astype(BF16).astype(F32)


def powers_of_two(scale):
    return np.exp2(np.ceil(np.log2(scale.astype(np.float64)))).astype(F32)


# ---- quantisers: F32 matrices to products of F32 ----------------------------------------------------------------------


def plain(code, top, height, width, scales=as_they_are):
    def quantise(values):
        scale = scales((largest(values, height, width) / F32(top)).astype(F32))
        return code(values / scale) * scale
    return quantise


def asymmetric(bits, width):
    """Unsigned codes with a zero point for each group."""
    def quantise(values):
        low = np.minimum(tiles(values, 1, width, lambda t: t.min((1, 3))), 0)
        high = np.maximum(tiles(values, 1, width, lambda t: t.max((1, 3))), 0)
        scale = ((high - low) / F32(2**bits - 1)).astype(np.float16).astype(F32)
        scale = np.where(scale == 0, F32(1), scale)
        zero = np.clip(np.rint(-low / scale), 0, 2**bits - 1)
        return (np.clip(np.rint(values / scale) + zero, 0, 2**bits - 1) - zero + F32(0)).astype(F32) * scale
    return quantise


def nvfp4(values):
    """E2M1, for each 16 an E4M3 scale, for all an F32 one."""
    whole = F32(np.abs(values).max() / (6 * 448))
    scale = (largest(values, 1, 16) / 6 / whole).astype(F32).astype(ml_dtypes.float8_e4m3fn).astype(F32)
    scale = (np.where(scale == 0, F32(1), scale) * whole).astype(F32)
    return listed(E2M1)(values / scale) * scale


def mxfp4(values):
    scale = np.exp2(np.floor(np.log2(largest(values, 1, 32))) - 2).astype(F32)
    return listed(E2M1)(np.clip(values / scale, -6, 6)) * scale


def transposed(quantise):
    return lambda values: np.ascontiguousarray(quantise(np.ascontiguousarray(values.T)).T)


E4M3, E5M2, UZ = (floats(t) for t in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz))
QUANTISERS = {
    "fp8-128x128": plain(E4M3, 448, 128, 128),
    "fp8-128x128-bf16": plain(E4M3, 448, 128, 128, in_bf16),
    "fp8-128x128-ue8m0": plain(E4M3, 448, 128, 128, powers_of_two),
    "fp8-tensor": plain(E4M3, 448, 0, 0),
    "fp8-row": plain(E4M3, 448, 1, 0),
    "fp8-1x128": plain(E4M3, 448, 1, 128),
    "fp8-column": transposed(plain(E4M3, 448, 1, 0)),
    "fp8uz-row": plain(UZ, 240, 1, 0),
    "e5m2-row": plain(E5M2, 57344, 1, 0),
    "mxfp8": plain(E4M3, 256, 1, 32, powers_of_two),
    "int8-row": plain(integers(-127, 127), 127, 1, 0),
    "int8-g128": plain(integers(-127, 127), 127, 1, 128, in_bf16),
    "int8-full": plain(integers(-128, 127), 127.5, 1, 0),
    "int4-g128": plain(integers(-8, 7), 7, 1, 128, in_bf16),
    "int4-g32": plain(integers(-8, 7), 7, 1, 32, in_bf16),
    "int4-zero-g128": asymmetric(4, 128),
    "int4-column": transposed(plain(integers(-8, 7), 7, 1, 128, in_bf16)),
    "nf4": plain(listed(NF4), 1, 1, 64),
    "fp4": plain(listed(FP4), 1, 1, 64),
    "nvfp4": nvfp4,
    "mxfp4": mxfp4,
    "ternary": plain(integers(-1, 1), 2, 0, 0),
}


def truncated(values):
    return (np.ascontiguousarray(values, F32).view(np.uint32) >> 16).astype(np.uint16).view(BF16)


def variant(name):
    """The function of a name; KeyError: there is none."""
    quantiser, output = (name, "bf16") if name in QUANTISERS else name.rsplit("-", 1)
    quantise = QUANTISERS[quantiser]
    if output == "truncated":
        return lambda values: truncated(quantise(values))
    return lambda values: quantise(values).astype(OUTPUTS[output])


def output_of(name):
    """The dtype of what is left as it was."""
    return OUTPUTS.get(name.rsplit("-", 1)[1] if name not in QUANTISERS else "bf16", BF16)
