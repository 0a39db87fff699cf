"""flip.py FILE OFFSET...: change one bit at each offset (negative: from the end), leaving the times as they are."""
import os
import sys

path = sys.argv[1]
st = os.stat(path)
with open(path, "r+b") as file:
    for text in sys.argv[2:]:
        offset = int(text) if int(text) >= 0 else st.st_size + int(text)
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))
os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
