"""A TCP forwarder that can stop forwarding without closing anything: a cut for those who may not make one."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time


class Forwarder:
    """Listens on loopback and forwards to one port there, in both directions, unless it is cut."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._cut = threading.Event()
        self._ended = threading.Event()
        self._partner: dict[socket.socket, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        threading.Thread(target=self._run, daemon=True).start()

    def cut(self) -> None:
        self._cut.set()

    def heal(self) -> None:
        self._cut.clear()

    def close(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            if self._cut.is_set():
                time.sleep(0.02)
                continue
            for key, _ in self._selector.select(0.1):
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                if sock is self._listener:
                    self._accept()
                elif sock in self._partner:
                    self._forward(sock)
        for sock in (self._listener, *self._partner):
            sock.close()

    def _accept(self) -> None:
        inner, _ = self._listener.accept()
        try:
            outer = socket.create_connection(self._target, 1)
        except OSError:
            inner.close()
            return
        for one, other in ((inner, outer), (outer, inner)):
            self._partner[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _forward(self, sock: socket.socket) -> None:
        try:
            content = sock.recv(65536)
            if content:
                self._partner[sock].sendall(content)
                return
        except OSError:
            pass
        for one in (sock, self._partner[sock]):
            self._selector.unregister(one)
            del self._partner[one]
            with contextlib.suppress(OSError):
                one.close()
