"""access_list.py FILE [TAG:ID:BITS...]: set the POSIX access control list of FILE, or print the one it has.

TAG: u (ID empty: the owner), g (the group), m (the mask), o (the others); BITS: octal. -d first: the default list of a
directory. The layout is that of linux/posix_acl_xattr.h.
"""

import errno
import os
import struct
import sys

TAGS = {("u", False): 1, ("u", True): 2, ("g", False): 4, ("g", True): 8, ("m", False): 16, ("o", False): 32}
NO_ID = 0xFFFFFFFF


def main(args):
    name = "system.posix_acl_access"
    if args[0] == "-d":
        name, args = "system.posix_acl_default", args[1:]
    if len(args) > 1:
        data = struct.pack("<I", 2)
        for spec in args[1:]:
            tag, who, bits = spec.split(":")
            data += struct.pack("<HHI", TAGS[tag, bool(who)], int(bits, 8), int(who) if who else NO_ID)
        os.setxattr(args[0], name, data)
        return
    try:
        data = os.getxattr(args[0], name)
    except OSError as e:
        assert e.errno in (errno.ENODATA, errno.EOPNOTSUPP), e
        return
    names = {number: tag for (tag, _), number in TAGS.items()}
    for tag, bits, who in struct.iter_unpack("<HHI", data[4:]):
        print(f"{names[tag]}:{'' if who == NO_ID else who}:{bits:o}")


main(sys.argv[1:])
