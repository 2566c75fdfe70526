"""Starts runs of kvdyno on engines that speak Python. kvdyno itself is a program, and does all the work."""
