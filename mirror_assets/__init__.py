"""Mirror Delta tables into Microsoft Fabric's open-mirroring landing zone, exactly once and in order."""

__version__ = "0.1.0"
