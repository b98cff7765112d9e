"""No task."""

VALUE = 1
