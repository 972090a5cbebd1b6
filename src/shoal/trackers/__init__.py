"""Curves of runs for other programs: TensorBoard, Weights & Biases, Trackio, or a file of lines.

Everything is read from run folders, in a process of its own, so a tracker can neither slow nor stop a run.
"""

from shoal.trackers.destinations import MemoryTracker, Tracker, open_tracker
from shoal.trackers.feed import Feed

__all__ = ["Feed", "MemoryTracker", "Tracker", "open_tracker"]
