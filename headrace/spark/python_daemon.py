"""The process from which Spark forks its Python workers, with the modules of our tasks imported.

Spark starts one daemon for each JVM (`spark.python.daemon.module`) and forks a worker from it for
each concurrent task. Without this module every worker imports pandas, pyarrow and our tasks by
itself, and imports pyspark from a zip file whose directory it reads again for every package.
Measured: 4.3 s of processor time before two workers have run their first tasks, 1.5 s with it.
Used where the master is local: on a cluster the package may not be installed when a daemon starts.
tests/spark/test_python_daemon.py looks into a worker.
"""

from __future__ import annotations

import sys

# Spark puts zip and jar files before the installed pyspark, which is the same one.
sys.path[:] = [path for path in sys.path if not path.endswith((".zip", ".jar"))]
sys.path_importer_cache.clear()

import pandas  # noqa: E402, F401  pyarrow imports it when a task first makes an array
from pyspark.daemon import manager  # noqa: E402

import headrace.master.archive  # noqa: E402
import headrace.spark.carry  # noqa: E402
import headrace.spark.kernel_job  # noqa: E402, F401

if __name__ == "__main__":
    manager()
