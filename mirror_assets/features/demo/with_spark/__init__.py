"""The lake of the demo: its histories, and the data that they load."""
