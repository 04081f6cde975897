"""Many trainings, one budget: a search over families of models, with a store that can be resumed.

These files in its directory show its progress and stop it.
"""

PROGRESS, LIVE, STOP = "progress.json", "live.json", "stop"
