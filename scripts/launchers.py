"""Dask's own launchers on one machine, whose network is the loopback address: for a record.

Everything runs in namespaces of its own: a network without other machines, a folder /run and a
file /etc/hosts that nobody else sees, and processes that end with the first of them. The system's
settings of SSH and Slurm are neither read nor changed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/howto/start-cluster.md"
HOSTS = ("127.0.0.1", "127.0.0.2")
SSH_PORT = 2222
SERVICE = "twoscale-scheduler.default.svc.cluster.local"
_ISOLATE = ["--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
_PATIENCE = 60.0  # seconds
_BEFORE_CANCEL = 3.0  # seconds of a fit's work on workers

_SSHD = """
Port {port}
ListenAddress 127.0.0.1
ListenAddress 127.0.0.2
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile {folder}/sshd.pid
AuthenticationMethods publickey
StrictModes no
UsePAM no
SetEnv PATH={path} PYTHONPATH={python_path} DASK_TEMPORARY_DIRECTORY={scratch}
"""

_SLURM = """
ClusterName=record
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
NodeName=localhost NodeAddr=127.0.0.1 CPUs={cores} RealMemory={megabytes}
PartitionName=record Nodes=ALL Default=YES State=UP
"""

_SSH_CLUSTER = """
import sys
from dask.distributed import SSHCluster
folder, port, *hosts = sys.argv[1:]
cluster = SSHCluster(
    hosts,
    connect_options={
        "port": int(port), "client_keys": folder + "/user_key",
        "known_hosts": folder + "/known_hosts",
    },
    worker_options={"nthreads": 1},
    scheduler_options={"host": hosts[0]},
)
print(cluster.scheduler_address, flush=True)
input()
cluster.close()
"""


@dataclass
class Site:
    """A temporary folder of this record, and the processes that it started."""

    folder: Path
    jobs: list[str] = field(default_factory=list)  # of Slurm, of the last launcher

    def enter(self) -> None:
        """Set up the namespaces this process is in, and where commands are found."""
        _call("ip", "link", "set", "lo", "up")
        # Slurm resolves names only if there is an IPv4 address besides 127.0.0.1.
        _call("ip", "addr", "add", "127.0.0.2/8", "dev", "lo")
        socket.sethostname("localhost")
        _call("mount", "-t", "tmpfs", "none", "/run")
        Path("/run/sshd").mkdir()
        names = self.folder / "hosts"
        names.write_text(f"127.0.0.1 localhost {SERVICE}\n")
        _call("mount", "--bind", str(names), "/etc/hosts")
        programs = self.folder / "bin"
        programs.mkdir()
        for name in ("dask", "twoscale"):
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m {name} "$@"\n')
            (programs / name).chmod(0o755)
        os.environ["PATH"] = f"{programs}:{os.environ['PATH']}:/usr/sbin:/sbin"
        os.environ["PYTHONPATH"] = str(ROOT / "src")
        os.environ["DASK_TEMPORARY_DIRECTORY"] = str(self.folder / "scratch")

    @contextmanager
    def running(
        self, *command: str, stop: signal.Signals = signal.SIGTERM, **options: Any
    ) -> Iterator[subprocess.Popen[str]]:
        """Run a program beside the block, and end it by a signal after it."""
        with open(self.folder / "programs.log", "a") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, text=True, stderr=log, **({"stdout": log} | options)
            )
        try:
            yield process
        finally:
            process.send_signal(stop)
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @contextmanager
    def printing(self, program: str, *arguments: str) -> Iterator[str]:
        """Run a Python program that prints an address, and ends when it reads a line."""
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", program, *arguments]
        with self.running(*command, stdin=pipe, stdout=pipe) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            if "://" not in line:
                raise RuntimeError(f"no address but {line!r}: {self.log()}")
            yield line
            process.stdin.write("\n")
            process.stdin.flush()
            process.wait(_PATIENCE)

    def log(self) -> str:
        return (self.folder / "programs.log").read_text()[-3000:]


def isolated(folder: Path, command: list[str]) -> int:
    """Run a command in namespaces of its own; return its exit status."""
    return subprocess.run(["unshare", *_ISOLATE, *command, "--inside", str(folder)]).returncode


def recipe(title: str) -> str:
    """Return a code block of the page on starting a cluster, by its title."""
    found = re.search(
        rf'^```\w+ title="{re.escape(title)}"\n(.*?)^```', PAGE.read_text(), re.M | re.S
    )
    assert found, f"{PAGE} has no block {title}"
    return found[1]


# SSH


@contextmanager
def _sshd(site: Site) -> Iterator[Path]:
    """Run an SSH server on loopback with new keys; give the folder of the keys."""
    folder = site.folder / "ssh"
    if not folder.exists():
        folder.mkdir()
        for name in ("host_key", "user_key"):
            _call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        key = (folder / "host_key.pub").read_text()
        (folder / "known_hosts").write_text("".join(f"[{h}]:{SSH_PORT} {key}" for h in HOSTS))
    paths = {
        "path": os.environ["PATH"],
        "python_path": os.environ["PYTHONPATH"],
        "scratch": os.environ["DASK_TEMPORARY_DIRECTORY"],
    }
    settings = folder / "sshd_config"
    settings.write_text(_SSHD.format(port=SSH_PORT, folder=folder, **paths))
    with site.running(_path_of("sshd"), "-D", "-e", "-f", str(settings)):
        _wait(lambda: _answers(SSH_PORT), "sshd")
        yield folder


@contextmanager
def dask_ssh(site: Site) -> Iterator[str]:
    """Give the address of a cluster that `dask ssh` starts on two addresses of loopback."""
    hosts = site.folder / "hosts.txt"
    hosts.write_text("\n".join(HOSTS))
    with _sshd(site) as folder:
        options = ["--hostfile", str(hosts), "--nworkers", "1", "--nthreads", "1"]
        options += ["--ssh-port", str(SSH_PORT), "--ssh-private-key", str(folder / "user_key")]
        with site.running("dask", "ssh", *options, stop=signal.SIGINT):
            yield f"tcp://{HOSTS[0]}:8786"


@contextmanager
def ssh_cluster(site: Site) -> Iterator[str]:
    """Give the address of a cluster that the class SSHCluster starts."""
    with _sshd(site) as folder:
        arguments = [str(folder), str(SSH_PORT), HOSTS[0], *HOSTS]
        with site.printing(_SSH_CLUSTER, *arguments) as address:
            yield address


# Slurm


@contextmanager
def slurm(site: Site) -> Iterator[None]:
    """Run Slurm with one node, which is this machine."""
    folder = site.folder / "slurm"
    if not folder.exists():
        for name in ("state", "spool"):
            (folder / name).mkdir(parents=True)
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o600)
        megabytes = psutil.virtual_memory().total // 2**20
        text = _SLURM.format(folder=folder, cores=os.cpu_count(), megabytes=megabytes)
        (folder / "slurm.conf").write_text(text)
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    names = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
    files = [f"--{option}={folder}/munge.{name}" for option, name in names.items()]
    with ExitStack() as stack:
        seed = f"--seed-file={folder}/munge.seed"
        munged = [_path_of("munged"), "--foreground", "--force", seed, *files]
        stack.enter_context(site.running(*munged))
        _wait((folder / "munge.socket").exists, "munged")
        stack.enter_context(site.running(_path_of("slurmctld"), "-D"))
        stack.enter_context(site.running(_path_of("slurmd"), "-D"))
        _wait(lambda: "idle" in _output("sinfo", "--noheader"), "Slurm")
        yield


@contextmanager
def slurm_cluster(site: Site) -> Iterator[str]:
    """Give the address of a cluster whose two workers SLURMCluster submits as jobs."""
    program = recipe("Needs Slurm").replace("jobs=8", "jobs=2")
    with slurm(site), site.printing(program) as address:
        _wait(lambda: len(_running_jobs()) == 2, "jobs of Slurm")
        site.jobs = _running_jobs()
        yield address
    site.jobs = []


def cancel_job(site: Site) -> None:
    _call("scancel", site.jobs[-1])


def run_job(site: Site, script: str, *, cancelled: bool) -> None:
    """Run a job of Slurm to its end; if asked, cancel it in the middle, and submit it again."""
    (site.folder / "job.sh").write_text(script)
    command = ["sbatch", "--chdir", str(site.folder), "--output", "job.log", "--open-mode=append"]
    if cancelled:
        number = _output(*command, "--parsable", str(site.folder / "job.sh")).strip()
        _wait(lambda: "workers, dashboard" in job_log(site), "the fit of the job")
        time.sleep(_BEFORE_CANCEL)
        _call("scancel", number)
        _wait(lambda: not _output("squeue", "--noheader"), "the end of the job")
        if "Open the report" in job_log(site):
            raise RuntimeError("the job had ended before it was cancelled")
    ended = subprocess.run([*command, "--wait", str(site.folder / "job.sh")], check=False)
    if ended.returncode:
        raise RuntimeError(f"the job failed: {job_log(site)}")


def job_log(site: Site) -> str:
    path = site.folder / "job.log"
    return path.read_text() if path.exists() else ""


def _running_jobs() -> list[str]:
    return _output("squeue", "--noheader", "--states", "R", "--format", "%A").split()


# Kubernetes


def manifest_faults() -> list[str]:
    """Return in what the page's manifest violates the operator's schema; unknown keys count."""
    import dask_kubernetes.operator
    from jsonschema import Draft7Validator

    chart = "deployment/helm/dask-kubernetes-operator/crds/daskcluster.yaml"
    path = Path(dask_kubernetes.operator.__file__).parent / chart
    definition = yaml.safe_load(path.read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"] |= {name: {} for name in ("apiVersion", "kind", "metadata")}
    errors = Draft7Validator(_closed(schema)).iter_errors(yaml.safe_load(recipe("cluster.yaml")))
    return [f"{error.json_path}: {error.message}" for error in errors]


def _closed(schema: Any) -> Any:
    """Return a schema that refuses the keys which an API server would drop."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(part) for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type", "object") == "object":
        open_ = schema.get("x-kubernetes-preserve-unknown-fields", False)
        closed.setdefault("additionalProperties", bool(open_))
    return closed


def missing_commands() -> list[str]:
    """Return the programs that manifests of dask-kubernetes call and distributed does not have."""
    from dask_kubernetes.operator import make_cluster_spec

    spec = make_cluster_spec(name="twoscale")["spec"]
    called = [spec[kind]["spec"]["containers"][0]["args"][0] for kind in ("scheduler", "worker")]
    where = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return [name for name in called if shutil.which(name, path=where) is None]


@contextmanager
def kubernetes(site: Site) -> Iterator[str]:
    """Give the address of a cluster of processes with the command lines of the page's manifest.

    The operator's own functions make the deployments from it. Each becomes one process, with the
    variables of its container. The name of the scheduler's service is one of this machine.
    """
    from dask_kubernetes.operator.controller import controller

    faults = manifest_faults()
    assert not faults, faults
    spec = yaml.safe_load(recipe("cluster.yaml"))["spec"]
    scheduler = controller.build_scheduler_deployment_spec(
        "twoscale", spec["scheduler"]["spec"], {}, {}
    )
    workers = [
        controller.build_worker_deployment_spec(
            "twoscale-default", "default", "twoscale", str(number), spec["worker"]["spec"], {}, {}
        )
        for number in range(2)
    ]
    with ExitStack() as stack:
        for deployment in (scheduler, *workers):
            stack.enter_context(_container(site, deployment))
        _wait(lambda: _healthy("http://127.0.0.1:8787/health"), "the probe of readiness")
        yield f"tcp://{SERVICE}:8786"


@contextmanager
def _container(site: Site, deployment: Any) -> Iterator[None]:
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    values = {item["name"]: item["value"] for item in container.get("env", [])}
    command = [re.sub(r"\$\((\w+)\)", lambda m: values[m[1]], arg) for arg in container["args"]]
    with site.running(*command, env=os.environ | values):
        yield


def _healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


# Small parts


def _call(*command: str) -> None:
    subprocess.run(command, check=True)


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _path_of(program: str) -> str:
    path = shutil.which(program)
    assert path, f"{program} is not installed"
    return path


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait(reached: Callable[[], bool], what: str) -> None:
    """Return when something is reached; raise after a minute."""
    end = time.monotonic() + _PATIENCE
    while not reached():
        if time.monotonic() > end:
            raise RuntimeError(f"{what} did not answer within {_PATIENCE:g} seconds")
        time.sleep(0.2)
