"""`python -m kvdyno …`: the program that the wheel installed beside this interpreter."""

import os
import shutil
import sys
import sysconfig

UNAVAILABLE = 69


def main() -> None:
    """Becomes the program."""
    program = shutil.which("kvdyno", path=sysconfig.get_path("scripts")) or shutil.which("kvdyno")
    if program is None:
        print("kvdyno: the program is not installed; install the wheel, or build it with cargo", file=sys.stderr)
        sys.exit(UNAVAILABLE)
    os.execv(program, [program, *sys.argv[1:]])


main()
