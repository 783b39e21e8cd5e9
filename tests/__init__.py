"""The tests: everything in them is tiny, and works on one thread.

Handing work to other threads costs more than the work, and a great deal more on a busy machine.
The variable is set here because NumPy and SciPy read it when they are imported, which comes later.
Processes started by tests inherit it and round alike.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
