"""Reads keys through pylibmc or pymemcache over several servers, and prints how many it found.

Usage: read.py CLIENT PREFIX KEYS SERVER...; a server is HOST:PORT or HOST:PORT:WEIGHT.
"""

import sys

client, prefix, keys, servers = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
names = [f"{prefix}{n}" for n in range(keys)]
if client == "pylibmc":
    import pylibmc

    cache = pylibmc.Client(servers, behaviors={"ketama_weighted": True, "hash": "md5"})
    found = [cache.get(name) for name in names]
else:
    from pymemcache.client.hash import HashClient

    cache = HashClient([(host, int(port)) for host, port in (server.split(":") for server in servers)])
    found = [cache.get(name) for name in names]
print(sum(value is not None for value in found))
