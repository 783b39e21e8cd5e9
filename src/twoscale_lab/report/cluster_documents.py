"""What is recorded of clusters, and the arithmetic of larger ones, for the page on clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twoscale.files import read_json
from twoscale_lab.report.study_documents import markdown

_HEADER = ("data, GB", "fields", "workers", "seconds", "MB/s", "most memory of a worker, GB")
_ASKED = 10_000.0  # gigabytes of the example
_WORKERS = (10, 100, 1000)
_PASSES = 2  # of the solver `covariance`


def cluster_text(results: Path) -> str:
    """Return the tables of measured PCAs, what was compared byte by byte, and an extrapolation."""
    same = read_json(results / "cluster-bytes.json", require={"bytes": dict})["bytes"]
    hosts = read_json(results / "cluster-hosts.json", require={"two_hosts": dict})["two_hosts"]
    several = read_json(results / "cluster-workers.json", require={"workers": list})["workers"]
    large = read_json(results / "cluster-large.json", require={"large": list})
    launchers = read_json(results / "cluster-launchers.json", require={"launchers": dict})
    rows: Sequence[Mapping[str, Any]] = [*several, *large["large"]]
    limit = max(row["limit_of_each_worker"] for row in rows)
    side, patches = large["nodes_per_side"], "x".join(map(str, large["patches"]))
    return "\n\n".join(
        [
            f"PCAs of fields on {side}² nodes in {patches} patches, by `covariance`. The fields "
            "are computed whenever they are read, so nothing is stored. The system refuses more "
            f"than {limit / 1e9:g} GB of data to a worker. Two CPU cores, at times with other work "
            "beside:",
            "\n".join(markdown(_HEADER, map(_row, rows))),
            _bytes(same, hosts),
            _launchers(launchers),
            _arithmetic(large["large"][-1], large["patches"], side),
            "Records: `results/cluster-*.json`, made by `scripts/cluster_record.py`; that of "
            "launchers by `scripts/launchers_record.py`.",
        ]
    )


def _row(row: Mapping[str, Any]) -> list[str]:
    return [
        f"{row['gigabytes']:g}",
        f"{row['samples']:,}",
        str(row["workers"]),
        f"{row['seconds']:.0f}",
        f"{row['megabytes_per_second']:.0f}",
        f"{max(row['peak_bytes_of_workers']) / 1e9:.2f}",
    ]


def _bytes(here: Mapping[str, Any], hosts: Mapping[str, Any]) -> str:
    same = here["same_weights"] and hosts["same_weights"]
    ways = "; ".join(here["fits"])
    return (
        f"A fit on {here['samples']:,} fields of {here['nodes_per_side']}² nodes was done in these "
        f"ways: {ways}. It was done again with processes in two network namespaces. The weights "
        f"{'were the same, byte by byte' if same else 'differed'}."
    )


def _launchers(record: Mapping[str, Any]) -> str:
    same = record["same_weights"] and record["same_data"]
    tried = [name for name, row in record["launchers"].items() if "skipped" not in row]
    return (
        f"{record['samples']:,} such fields were made and fitted on clusters of one machine, "
        f"started in these ways: {'; '.join(tried)}. Of Kubernetes, only the manifest's command "
        "lines ran, as processes. The datasets and weights "
        f"{'had the same bytes as' if same else 'differed from'} those of one process."
    )


def _arithmetic(row: Mapping[str, Any], patches: Sequence[int], side: int) -> str:
    """Return how long a PCA of 10 TB takes if rates grow with the number of workers."""
    rate = _PASSES * row["megabytes_per_second"] / row["workers"]  # MB/s that a worker reads
    blocks = patches[0] * patches[1]
    features = side**2 // blocks
    products = 8 * blocks * features**2 / 1e6
    times = [
        f"{1000 * _PASSES * _ASKED / (rate * count) / 3600:.2g} h with {count:,}"
        for count in _WORKERS
    ]
    delivered = rate * _WORKERS[1] / 1000
    return (
        f"**10 TB, by arithmetic.** A worker read {rate:.0f} MB/s, and `covariance` reads the "
        f"data {_PASSES} times. At this rate 10 TB take {', '.join(times)} workers, if the store "
        f"delivers {delivered:.2g} GB/s to a hundred of them. What travels are the sums of groups "
        f"of samples: {products:.0f} MB each, three to 24 for each worker. This was not measured "
        "beyond two cores."
    )
