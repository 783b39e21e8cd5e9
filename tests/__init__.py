"""The tests: everything in them is tiny, and works on one thread.

Handing work to other threads costs more than the work, and a great deal more on a busy machine.
Where a test uses two threads, a thread that waits sleeps: spinning takes the core of another test.
The variables are set here because NumPy, SciPy and torch read them when they are imported, which
comes later. Processes started by tests inherit them and round alike. Runs name no commit: asking
git for it takes two processes for each of the many fits. gcsfs reads when it is imported whether
to ask for kinds of buckets, which emulators do not have.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
os.environ["TWOSCALE_COMMIT"] = "unknown"
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
