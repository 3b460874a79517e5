"""Runs the product's processes as one, and the embedded services under it. Standard library only."""

from broadcast_project.supervisor.core import Supervisor, SupervisorError
from broadcast_project.supervisor.once import run_once
from broadcast_project.supervisor.process import Process, User, tied

__all__ = ["Process", "Supervisor", "SupervisorError", "User", "run_once", "tied"]
