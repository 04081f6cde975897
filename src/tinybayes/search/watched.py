"""The names of the files by which a search is watched and stopped; whoever only watches needs nothing else of it."""

PROGRESS, LIVE, STOP = "progress.json", "live.json", "stop"
