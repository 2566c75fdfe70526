"""One run of kvdyno over the nodes of a Ray cluster: `python -m kvdyno.ray run SUITE --agents N …`.

The driver's machine conducts; N nodes carry the load, one agent on each. Nodes are counted before anything is begun. All
else on the command line is kvdyno's, and so are the result, which is written where the driver runs, and the exit code.
"""

import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys

import ray
from ray.util import get_node_ip_address
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

USAGE = 64
UNAVAILABLE = 69
# Longest wait for nodes that others use to become free, seconds.
PATIENCE = 60
PR_SET_PDEATHSIG = 1


def ended_with_parent(number):
    """What a child does first: it gets this signal when its parent has died, however that died."""
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def arrange():
        libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(UNAVAILABLE)

    return arrange


def part_of_run(program, rank, count, conductor, token, line, dies_by):
    """Starts this process's kvdyno, as rank `rank` of `count`."""
    told = {"KVDYNO_RANK": str(rank), "KVDYNO_COUNT": str(count), "KVDYNO_TOKEN": token}
    return subprocess.Popen(
        [program, *line, "--agents", "auto", "--conductor", conductor],
        env={**os.environ, **told},
        preexec_fn=ended_with_parent(dies_by),
    )


@ray.remote(max_restarts=0, max_task_retries=0)
class Agent:
    """Holds a node while its agent carries load. It dies with the driver, and the agent with it."""

    def carry(self, *part):
        return part_of_run(*part, ["run"], signal.SIGKILL).wait()


def taken(line, option, otherwise):
    """Takes an option of this program out of a command line of kvdyno's."""
    for at, word in enumerate(line):
        if word == option and at + 1 < len(line):
            return line[at + 1], line[:at] + line[at + 2 :]
        if word.startswith(option + "="):
            return word[len(option) + 1 :], line[:at] + line[at + 1 :]
    return otherwise, line


def chosen(nodes, here, count):
    """`count` nodes that live; the driver's own, which conducts, only if there are no others."""
    alive = [node for node in nodes if node["Alive"]]
    alive.sort(key=lambda node: (node["NodeManagerAddress"] == here, node["NodeID"]))
    return alive[:count]


def free_port(host):
    with socket.socket() as tried:
        tried.bind((host, 0))
        return tried.getsockname()[1]


def conduct(line, count, program, processors):
    """Carries the run out; its exit code."""
    here = get_node_ip_address()
    nodes = chosen(ray.nodes(), here, count)
    if len(nodes) < count:
        print(
            f"kvdyno: {count} agents want a node each, and {len(nodes)} live; add nodes, or use fewer --agents",
            file=sys.stderr,
        )
        return UNAVAILABLE
    bundles = [{"CPU": processors, f"node:{node['NodeManagerAddress']}": 0.001} for node in nodes]
    group = placement_group(bundles, strategy="STRICT_SPREAD")
    agents = []
    try:
        if not group.wait(PATIENCE):
            print(
                f"kvdyno: {count} nodes were not free within {PATIENCE} s; wait until others are done, or use fewer "
                "--agents",
                file=sys.stderr,
            )
            return UNAVAILABLE
        part = (count + 1, f"{here}:{free_port(here)}", secrets.token_hex(16))
        conductor = part_of_run(program, 0, *part, line, signal.SIGTERM)
        # Ctrl-C reaches it by the terminal, SIGTERM from here; it says what becomes of the run.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, _: conductor.send_signal(number))
        for index in range(count):
            there = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)
            agents.append(Agent.options(num_cpus=processors, scheduling_strategy=there).remote())
        carried = [agent.carry.remote(program, rank, *part) for rank, agent in enumerate(agents, 1)]
        return gathered(conductor, carried)
    finally:
        for agent in agents:
            ray.kill(agent)
        remove_placement_group(group)


def gathered(conductor, carried):
    """Waits for the conductor, and ends it if an agent could never join it."""
    while conductor.poll() is None:
        done, carried = ray.wait(carried, num_returns=len(carried), timeout=0.2) if carried else ([], [])
        for agent in done:
            try:
                code = ray.get(agent)
                # Whoever joined and was lost, the conductor knows of.
                joined = code not in (USAGE, UNAVAILABLE)
                why = f"it ended with {code}"
            except ray.exceptions.RayActorError:
                continue
            except ray.exceptions.RayTaskError as error:
                joined, why = False, str(error.cause)
            if not joined and conductor.poll() is None:
                print(f"kvdyno: an agent did not join: {why}; see that --kvdyno is on each node", file=sys.stderr)
                conductor.terminate()
        if not carried:
            try:
                conductor.wait(0.2)
            except subprocess.TimeoutExpired:
                pass
    return conductor.returncode


def main(line):
    count, line = taken(line, "--agents", None)
    program, line = taken(line, "--kvdyno", "kvdyno")
    processors, line = taken(line, "--cpus-per-agent", "1")
    address, line = taken(line, "--ray-address", os.environ.get("RAY_ADDRESS", "auto"))
    if line[:1] != ["run"] or count is None or not count.isdigit() or not int(count):
        print(
            "kvdyno: write python -m kvdyno.ray run SUITE --store URL --agents N; of Ray's side there are --ray-address, "
            "--cpus-per-agent and --kvdyno PROGRAM",
            file=sys.stderr,
        )
        return USAGE
    ray.init(address=address, log_to_driver=True, logging_level="warning")
    try:
        return conduct(line, int(count), program, float(processors))
    finally:
        ray.shutdown()


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.exit(code if code >= 0 else 128 - code)
