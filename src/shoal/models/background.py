"""An event loop in a thread of its own, for programs that are not asynchronous themselves.

    with Background() as background:
        future = background.submit(caller.call(request, rng))     # returns at once
        answer = future.result()

Calls overlap with whatever the caller's thread does meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

from shoal.errors import ConfigError

Result = TypeVar("Result")


class Background:
    """Runs coroutines until it is closed; closing cancels what is still running."""

    def __init__(self, name: str = "shoal-models") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Starts a coroutine; its result, or what it raised, is in the future."""
        if not self._thread.is_alive():
            work.close()
            raise ConfigError("the background for model calls is closed: make another one")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Cancels what runs, waits for it to end, and ends the thread."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def __enter__(self) -> Background:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run_now(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that never waits, without an event loop; instant models are such."""
    try:
        work.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    work.close()
    raise RuntimeError("an instant model waited for something")


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
