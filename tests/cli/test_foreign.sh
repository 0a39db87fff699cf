#!/bin/bash
# Every dtype, and files that are no safetensors, come back and save what they should: below these, something was lost.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
: "${WFS_CORPORA:?}"

"$WFS_PYTHON" "$tests/corpora.py" "$WFS_CORPORA" minilm-f64 minilm-fp8 minilm-i8 every-dtype rxnmap gguf foreign >/dev/null ||
	fail "the corpora could not be made"
cd "$dir"

# comes_back FILE LEAST: a container of it holds it and saves LEAST percent; what info says of it is on stdout.
comes_back()
{
	rm -f file.wfs file
	ok weightfs pack "$1" -o file.wfs
	ok weightfs unpack file.wfs -o file
	cmp -s file "$1" || fail "$1 does not come back"
	ok weightfs info --json file.wfs
	json "d['saved_percent'] >= $2"
}

comes_back "$WFS_CORPORA/minilm-f64/model.safetensors" 59.1
comes_back "$WFS_CORPORA/minilm-fp8/model.safetensors" 18
comes_back "$WFS_CORPORA/minilm-i8/model.safetensors" 9
comes_back "$WFS_CORPORA/rxnmap/rxnmap.onnx" 17.15
comes_back "$WFS_CORPORA/foreign/matrix.npy" 16.3
comes_back "$WFS_CORPORA/foreign/model.pt" 33.7
comes_back "$WFS_CORPORA/foreign/odd.bin" 18.1
json "d['regions'] <= 60"
comes_back "$WFS_CORPORA/gguf/model.gguf" 7.8
json "{c['coding'] for c in d['codings']} == {'records'} and d['regions'] <= 10"

comes_back "$WFS_CORPORA/every-dtype/model.safetensors" 36.3
least="F64=58.3 F32=16.8 C64=16.9 F16=15.1 BF16=33.8 F8_E4M3=17.8 F8_E5M2=30.1 F8_E4M3FNUZ=17.8 F8_E5M2FNUZ=30.1 \
F8_E8M0=80 I8=8 U8=3.2 I16=20.4 U16=24 I32=17 U32=54 I64=79.5 U64=97.5 BOOL=87 F4=0 F6_E2M3=0 F6_E3M2=0"
json "{t['dtype'] for t in d['dtypes']} == {part.split('=')[0] for part in '$least'.split()}"
for part in $least; do
	json "[100 - 100 * t['stored_bytes'] / t['raw_bytes'] >= ${part#*=} for t in d['dtypes'] \
		if t['dtype'] == '${part%=*}'] == [True]"
done

# What does not gain is not hurt: the container is its blocks as they are, and its frame.
cp "$WFS_CORPORA/minilm-f32/tokenizer.json" text
gzip -kn text
head -c 3000000 /dev/urandom >noise
for file in text.gz noise; do
	comes_back "$file" -100
	json "d['stored_bytes'] - d['raw_bytes'] < 12000 and d['regions'] == 1"
done
comes_back text 30
