"""Ports for the servers of tests: free_port()  ->  48213"""

import socket


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
